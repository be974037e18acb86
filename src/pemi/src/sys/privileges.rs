// SPDX-License-Identifier: GPL-2.0-or-later
//! Giving up what root may do and the daemon need not.
//!
//! procd can start a service as another user, but gives it capabilities only
//! inside a jail, which small routers lack. So the daemon, started as root, does
//! it itself. What it keeps goes to its children too (`nft`).

use std::ffi::{c_int, c_ulong};
use std::fs;
use std::io;

/// Queue, marks, rules. This and the next two are from the kernel's headers; not in
/// every libc's.
pub const NET_ADMIN: c_int = 12;
/// Copies, probes, and looking at packets.
pub const NET_RAW: c_int = 13;
/// Real-time priority.
pub const SYS_NICE: c_int = 23;

const KEPT: [c_int; 3] = [NET_ADMIN, NET_RAW, SYS_NICE];
const LAST_CAPABILITY: c_int = 63;
const CAPABILITY_VERSION_3: u32 = 0x2008_0522;

/// Becomes `user` with those capabilities, for good. Without root there is
/// nothing to give up but the right to get more.
pub fn give_up(user: &str) -> io::Result<()> {
    // SAFETY: no pointers; cannot fail.
    if unsafe { libc::geteuid() } == 0 {
        let accounts = fs::read_to_string("/etc/passwd")?;
        let (uid, gid) = find(&accounts, user).ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, format!("/etc/passwd has no user '{user}'"))
        })?;
        become_user(uid, gid)?;
    }
    prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0)
}

/// Whether this process has what a packet queue needs.
pub fn are_kept() -> bool {
    fs::read_to_string("/proc/self/status").is_ok_and(|status| suffice(&status))
}

fn suffice(status: &str) -> bool {
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    KEPT[..2].iter().all(|capability| effective.unwrap_or(0) >> capability & 1 == 1)
}

/// User and group of an account.
fn find(accounts: &str, user: &str) -> Option<(u32, u32)> {
    let mut fields = accounts
        .lines()
        .map(|line| line.split(':'))
        .find_map(|mut fields| (fields.next() == Some(user)).then_some(fields))?;
    Some((fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?))
}

fn become_user(uid: u32, gid: u32) -> io::Result<()> {
    for capability in (0..=LAST_CAPABILITY).filter(|capability| !KEPT.contains(capability)) {
        // The kernel knows fewer and says EINVAL to the others.
        let _ = prctl(libc::PR_CAPBSET_DROP, capability as c_ulong, 0);
    }
    prctl(libc::PR_SET_KEEPCAPS, 1, 0)?;
    // SAFETY: no groups are pointed to; no other thread runs yet.
    done(unsafe { libc::setgroups(0, std::ptr::null()) })?;
    // SAFETY: no pointers; no other thread runs yet.
    done(unsafe { libc::setresgid(gid, gid, gid) })?;
    // SAFETY: as above.
    done(unsafe { libc::setresuid(uid, uid, uid) })?;
    set_capabilities()?;
    for capability in KEPT {
        prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_RAISE as c_ulong, capability as c_ulong)?;
    }
    Ok(())
}

/// Takes from this thread, for good, all capabilities but these; other threads keep theirs.
/// It is no error if the thread lacks one of them already.
pub fn keep_in_thread(kept: &[c_int]) {
    if let Err(error) = narrow(kept) {
        log::warn!("a thread keeps capabilities that it does not need: {error}");
    }
}

/// Leaves this process, which has one thread, nothing but what verdicts need, for good.
pub fn keep_for_verdicts() -> io::Result<()> {
    prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL as c_ulong, 0)?;
    narrow(&[NET_ADMIN])?;
    prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0)
}

fn narrow(kept: &[c_int]) -> io::Result<()> {
    let mut sets = get_capabilities()?;
    let mask = bits(kept);
    for (at, set) in sets.iter_mut().enumerate() {
        *set &= if at < SETS { mask } else { 0 };
    }
    capset(&sets)
}

/// Effective, permitted, inheritable.
const SETS: usize = 3;
/// Of capabilities 0 to 31, then of those from 32.
type Sets = [u32; 2 * SETS];
/// Version and process (this thread).
const HEADER: [u32; 2] = [CAPABILITY_VERSION_3, 0];

fn bits(capabilities: &[c_int]) -> u32 {
    capabilities.iter().fold(0, |bits, capability| bits | 1 << capability)
}

fn set_capabilities() -> io::Result<()> {
    let kept = bits(&KEPT);
    capset(&[kept, kept, kept, 0, 0, 0])
}

fn get_capabilities() -> io::Result<Sets> {
    let mut sets = Sets::default();
    let header = HEADER;
    // SAFETY: the two structs of capget(2) consist of 32-bit numbers in this order; both
    // are live for the call, and it writes no more than the second.
    done(unsafe { libc::syscall(libc::SYS_capget, header.as_ptr(), sets.as_mut_ptr()) } as c_int)?;
    Ok(sets)
}

fn capset(sets: &Sets) -> io::Result<()> {
    let header = HEADER;
    // SAFETY: as above; it only reads.
    done(unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), sets.as_ptr()) } as c_int)
}

fn prctl(what: c_int, a: c_ulong, b: c_ulong) -> io::Result<()> {
    let zero: c_ulong = 0;
    // SAFETY: none of the operations used here takes a pointer.
    done(unsafe { libc::prctl(what, a, b, zero, zero) })
}

fn done(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rights_of_a_process_are_read_from_its_status() {
        for (set, enough) in [
            ("0000000000803000", true),
            ("000001ffffffffff", true),
            ("0000000000001000", false),
            ("0000000000000000", false),
            ("?", false),
        ] {
            assert_eq!(suffice(&format!("Name:\tpemi\nCapEff:\t{set}\nCapBnd:\t0\n")), enough);
        }
        assert!(!suffice(""));
    }

    #[test]
    fn accounts_are_found_by_their_whole_name() {
        let accounts = "root:x:0:0:root:/root:/bin/ash\npemix:x:1:1::/:/bin/false\n\
                        pemi:x:5443:5444:pemi:/var/run/pemi:/bin/false\nbad:x\n";
        assert_eq!(find(accounts, "pemi"), Some((5443, 5444)));
        assert_eq!(find(accounts, "root"), Some((0, 0)));
        for absent in ["pem", "bad", ""] {
            assert_eq!(find(accounts, absent), None);
        }
    }
}
