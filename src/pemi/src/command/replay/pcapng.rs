// SPDX-License-Identifier: GPL-2.0-or-later
//! The newer capture format (draft-ietf-opsawg-pcapng): blocks with a type and a
//! length, of which three kinds matter here.

use std::io::Read;

use pemi_engine::Time;

use super::input::{Error, Input, Order};
use super::packet::{Packet, captured};

/// Type of the block that a file and each of its sections begins with; reads the
/// same in both byte orders.
pub const SECTION_HEADER: u32 = 0x0a0d_0d0a;

const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;
/// Type, length, and the length once more at the end.
const FRAME: u32 = 12;
/// More of them than any honest section has.
const MAX_INTERFACES: usize = 1024;

/// What the section being read has said of itself.
#[derive(Debug)]
pub struct Section {
    order: Order,
    interfaces: Vec<Interface>,
}

/// How the packets of one interface are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Interface {
    link: u16,
    ticks_per_second: u64,
    offset_s: i64,
}

impl Interface {
    fn time(self, ticks: u64) -> Time {
        let nanos = u128::from(ticks) * 1_000_000_000 / u128::from(self.ticks_per_second);
        // Less than 2^94, so nothing is lost.
        let nanos = nanos as i128 + i128::from(self.offset_s) * 1_000_000_000;
        Time::from_nanos(nanos.clamp(0, u64::MAX.into()) as u64)
    }
}

/// A block whose first eight bytes have been read.
#[derive(Clone, Copy, Debug)]
struct Block {
    kind: u32,
    offset: u64,
    len: u32,
}

impl Block {
    fn new(kind: u32, offset: u64, len: u32, least: u32) -> Result<Block, Error> {
        if len < FRAME + least || !len.is_multiple_of(4) {
            let least = FRAME + least;
            let what = format!(
                "block length {len} of type {kind:#x}; at least {least} and a multiple of 4 expected"
            );
            return Err(Error::new(offset + 4, what));
        }
        Ok(Block { kind, offset, len })
    }

    /// Passes over what has not been looked at and checks the length at the end.
    fn finish<R: Read>(self, input: &mut Input<R>, order: Order) -> Result<(), Error> {
        let end = self.offset + u64::from(self.len) - 4;
        let what = format!("a block of type {:#x}", self.kind);
        input.skip(end.saturating_sub(input.offset()), &what)?;
        let again = order.u32(&input.array::<4>(&what)?, 0);
        if again != self.len {
            let what = format!("{what} ends with length {again}; {} expected", self.len);
            return Err(Error::new(end, what));
        }
        Ok(())
    }
}

impl Section {
    /// Reads the rest of a section header block: its type has been read.
    pub fn begin<R: Read>(input: &mut Input<R>) -> Result<Section, Error> {
        let offset = input.offset() - 4;
        let header = input.array::<8>("a section header")?;
        let order = match (Order::Little.u32(&header, 4), Order::Big.u32(&header, 4)) {
            (BYTE_ORDER, _) => Order::Little,
            (_, BYTE_ORDER) => Order::Big,
            (_, other) => {
                let what = format!("byte-order magic {other:08x}; {BYTE_ORDER:08x} expected");
                return Err(Error::new(offset + 8, what));
            }
        };
        let block = Block::new(SECTION_HEADER, offset, order.u32(&header, 0), 16)?;
        let version = order.u16(&input.array::<4>("a section header")?, 0);
        if version != 1 {
            let what = format!("pcapng version {version}; 1 expected");
            return Err(Error::new(offset + 12, what));
        }
        block.finish(input, order)?;
        Ok(Section { order, interfaces: Vec::new() })
    }

    /// The next packet; `None` at the end of the file.
    pub fn next_packet<'a, R: Read>(
        &mut self,
        input: &'a mut Input<R>,
    ) -> Result<Option<Packet<'a>>, Error> {
        loop {
            let offset = input.offset();
            let Some(kind) = input.array_or_end::<4>("a block")? else { return Ok(None) };
            let kind = self.order.u32(&kind, 0);
            if kind == SECTION_HEADER {
                *self = Section::begin(input)?;
                continue;
            }
            let len = self.order.u32(&input.array::<4>("a block")?, 0);
            match kind {
                INTERFACE => self.interface(input, Block::new(kind, offset, len, 8)?)?,
                ENHANCED_PACKET => {
                    let (time, link) = self.packet(input, Block::new(kind, offset, len, 20)?)?;
                    return Ok(Some(Packet { time, link, frame: input.bytes(), offset }));
                }
                SIMPLE_PACKET | OBSOLETE_PACKET => {
                    let why = if kind == SIMPLE_PACKET { "has no time" } else { "is obsolete" };
                    let what = format!(
                        "a packet block of type {kind} {why}; enhanced packet blocks expected"
                    );
                    return Err(Error::new(offset, what));
                }
                _ => Block::new(kind, offset, len, 0)?.finish(input, self.order)?,
            }
        }
    }

    fn interface<R: Read>(&mut self, input: &mut Input<R>, block: Block) -> Result<(), Error> {
        const WHAT: &str = "an interface description";
        if self.interfaces.len() == MAX_INTERFACES {
            let what = format!("more than {MAX_INTERFACES} interfaces");
            return Err(Error::new(block.offset, what));
        }
        let order = self.order;
        let link = order.u16(&input.array::<8>(WHAT)?, 0);
        let mut interface = Interface { link, ticks_per_second: 1_000_000, offset_s: 0 };
        let end = block.offset + u64::from(block.len) - 4;
        while input.offset() + 4 <= end {
            let at = input.offset();
            let option = input.array::<4>(WHAT)?;
            let (code, len) = (order.u16(&option, 0), order.u16(&option, 2));
            let padded = u64::from(len).next_multiple_of(4);
            if code == 0 {
                break;
            }
            if at + 4 + padded > end {
                let what = format!("option {code} of {len} bytes does not fit into its block");
                return Err(Error::new(at, what));
            }
            match (code, len) {
                (IF_TSRESOL, 1) => {
                    let [resolution, ..] = input.array::<4>(WHAT)?;
                    interface.ticks_per_second = ticks_per_second(resolution).ok_or_else(|| {
                        let what = format!("if_tsresol {resolution:#04x}: finer than is supported");
                        Error::new(at + 4, what)
                    })?;
                }
                (IF_TSOFFSET, 8) => interface.offset_s = order.i64(&input.array::<8>(WHAT)?, 0),
                _ => input.skip(padded, WHAT)?,
            }
        }
        self.interfaces.push(interface);
        block.finish(input, order)
    }

    /// Leaves the packet in the input's buffer.
    fn packet<R: Read>(&self, input: &mut Input<R>, block: Block) -> Result<(Time, u16), Error> {
        let header = input.array::<20>("an enhanced packet block")?;
        let field = |at| self.order.u32(&header, at);
        let number = field(0);
        let interface = self.interfaces.get(number as usize).copied().ok_or_else(|| {
            let what = format!("interface {number}; {} described before", self.interfaces.len());
            Error::new(block.offset + 8, what)
        })?;
        let (at, room) = (block.offset + 20, block.len - FRAME - 20);
        let len = captured(at, field(12))?;
        if len > room as usize {
            let what = format!("captured length {len}; at most {room} expected in this block");
            return Err(Error::new(at, what));
        }
        input.fill(len, "a packet")?;
        block.finish(input, self.order)?;
        let ticks = u64::from(field(4)) << 32 | u64::from(field(8));
        Ok((interface.time(ticks), interface.link))
    }
}

/// What if_tsresol says: a negative power of 2 if its highest bit is set, else
/// of 10. `None` for what does not fit 64 bits.
fn ticks_per_second(resolution: u8) -> Option<u64> {
    match resolution {
        0..0x80 => 10_u64.checked_pow(resolution.into()),
        _ => 1_u64.checked_shl(u32::from(resolution) - 0x80),
    }
}

#[cfg(test)]
mod tests;
