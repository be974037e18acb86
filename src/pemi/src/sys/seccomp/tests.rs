// SPDX-License-Identifier: GPL-2.0-or-later
use std::path::PathBuf;

use super::*;

fn shipped() -> Value {
    serde_json::from_str(&fs::read_to_string(file()).unwrap()).unwrap()
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../files/etc/seccomp/pemi.json")
}

/// What the kernel is told of a call: native numbers, arguments of 64 bits.
fn told(number: u32, architecture: u32, argument: u64) -> Vec<u8> {
    let mut data = [number.to_ne_bytes(), architecture.to_ne_bytes()].concat();
    data.extend([0; 8]);
    data.extend(argument.to_ne_bytes());
    data.resize(64, 0);
    data
}

/// Runs a program as the kernel does.
fn verdict(program: &[Instruction], data: &[u8]) -> u32 {
    let (mut at, mut word) = (0, 0);
    loop {
        let step = program[at];
        at += 1;
        match step.code {
            LOAD => {
                let place = step.k as usize;
                word = u32::from_ne_bytes(data[place..place + 4].try_into().unwrap());
            }
            AND => word &= step.k,
            IF_EQUAL => at += usize::from(if word == step.k { step.jt } else { step.jf }),
            RETURN => return step.k,
            other => panic!("instruction {other}"),
        }
    }
}

const HERE: u32 = 7;
const REFUSED: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;

fn asked(program: &[Instruction], call: &str, argument: u64) -> u32 {
    verdict(program, &told(calls::number(call).unwrap(), HERE, argument))
}

#[test]
fn the_shipped_filter_lets_pass_what_it_names_and_refuses_the_rest() {
    let program = compile(&shipped(), HERE).unwrap();
    for call in ["ppoll", "close", "waitid", "exit_group"] {
        assert_eq!(asked(&program, call, 0), libc::SECCOMP_RET_ALLOW, "{call}");
    }
    for number in [libc::SYS_ptrace, libc::SYS_mount, libc::SYS_bpf, libc::SYS_unshare] {
        assert_eq!(verdict(&program, &told(number as u32, HERE, 0)), REFUSED, "{number}");
    }
    let foreign = told(libc::SYS_read as u32, HERE + 1, 0);
    assert_eq!(verdict(&program, &foreign), libc::SECCOMP_RET_KILL_PROCESS);
}

#[test]
fn arguments_count_by_their_lower_half() {
    let program = compile(&shipped(), HERE).unwrap();
    let families = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    for family in families.into_iter().chain([libc::AF_PACKET]) {
        assert_eq!(asked(&program, "socket", family as u64), libc::SECCOMP_RET_ALLOW);
    }
    for family in [libc::AF_VSOCK, libc::AF_ALG, libc::AF_BLUETOOTH, libc::AF_CAN, 0] {
        assert_eq!(asked(&program, "socket", family as u64), REFUSED, "{family}");
    }
    let thread = libc::CLONE_VM | libc::CLONE_THREAD | libc::CLONE_SIGHAND;
    for flags in [thread, libc::SIGCHLD, libc::CLONE_VFORK | libc::CLONE_VM] {
        assert_eq!(asked(&program, "clone", flags as u64), libc::SECCOMP_RET_ALLOW);
    }
    for flags in [libc::CLONE_NEWUSER, libc::CLONE_NEWNET, libc::CLONE_NEWNS | thread] {
        assert_eq!(asked(&program, "clone", flags as u64), REFUSED, "{flags:x}");
    }
}

#[test]
fn every_condition_of_a_rule_must_hold() {
    let filter = serde_json::json!({
        "defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 38,
        "syscalls": [
            {"names": ["kill", "nobody_has_this"], "action": "SCMP_ACT_ALLOW", "args": [
                {"index": 0, "op": "SCMP_CMP_EQ", "value": 5},
                {"index": 0, "op": "SCMP_CMP_MASKED_EQ", "value": 4, "valueTwo": 4}]},
            {"names": ["close"], "action": "SCMP_ACT_ALLOW"}]});
    let program = compile(&filter, HERE).unwrap();
    assert_eq!(asked(&program, "kill", 5), libc::SECCOMP_RET_ALLOW);
    assert_eq!(asked(&program, "kill", 4), REFUSED);
    assert_eq!(asked(&program, "close", 4), libc::SECCOMP_RET_ALLOW);
}

#[test]
fn what_is_not_understood_is_an_error() {
    let head = r#""defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":38"#;
    for (text, part) in [
        (r#"{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[]}"#.into(), "defaultErrnoRet"),
        (r#"{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[]}"#.into(), "SCMP_ACT_ERRNO"),
        (
            r#"{"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":40,"syscalls":[]}"#.into(),
            "1 to 34, or 38",
        ),
        (format!("{{{head}}}"), "'syscalls'"),
        (format!(r#"{{{head},"syscalls":[{{"action":"SCMP_ACT_LOG"}}]}}"#), "SCMP_ACT_LOG"),
        (format!(r#"{{{head},"syscalls":[{{"action":"SCMP_ACT_ALLOW"}}]}}"#), "'names'"),
        (
            format!(
                r#"{{{head},"syscalls":[{{"action":"SCMP_ACT_ALLOW","names":["kill"],
                "args":[{{"index":6,"value":1,"op":"SCMP_CMP_EQ"}}]}}]}}"#
            ),
            "index",
        ),
    ] {
        let error = compile(&serde_json::from_str(&text).unwrap(), HERE).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
    let error = apply(Path::new("/nonexistent")).unwrap_err().to_string();
    assert!(error.contains("cannot be read"), "{error}");
}

/// A filter is a thread's own, so this one is the only one that it stays with.
#[test]
fn forbidden_calls_are_refused_by_the_kernel() {
    let refused = std::thread::spawn(|| {
        if apply(&file()).unwrap() == Outcome::Impossible {
            eprintln!("skipped: no system-call filters here");
            return None;
        }
        let call = |number: libc::c_long, first: c_ulong| {
            let zero: c_ulong = 0;
            // SAFETY: no pointers; with these arguments none of the calls does anything
            // even where it is allowed.
            let result = unsafe { libc::syscall(number, first, zero, zero, zero, zero) };
            let error = io::Error::last_os_error();
            (result < 0).then(|| error.raw_os_error()).flatten()
        };
        let answers = [
            call(libc::SYS_ptrace, libc::PTRACE_PEEKDATA as c_ulong),
            call(libc::SYS_mount, 0),
            call(libc::SYS_unshare, 0),
            call(libc::SYS_setuid, 0),
            call(libc::SYS_socket, libc::AF_VSOCK as c_ulong),
            // Allowed, and refused for what they are asked.
            call(libc::SYS_close, c_ulong::from(u32::MAX)),
            call(libc::SYS_socket, libc::AF_INET as c_ulong),
        ];
        let status = fs::read_to_string("/proc/thread-self/status").unwrap();
        assert!(status.contains("\nSeccomp:\t2\n"), "{status}");
        Some(answers)
    });
    let Some(answers) = refused.join().unwrap() else { return };
    assert_eq!(answers[..5], [Some(libc::ENOSYS); 5]);
    assert_eq!(answers[5], Some(libc::EBADF));
    assert_ne!(answers[6], Some(libc::ENOSYS));
}
