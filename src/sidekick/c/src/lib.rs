// SPDX-License-Identifier: GPL-2.0-or-later
//! [`pemi_sidekick::sender`] for C; `pemi_sidekick.h` says what everything means.
//! Every pointer is what the header says, or NULL where a function looks at it: that is all
//! that is known here, and what each `unsafe` relies on.

use std::net::Ipv6Addr;
use std::num::{NonZeroU8, NonZeroU16};
use std::time::Duration;

use pemi_quack::{Interval, Width};
use pemi_sidekick::sender::{Options, Sender, State};

/// `struct pemi_sidekick_options`
#[repr(C)]
#[allow(missing_docs, reason = "the header has it")]
pub struct COptions {
    pub token: u64,
    pub tolerance_ns: u64,
    pub log_limit: u32,
    pub client_port: u16,
    pub server_port: u16,
    pub server: [u8; 16],
    pub offset: u16,
    pub interval: u16,
    pub mode: u8,
    pub width: u8,
    pub threshold: u8,
}

/// `struct pemi_sidekick_stats`
#[repr(C)]
#[allow(missing_docs, reason = "the header has it")]
pub struct CStats {
    pub losses: u64,
    pub spurious: u64,
    pub quacks: u64,
    pub quack_bytes: u64,
    pub resyncs: u64,
    pub fallbacks: u64,
}

fn options(options: &COptions) -> Option<Options> {
    let server = Ipv6Addr::from(options.server).to_canonical();
    let mut found =
        Options::new(options.token, options.client_port, (server, options.server_port).into());
    found.interval = match (options.mode, NonZeroU16::new(options.interval)) {
        (0, None) => Interval::Router,
        (1, Some(packets)) => Interval::Packets(packets),
        (2, Some(millis)) => Interval::Millis(millis),
        (3, None) => Interval::Adaptive,
        _ => return None,
    };
    if options.width != 0 {
        found.width = Width::from_bytes(options.width.into())?;
    }
    found.threshold = NonZeroU8::new(options.threshold).unwrap_or(found.threshold);
    if options.log_limit != 0 {
        found.log_limit = options.log_limit.try_into().ok()?;
    }
    if options.tolerance_ns != 0 {
        found.tolerance = Duration::from_nanos(options.tolerance_ns);
    }
    found.offset = options.offset;
    Some(found)
}

/// # Safety
///
/// `given` is NULL or points to options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pemi_sidekick_new(given: *const COptions) -> *mut Sender {
    // SAFETY: the caller says that it is NULL or valid, and nothing changes it meanwhile.
    let given = unsafe { given.as_ref() };
    let sender = given.and_then(options).map(|options| Box::new(Sender::new(options)));
    sender.map_or(std::ptr::null_mut(), Box::into_raw)
}

/// # Safety
///
/// `session` is NULL or of [`pemi_sidekick_new`], and not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pemi_sidekick_free(session: *mut Sender) {
    if !session.is_null() {
        // SAFETY: it came from `Box::into_raw`, and the caller says that this is its end.
        drop(unsafe { Box::from_raw(session) });
    }
}

/// # Safety
///
/// `session` is of [`pemi_sidekick_new`], `buffer` has room for 48 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pemi_sidekick_poll(
    session: *mut Sender,
    now_ns: u64,
    buffer: *mut u8,
) -> usize {
    // SAFETY: a session that no other thread uses now, as the header asks for.
    let sender = unsafe { &mut *session };
    let Some(message) = sender.poll_message(Duration::from_nanos(now_ns)) else { return 0 };
    // SAFETY: a sender's messages are HELLO, RESET and BYE; none has more than the 48 bytes
    // that the buffer has room for, and the message is memory of our own.
    unsafe { std::ptr::copy_nonoverlapping(message.as_ptr(), buffer, message.len()) };
    message.len()
}

/// # Safety
///
/// `session` is of [`pemi_sidekick_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pemi_sidekick_next_timeout(session: *const Sender) -> u64 {
    // SAFETY: a session that no other thread changes now, as the header asks for.
    let next = unsafe { &*session }.next_timeout();
    next.map_or(u64::MAX, |next| next.as_nanos().try_into().unwrap_or(u64::MAX))
}

/// The bytes of a caller; none if there are none.
///
/// # Safety
///
/// `length` bytes can be read at `bytes` as long as the result is used.
unsafe fn slice<'a>(bytes: *const u8, length: usize) -> &'a [u8] {
    if bytes.is_null() || length == 0 {
        return &[];
    }
    // SAFETY: not NULL, and the caller says that so many bytes are there.
    unsafe { std::slice::from_raw_parts(bytes, length) }
}

/// # Safety
///
/// `session` is of [`pemi_sidekick_new`], and `length` bytes can be read at `payload`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pemi_sidekick_on_sent(
    session: *mut Sender,
    now_ns: u64,
    tag: u64,
    payload: *const u8,
    length: usize,
) {
    // SAFETY: as above, and the payload is not kept after this call.
    let (sender, payload) = unsafe { (&mut *session, slice(payload, length)) };
    sender.on_sent(Duration::from_nanos(now_ns), tag, payload);
}

/// # Safety
///
/// `session` is of [`pemi_sidekick_new`], and `length` bytes can be read at `bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pemi_sidekick_on_message(
    session: *mut Sender,
    now_ns: u64,
    bytes: *const u8,
    length: usize,
) {
    // SAFETY: as above, and the bytes are not kept after this call.
    let (sender, bytes) = unsafe { (&mut *session, slice(bytes, length)) };
    sender.on_message(Duration::from_nanos(now_ns), bytes);
}

/// # Safety
///
/// `session` is of [`pemi_sidekick_new`], and `tag` can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pemi_sidekick_next_lost(
    session: *mut Sender,
    now_ns: u64,
    tag: *mut u64,
) -> bool {
    // SAFETY: a session that no other thread uses now, as the header asks for.
    let lost = unsafe { &mut *session }.next_lost(Duration::from_nanos(now_ns));
    let Some(lost) = lost else { return false };
    // SAFETY: the caller says that there is room for a tag.
    unsafe { tag.write(lost) };
    true
}

/// # Safety
///
/// `session` is of [`pemi_sidekick_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pemi_sidekick_get_state(session: *const Sender, now_ns: u64) -> u32 {
    // SAFETY: a session that no other thread changes now, as the header asks for.
    match unsafe { &*session }.state(Duration::from_nanos(now_ns)) {
        State::Asking => 0,
        State::Running => 1,
        State::Refused => 2,
        State::Closed => 3,
    }
}

/// # Safety
///
/// `session` is of [`pemi_sidekick_new`], and `stats` can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pemi_sidekick_get_stats(session: *const Sender, stats: *mut CStats) {
    // SAFETY: a session that no other thread changes now, as the header asks for.
    let found = unsafe { &*session }.stats();
    let found = CStats {
        losses: found.losses,
        spurious: found.spurious,
        quacks: found.quacks,
        quack_bytes: found.quack_bytes,
        resyncs: found.resyncs,
        fallbacks: found.fallbacks,
    };
    // SAFETY: the caller says that there is room for them.
    unsafe { stats.write(found) };
}

/// # Safety
///
/// `session` is of [`pemi_sidekick_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pemi_sidekick_close(session: *mut Sender) {
    // SAFETY: a session that no other thread uses now, as the header asks for.
    unsafe { &mut *session }.close();
}
