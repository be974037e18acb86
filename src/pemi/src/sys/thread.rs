// SPDX-License-Identifier: GPL-2.0-or-later
//! Starting a thread. Each kind of work that the standard library starts by itself is 3 KB of
//! code on MIPS; in a box all are of one kind.

use std::io;
use std::thread::{Builder, JoinHandle};

/// What a thread does until it ends.
pub type Work = Box<dyn FnOnce() -> io::Result<()> + Send>;

/// Starts a thread of this name, with so much memory for its stack.
pub fn start(name: &str, stack: usize, work: Work) -> io::Result<JoinHandle<io::Result<()>>> {
    Builder::new().name(name.into()).stack_size(stack).spawn(work)
}
