// SPDX-License-Identifier: GPL-2.0-or-later
//! The filter of system calls: read from a file in the format of the Open Container
//! Initiative, which is OpenWrt's, and put into force for this process and its children.
//!
//! procd's own way, `seccomp` of a service, is not used. It loads the filter by
//! LD_PRELOAD, to which a static program is deaf; a refused call would return 0, as if
//! it had been done, since procd knows no `defaultErrnoRet`; and it compares the upper
//! half of an argument on big-endian processors.

use std::env;
use std::ffi::{c_int, c_ulong};
use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;

mod calls;
mod error;

use error::Error;

/// Set for the program that takes the place of this one: the filter stays in force, and
/// need not be put on again.
pub const IN_FORCE: &str = "PEMI_SECCOMP";

/// What became of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is in force.
    InForce,
    /// The kernel has no filters, or the numbers of this processor's calls are not known.
    Impossible,
}

/// An instruction of the kernel's: what to do, jumps if true and if false, operand.
type Instruction = libc::sock_filter;

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// Places in what the kernel reports of a call (`struct seccomp_data`): number,
/// architecture, and six arguments of 64 bits.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const ARGUMENTS_AT: u32 = 16;
const ARGUMENTS: u64 = 6;
/// Of the half of an argument that counts; flags and kinds of sockets are 32 bits.
const LOWER_HALF: u32 = if cfg!(target_endian = "big") { 4 } else { 0 };

/// ENOSYS, which is 89 on MIPS; up to ERANGE all processors have the same numbers.
const MOST_ENOSYS: u64 = 38;
const LAST_COMMON: u64 = 34;

/// Filters the calls of this process and its children, or says why that cannot be. To be
/// called before there are threads: a filter is that of a thread and of those it starts.
pub fn install(file: &Path) -> Result<(), Error> {
    if env::var_os(IN_FORCE).is_some() {
        return Ok(());
    }
    if apply(file)? == Outcome::Impossible {
        log::warn!("no system-call filter: the kernel has none");
    }
    Ok(())
}

/// Puts the filter of a file into force. The process must have one thread.
pub fn apply(file: &Path) -> Result<Outcome, Error> {
    let text = fs::read_to_string(file).map_err(Error::Unreadable)?;
    let filter: Value = serde_json::from_slice(text.as_bytes()).map_err(Error::NotJson)?;
    let Some(architecture) = calls::ARCHITECTURE else { return Ok(Outcome::Impossible) };
    let program = compile(&filter, architecture)?;
    match load(&program) {
        Ok(()) => Ok(Outcome::InForce),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS)) => {
            Ok(Outcome::Impossible)
        }
        Err(error) => Err(Error::Refused(error)),
    }
}

/// What the kernel runs for each call. Calls in the order of the file: those that a
/// packet costs stand first.
fn compile(filter: &Value, architecture: u32) -> Result<Vec<Instruction>, Error> {
    let mut program = vec![
        instruction(LOAD, ARCHITECTURE_AT),
        Instruction { code: IF_EQUAL, jt: 1, jf: 0, k: architecture },
        // Of another architecture: nothing here makes such calls.
        instruction(RETURN, libc::SECCOMP_RET_KILL_PROCESS),
        instruction(LOAD, NUMBER_AT),
    ];
    let rules = filter["syscalls"].as_array().ok_or(Error::NoRules)?;
    for rule in rules {
        if rule["action"] != "SCMP_ACT_ALLOW" {
            return Err(Error::Action(rule["action"].clone()));
        }
        let conditions = conditions(&rule["args"])?;
        for name in rule["names"].as_array().ok_or(Error::NoNames)? {
            let name = name.as_str().ok_or(Error::Name)?;
            // As in procd: not every processor has every call.
            let Some(number) = calls::number(name) else { continue };
            program.push(skip_unless_equal(number, conditions.len() as u8 + 1));
            program.extend(&conditions);
            program.push(instruction(RETURN, libc::SECCOMP_RET_ALLOW));
            if !conditions.is_empty() {
                program.push(instruction(LOAD, NUMBER_AT));
            }
        }
    }
    program.push(instruction(RETURN, otherwise(filter)?));
    Ok(program)
}

/// What becomes of all other calls. Error numbers in a file are those of most processors.
fn otherwise(filter: &Value) -> Result<u32, Error> {
    let number = match filter["defaultErrnoRet"].as_u64() {
        Some(MOST_ENOSYS) => libc::ENOSYS as u32,
        Some(number @ 1..=LAST_COMMON) => number as u32,
        _ => 0,
    };
    match filter["defaultAction"].as_str() {
        Some("SCMP_ACT_ERRNO") if number > 0 => Ok(libc::SECCOMP_RET_ERRNO | number),
        _ => Err(Error::Otherwise),
    }
}

/// Instructions for the conditions on a call's arguments, which must all hold; they end
/// with a jump over the RETURN that follows if one does not.
fn conditions(args: &Value) -> Result<Vec<Instruction>, Error> {
    let bad = || Error::Arguments(args.clone());
    let mut program = Vec::new();
    for arg in args.as_array().into_iter().flatten() {
        let word = |name: &str| arg[name].as_u64().and_then(|n| u32::try_from(n).ok());
        let index = arg["index"].as_u64().filter(|index| *index < ARGUMENTS).ok_or_else(bad)?;
        let value = word("value").ok_or_else(bad)?;
        program.push(instruction(LOAD, ARGUMENTS_AT + index as u32 * 8 + LOWER_HALF));
        let wanted = match arg["op"].as_str() {
            Some("SCMP_CMP_EQ") => value,
            Some("SCMP_CMP_MASKED_EQ") => {
                program.push(instruction(AND, value));
                word("valueTwo").ok_or_else(bad)?
            }
            _ => return Err(bad()),
        };
        program.push(skip_unless_equal(wanted, 0));
    }
    let len = program.len();
    for (at, step) in program.iter_mut().enumerate().filter(|(_, step)| step.code == IF_EQUAL) {
        step.jf = (len - at) as u8;
    }
    Ok(program)
}

fn instruction(code: u16, operand: u32) -> Instruction {
    Instruction { code, jt: 0, jf: 0, k: operand }
}

fn skip_unless_equal(operand: u32, skipped: u8) -> Instruction {
    Instruction { code: IF_EQUAL, jt: 0, jf: skipped, k: operand }
}

fn load(program: &[Instruction]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: program.len() as u16,
        // The kernel only reads it.
        filter: program.as_ptr().cast_mut(),
    };
    let zero: c_ulong = 0;
    // SAFETY: no pointers. Without this only root might load a filter, since it could
    // mislead a program with more rights.
    done(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1 as c_ulong, zero, zero, zero) })?;
    let mode = c_ulong::from(libc::SECCOMP_MODE_FILTER);
    // SAFETY: a live program with the length of its slice.
    done(unsafe { libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program) })
}

fn done(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
