//! The sender: its log, and what a quACK says about it.
