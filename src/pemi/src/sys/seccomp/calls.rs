// SPDX-License-Identifier: GPL-2.0-or-later
//! Numbers of the system calls that a filter may name. They differ from one
//! processor to the next; libc knows most of them, but none of the calls with 64-bit
//! times on 32-bit ones.

use std::ffi::c_long;

/// What the kernel calls this processor (AUDIT_ARCH_*, its ELF number and flags for
/// 64 bits and little endian). `None`: the numbers here are not known to be right.
pub const ARCHITECTURE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xc000_003e)
} else if cfg!(target_arch = "aarch64") {
    Some(0xc000_00b7)
} else if cfg!(all(target_arch = "arm", target_endian = "little")) {
    Some(0x4000_0028)
} else if cfg!(all(target_arch = "mips", target_endian = "little")) {
    Some(0x4000_0008)
} else if cfg!(target_arch = "mips") {
    Some(0x0000_0008)
} else if cfg!(target_arch = "x86") {
    Some(0x4000_0003)
} else if cfg!(target_arch = "powerpc") {
    Some(0x0000_0014)
} else if cfg!(target_arch = "riscv64") {
    Some(0xc000_00f3)
} else {
    None
};

/// The number of the call with this name; calls that this processor does not have
/// are `None`.
pub fn number(name: &str) -> Option<u32> {
    [COMMON, OLD, WIDE, ODD]
        .into_iter()
        .flatten()
        .find(|(known, _)| *known == name)
        .and_then(|(_, number)| u32::try_from(*number).ok())
}

type Calls = &'static [(&'static str, c_long)];

macro_rules! calls {
    ($($name:ident = $number:ident),* $(,)?) => {
        &[$((stringify!($name), libc::$number)),*]
    };
}

/// Every processor has these.
const COMMON: Calls = calls![
    accept4 = SYS_accept4,
    bind = SYS_bind,
    brk = SYS_brk,
    capget = SYS_capget,
    capset = SYS_capset,
    clock_getres = SYS_clock_getres,
    clock_gettime = SYS_clock_gettime,
    clock_nanosleep = SYS_clock_nanosleep,
    clone = SYS_clone,
    close = SYS_close,
    connect = SYS_connect,
    dup = SYS_dup,
    dup3 = SYS_dup3,
    eventfd2 = SYS_eventfd2,
    execve = SYS_execve,
    exit = SYS_exit,
    exit_group = SYS_exit_group,
    faccessat = SYS_faccessat,
    fcntl = SYS_fcntl,
    fsync = SYS_fsync,
    futex = SYS_futex,
    getdents64 = SYS_getdents64,
    getegid = SYS_getegid,
    geteuid = SYS_geteuid,
    getgid = SYS_getgid,
    getpid = SYS_getpid,
    getppid = SYS_getppid,
    getrandom = SYS_getrandom,
    getsockname = SYS_getsockname,
    getsockopt = SYS_getsockopt,
    gettid = SYS_gettid,
    gettimeofday = SYS_gettimeofday,
    getuid = SYS_getuid,
    ioctl = SYS_ioctl,
    kill = SYS_kill,
    listen = SYS_listen,
    lseek = SYS_lseek,
    madvise = SYS_madvise,
    membarrier = SYS_membarrier,
    mkdirat = SYS_mkdirat,
    mlockall = SYS_mlockall,
    mprotect = SYS_mprotect,
    mremap = SYS_mremap,
    munmap = SYS_munmap,
    nanosleep = SYS_nanosleep,
    openat = SYS_openat,
    pidfd_open = SYS_pidfd_open,
    pidfd_send_signal = SYS_pidfd_send_signal,
    pipe2 = SYS_pipe2,
    ppoll = SYS_ppoll,
    prctl = SYS_prctl,
    prlimit64 = SYS_prlimit64,
    pselect6 = SYS_pselect6,
    read = SYS_read,
    readlinkat = SYS_readlinkat,
    readv = SYS_readv,
    recvfrom = SYS_recvfrom,
    recvmmsg = SYS_recvmmsg,
    recvmsg = SYS_recvmsg,
    renameat2 = SYS_renameat2,
    restart_syscall = SYS_restart_syscall,
    rt_sigaction = SYS_rt_sigaction,
    rt_sigpending = SYS_rt_sigpending,
    rt_sigprocmask = SYS_rt_sigprocmask,
    rt_sigreturn = SYS_rt_sigreturn,
    rt_sigtimedwait = SYS_rt_sigtimedwait,
    sched_getaffinity = SYS_sched_getaffinity,
    sched_getparam = SYS_sched_getparam,
    sched_getscheduler = SYS_sched_getscheduler,
    sched_setscheduler = SYS_sched_setscheduler,
    sched_yield = SYS_sched_yield,
    sendmsg = SYS_sendmsg,
    sendto = SYS_sendto,
    set_robust_list = SYS_set_robust_list,
    set_tid_address = SYS_set_tid_address,
    setsockopt = SYS_setsockopt,
    shutdown = SYS_shutdown,
    sigaltstack = SYS_sigaltstack,
    signalfd4 = SYS_signalfd4,
    socket = SYS_socket,
    socketpair = SYS_socketpair,
    statx = SYS_statx,
    sysinfo = SYS_sysinfo,
    tgkill = SYS_tgkill,
    tkill = SYS_tkill,
    umask = SYS_umask,
    uname = SYS_uname,
    unlinkat = SYS_unlinkat,
    wait4 = SYS_wait4,
    waitid = SYS_waitid,
    write = SYS_write,
    writev = SYS_writev,
];

/// Those that newer processors have only in a more general form.
#[cfg(any(
    target_arch = "x86_64",
    target_arch = "x86",
    target_arch = "arm",
    target_arch = "mips",
    target_arch = "powerpc"
))]
const OLD: Calls = calls![
    access = SYS_access,
    dup2 = SYS_dup2,
    fork = SYS_fork,
    fstat = SYS_fstat,
    lstat = SYS_lstat,
    mkdir = SYS_mkdir,
    open = SYS_open,
    pipe = SYS_pipe,
    poll = SYS_poll,
    readlink = SYS_readlink,
    stat = SYS_stat,
    unlink = SYS_unlink,
];
#[cfg(not(any(
    target_arch = "x86_64",
    target_arch = "x86",
    target_arch = "arm",
    target_arch = "mips",
    target_arch = "powerpc"
)))]
const OLD: Calls = &[];

/// Those that 32-bit processors have for files beyond 2 GiB and times beyond 2038.
#[cfg(target_pointer_width = "32")]
const WIDE: Calls = &[
    ("_llseek", libc::SYS__llseek),
    ("fcntl64", libc::SYS_fcntl64),
    ("fstat64", libc::SYS_fstat64),
    ("lstat64", libc::SYS_lstat64),
    ("mmap2", libc::SYS_mmap2),
    ("sigreturn", libc::SYS_sigreturn),
    ("stat64", libc::SYS_stat64),
    // From here on all processors count alike, MIPS from 4000 on.
    ("clock_gettime64", FIRST + 403),
    ("clock_nanosleep_time64", FIRST + 407),
    ("pselect6_time64", FIRST + 413),
    ("ppoll_time64", FIRST + 414),
    ("recvmmsg_time64", FIRST + 417),
    ("rt_sigtimedwait_time64", FIRST + 421),
    ("futex_time64", FIRST + 422),
];
#[cfg(not(target_pointer_width = "32"))]
const WIDE: Calls = &[];

#[cfg(target_pointer_width = "32")]
const FIRST: c_long = if cfg!(target_arch = "mips") { 4000 } else { 0 };

/// What one processor has and another has not, or has elsewhere.
#[cfg(target_arch = "x86_64")]
const ODD: Calls = calls![
    accept = SYS_accept,
    arch_prctl = SYS_arch_prctl,
    getrlimit = SYS_getrlimit,
    mmap = SYS_mmap,
    newfstatat = SYS_newfstatat,
    pread64 = SYS_pread64,
    rseq = SYS_rseq,
    vfork = SYS_vfork,
];
#[cfg(any(target_arch = "aarch64", target_arch = "riscv64"))]
const ODD: Calls = calls![
    accept = SYS_accept,
    fstat = SYS_fstat,
    mmap = SYS_mmap,
    newfstatat = SYS_newfstatat,
    pread64 = SYS_pread64,
    rseq = SYS_rseq,
];
#[cfg(target_arch = "arm")]
const ODD: Calls = &[
    ("accept", libc::SYS_accept),
    ("fstatat64", libc::SYS_fstatat64),
    ("getegid32", libc::SYS_getegid32),
    ("geteuid32", libc::SYS_geteuid32),
    ("getgid32", libc::SYS_getgid32),
    ("getuid32", libc::SYS_getuid32),
    ("pread64", libc::SYS_pread64),
    ("recv", libc::SYS_recv),
    ("rseq", 398),
    ("send", libc::SYS_send),
    ("ugetrlimit", libc::SYS_ugetrlimit),
    ("vfork", libc::SYS_vfork),
    // The processor's own calls have a range of their own (__ARM_NR_BASE).
    ("cacheflush", 0x0f_0002),
    ("set_tls", 0x0f_0005),
];
#[cfg(target_arch = "mips")]
const ODD: Calls = &[
    ("accept", libc::SYS_accept),
    ("cacheflush", libc::SYS_cacheflush),
    ("fstatat64", 4293),
    ("getrlimit", libc::SYS_getrlimit),
    ("mmap", libc::SYS_mmap),
    ("pread64", 4200),
    ("recv", libc::SYS_recv),
    ("rseq", 4367),
    ("send", libc::SYS_send),
    ("set_thread_area", libc::SYS_set_thread_area),
];
// Those of sockets without a successor are a call of many here, which nobody has to make.
#[cfg(target_arch = "x86")]
const ODD: Calls = &[
    ("fstatat64", libc::SYS_fstatat64),
    ("getegid32", libc::SYS_getegid32),
    ("geteuid32", libc::SYS_geteuid32),
    ("getgid32", libc::SYS_getgid32),
    ("getuid32", libc::SYS_getuid32),
    ("pread64", libc::SYS_pread64),
    ("rseq", 386),
    ("set_thread_area", libc::SYS_set_thread_area),
    ("ugetrlimit", libc::SYS_ugetrlimit),
    ("vfork", libc::SYS_vfork),
];
#[cfg(target_arch = "powerpc")]
const ODD: Calls = &[
    ("accept", libc::SYS_accept),
    ("fstatat64", libc::SYS_fstatat64),
    ("pread64", libc::SYS_pread64),
    ("recv", libc::SYS_recv),
    ("rseq", 387),
    ("send", libc::SYS_send),
    ("ugetrlimit", libc::SYS_ugetrlimit),
    ("vfork", libc::SYS_vfork),
];
// Of the others no number is asked for: `ARCHITECTURE` is not known.
#[cfg(not(any(
    target_arch = "x86_64",
    target_arch = "x86",
    target_arch = "aarch64",
    target_arch = "arm",
    target_arch = "mips",
    target_arch = "powerpc",
    target_arch = "riscv64"
)))]
const ODD: Calls = &[];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_has_two_numbers_and_no_number_two_calls() {
        let all: Vec<_> = [COMMON, OLD, WIDE, ODD].into_iter().flatten().collect();
        for (at, (name, number)) in all.iter().enumerate() {
            assert!(all[..at].iter().all(|(n, m)| n != name && m != number), "{name}");
        }
    }

    #[test]
    fn numbers_are_those_of_this_processor() {
        assert_eq!(number("read"), Some(libc::SYS_read as u32));
        assert_eq!(number("ptrace"), None);
        assert_eq!(number("mmap2").is_some(), cfg!(target_pointer_width = "32"));
    }
}
