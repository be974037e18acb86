//! What the benchmarks share.

pub mod datagrams;
pub mod load;
