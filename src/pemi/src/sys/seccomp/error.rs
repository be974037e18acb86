// SPDX-License-Identifier: GPL-2.0-or-later
//! Why there is no filter of system calls.

use std::fmt::{self, Display};
use std::io;

use serde_json::Value;

/// What is wrong with a filter's file, or with the kernel.
#[derive(Debug)]
pub(crate) enum Error {
    /// The file cannot be read.
    Unreadable(io::Error),
    /// It is not JSON.
    NotJson(serde_json::Error),
    /// It has no list of calls.
    NoRules,
    /// A rule has an action that is not known.
    Action(Value),
    /// A rule has no list of names.
    NoNames,
    /// One of the names is not a string.
    Name,
    /// It does not say, or not so that this program understands it, what becomes of
    /// all other calls.
    Otherwise,
    /// A condition on the arguments of a call is not understood; these are all of the rule.
    Arguments(Value),
    /// The kernel refuses the filter.
    Refused(io::Error),
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unreadable(error) => write!(f, "cannot be read: {error}"),
            Error::NotJson(error) => write!(f, "is not JSON: {error}"),
            Error::NoRules => f.write_str("has no list 'syscalls'"),
            Error::Action(action) => {
                write!(f, "action {action} is not known; known: SCMP_ACT_ALLOW")
            }
            Error::NoNames => f.write_str("a rule has no list 'names'"),
            Error::Name => f.write_str("a name is not a string"),
            Error::Otherwise => f.write_str(
                "needs defaultAction SCMP_ACT_ERRNO and a defaultErrnoRet of 1 to 34, or 38",
            ),
            Error::Arguments(args) => {
                write!(f, "args {args}: index, value and SCMP_CMP_EQ or SCMP_CMP_MASKED_EQ")
            }
            Error::Refused(error) => write!(f, "the kernel does not take it: {error}"),
        }
    }
}
