# SPDX-License-Identifier: GPL-2.0-or-later
"""The service's filter of system calls: what was measured, what is allowed besides and why."""

import json
import re
from pathlib import Path

import pytest
import syscalls

ROOT = Path(__file__).resolve().parents[2]
FILTER = json.loads((ROOT / "files/etc/seccomp/pemi.json").read_text())
MEASURED = json.loads((ROOT / "test/package/syscalls.json").read_text())
ALLOWED = {name for rule in FILTER["syscalls"] for name in rule["names"]}

# Made before the filter is in force, by root who becomes the service's user.
BEFORE = {"setgroups", "setresgid", "setresuid"}
# glibc takes clone where this is not there; its flags, in memory, no filter can read.
REPLACED = {"clone3"}
REASONS = {
    "aarch64 has only the general forms": "dup3 faccessat mkdirat unlinkat",
    "32-bit processors: files beyond 2 GiB, users beyond 65535": (
        "_llseek fstat64 fstatat64 lstat64 stat64 getegid32 geteuid32 getgid32 getuid32"
    ),
    "32-bit processors: times beyond 2038": (
        "clock_nanosleep_time64 futex_time64 ppoll_time64 pselect6_time64 recvmmsg_time64 "
        "rt_sigtimedwait_time64"
    ),
    "arm and mips: threads, signals, sockets": "cacheflush recv send set_tls sigreturn ugetrlimit",
    "the kernel's page of clocks may be missing": "clock_getres clock_gettime gettimeofday",
    "waiting for a full log when it stops, a busy channel, a lock": (
        "clock_nanosleep membarrier nanosleep sched_yield restart_syscall"
    ),
    "pthread_setschedparam of glibc": "sched_getparam sched_getscheduler",
    "told to stop while nft runs": "rt_sigpending",
    "a panic, and signals": "getpid rt_sigreturn tgkill tkill",
    "other versions of libc start a child, or use files, so": (
        "accept dup fork getdents64 getegid getgid getppid getrlimit lseek mremap pipe readv "
        "sysinfo uname vfork writev"
    ),
    "the comparison of downloads is written once a minute at most": "fsync renameat2",
    "a child that watches over the daemon": (
        "kill pidfd_open pidfd_send_signal readlink readlinkat rt_sigtimedwait shutdown socketpair "
        "waitid"
    ),
}
REASONED = {name for names in REASONS.values() for name in names.split()}


@pytest.mark.parametrize("where", MEASURED)
def test_what_was_measured_is_allowed(where):
    assert set(MEASURED[where]) - BEFORE - REPLACED <= ALLOWED


def test_nothing_is_allowed_without_a_reason():
    measured = {name for names in MEASURED.values() for name in names}
    assert (measured - BEFORE - REPLACED) | REASONED == ALLOWED
    # A reason is for what was not seen.
    assert not measured & REASONED


def test_what_breaks_out_is_not_allowed():
    forbidden = """add_key bpf chroot clone3 delete_module finit_module init_module
        io_uring_enter io_uring_setup kexec_load keyctl mknod mount move_mount name_to_handle_at
        open_by_handle_at perf_event_open personality pivot_root process_vm_readv
        process_vm_writev ptrace reboot request_key seccomp setns setresuid settimeofday setuid
        swapon umount2 unshare userfaultfd"""
    assert not ALLOWED & set(forbidden.split())


def test_sockets_and_processes_have_conditions():
    by_name = {}
    for rule in FILTER["syscalls"]:
        for name in rule["names"]:
            by_name.setdefault(name, []).append(rule.get("args"))
    assert all(args for args in by_name["socket"] + by_name["clone"])
    # AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET
    assert [args[0]["value"] for args in by_name["socket"]] == [1, 2, 10, 16, 17]
    assert sum(len(rules) for rules in by_name.values()) == len(by_name) + 4, "named twice"


def test_the_daemon_knows_the_number_of_each():
    source = (ROOT / "src/pemi/src/sys/seccomp/calls.rs").read_text()
    known = set(re.findall(r"^    (\w+) = SYS_\w+,$", source, re.MULTILINE))
    known |= set(re.findall(r'^    \("(\w+)", ', source, re.MULTILINE))
    assert known == ALLOWED


def test_a_trace_is_read_from_the_daemon_on():
    trace = """7 execve("/sbin/ip", ["ip", "netns"], 0x1) = 0
7 unshare(CLONE_NEWNS) = 0
7 execve("/x/pemi", ["/x/pemi", "run"], 0x1) = 0
7 clone(child_stack=NULL, flags=CLONE_VM <unfinished ...>
8 set_robust_list(0x1, 24) = 0
7 <... clone resumed>) = 8
8 recvmmsg(3,  <unfinished ...>
8 <... recvmmsg resumed>[]) = 1
9 ptrace(PTRACE_TRACEME) = 0
9 +++ exited with 0 +++
"""
    wanted = {"execve", "clone", "set_robust_list", "recvmmsg"}
    assert syscalls.calls(trace) == wanted
