// SPDX-License-Identifier: GPL-2.0-or-later
//! Status codes (`enum ubus_msg_status` of libubus), of those that matter here.

/// All is well.
pub const OK: u32 = 0;
/// `UBUS_STATUS_INVALID_ARGUMENT`
pub const INVALID_ARGUMENT: u32 = 2;
/// `UBUS_STATUS_METHOD_NOT_FOUND`
pub const METHOD_NOT_FOUND: u32 = 3;
/// `UBUS_STATUS_NOT_FOUND`
pub const NOT_FOUND: u32 = 4;
/// `UBUS_STATUS_SYSTEM_ERROR`
pub const SYSTEM_ERROR: u32 = 13;

/// The name of a status.
pub fn meaning(status: u32) -> &'static str {
    match status {
        0 => "ok",
        1 => "invalid command",
        2 => "invalid argument",
        3 => "method not found",
        4 => "not found",
        5 => "no data",
        6 => "permission denied",
        7 => "timeout",
        8 => "not supported",
        _ => "unknown error",
    }
}
