// SPDX-License-Identifier: GPL-2.0-or-later
use super::super::pcap::tests::{put, read_all};
use super::*;

fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    body.resize(body.len().next_multiple_of(4), 0);
    let len = body.len() as u32 + FRAME;
    [put(order, &[kind, len]), body, put(order, &[len])].concat()
}

fn section(order: Order) -> Vec<u8> {
    let version = if order == Order::Big { 1 << 16 } else { 1 };
    block(order, SECTION_HEADER, &put(order, &[BYTE_ORDER, version, u32::MAX, u32::MAX]))
}

/// Link type 1 with options.
fn interface(order: Order, options: &[(u16, &[u8])]) -> Vec<u8> {
    let word = |high: u16, low: u16| match order {
        Order::Big => put(order, &[u32::from(high) << 16 | u32::from(low)]),
        Order::Little => put(order, &[u32::from(low) << 16 | u32::from(high)]),
    };
    let mut body = [word(1, 0), put(order, &[0])].concat();
    for (code, value) in options {
        body.extend(word(*code, value.len() as u16));
        body.extend(*value);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    body.extend(word(0, 0));
    block(order, INTERFACE, &body)
}

fn packet(order: Order, interface: u32, ticks: u64, frame: &[u8]) -> Vec<u8> {
    let len = frame.len() as u32;
    let fields = [interface, (ticks >> 32) as u32, ticks as u32, len, len];
    block(order, ENHANCED_PACKET, &[&put(order, &fields), frame].concat())
}

#[test]
fn both_byte_orders_even_in_one_file() {
    let mut file = Vec::new();
    for order in [Order::Little, Order::Big] {
        file.extend(section(order));
        file.extend(interface(order, &[(2, b"br-lan")]));
        // Name resolution, which does not matter here.
        file.extend(block(order, 4, &[0; 40]));
        file.extend(packet(order, 0, 7_000_005, b"frame"));
    }
    let (packets, error) = read_all(&file);
    assert_eq!(error, None);
    assert_eq!(packets, [(7_000_005_000, b"frame".to_vec()), (7_000_005_000, b"frame".to_vec())]);
}

#[test]
fn every_interface_has_a_clock_of_its_own() {
    let order = Order::Big;
    let ten = 10_i64.to_be_bytes();
    let file = [
        section(order),
        interface(order, &[(IF_TSRESOL, &[9]), (IF_TSOFFSET, &ten)]),
        interface(order, &[(IF_TSRESOL, &[0x80 + 10])]),
        interface(order, &[(IF_TSRESOL, &[0]), (IF_TSOFFSET, &(-10_i64).to_be_bytes())]),
        packet(order, 0, 5, b"a"),
        packet(order, 1, 512, b"b"),
        packet(order, 2, 5, b"c"),
        packet(order, 2, u64::MAX, b"d"),
    ];
    let (packets, error) = read_all(&file.concat());
    assert_eq!(error, None);
    let times: Vec<u64> = packets.iter().map(|(time, _)| *time).collect();
    assert_eq!(times, [10_000_000_005, 500_000_000, 0, u64::MAX]);
}

#[test]
fn cut_anywhere_it_gives_what_was_whole() {
    let order = Order::Little;
    let head = [section(order), interface(order, &[(IF_TSRESOL, &[9])])].concat();
    let one = packet(order, 0, 1, b"frame");
    let whole = [head.clone(), one.clone(), one.clone()].concat();
    let boundary = |cut| {
        cut == section(order).len() || cut >= head.len() && (cut - head.len()) % one.len() == 0
    };
    for cut in 0..whole.len() {
        let (packets, error) = read_all(&whole[..cut]);
        assert_eq!(packets.len(), cut.saturating_sub(head.len()) / one.len(), "cut at {cut}");
        assert_eq!(error.is_none(), boundary(cut), "cut at {cut}");
    }
}

#[test]
fn nonsense_is_named() {
    let order = Order::Little;
    let head = [section(order), interface(order, &[])].concat();
    let start = head.len();
    let good = packet(order, 0, 1, b"frame");
    let with = |at: usize, value: u32| {
        let mut block = good.clone();
        block[at..at + 4].copy_from_slice(&value.to_le_bytes());
        read_all(&[head.clone(), block].concat()).1.unwrap().to_string()
    };
    assert_eq!(
        with(4, 13),
        format!(
            "offset {}: block length 13 of type 0x6; at least 32 and a multiple of 4 expected",
            start + 4
        )
    );
    assert!(with(4, 0xffff_fffc).contains("the file ends within a block of type 0x6"));
    assert!(with(8, 3).contains("interface 3; 1 described before"));
    assert!(with(20, u32::MAX).contains("captured length 4294967295; at most 262144 expected"));
    assert!(with(20, 200_000).contains("captured length 200000; at most 8 expected"));
    assert!(with(good.len() - 4, 1).contains("ends with length 1; 40 expected"));
    assert!(with(0, SIMPLE_PACKET).contains("type 3 has no time"));
    assert!(with(0, OBSOLETE_PACKET).contains("type 2 is obsolete"));

    let error = |file: Vec<u8>| read_all(&file).1.unwrap().to_string();
    let mut magic = section(order);
    magic[8] = 0;
    assert!(error(magic).contains("offset 8: byte-order magic 003c2b1a; 1a2b3c4d expected"));
    let mut version = section(order);
    version[12] = 2;
    assert!(error(version).contains("pcapng version 2; 1 expected"));
    let fine = interface(order, &[(IF_TSRESOL, &[20])]);
    assert!(error([section(order), fine].concat()).contains("if_tsresol 0x14"));
    let mut long = interface(order, &[(2, b"lan")]);
    long[18] = 99;
    assert!(error([section(order), long].concat()).contains("option 2 of 99 bytes"));
    let many = interface(order, &[]).repeat(MAX_INTERFACES + 1);
    assert!(error([section(order), many].concat()).contains("more than 1024 interfaces"));
}
