// SPDX-License-Identifier: GPL-2.0-or-later
//! What of an 802.11 frame the air and its log have to know.

/// Of the frame control field's first byte.
const TYPE_MASK: u8 = 0x0c;
const TYPE_DATA: u8 = 0x08;
/// A data frame's subtype has bits of its own for "with quality of service" and "without data".
const SUBTYPE_QOS: u8 = 0x80;
const SUBTYPE_NO_DATA: u8 = 0x40;
/// Of its second byte.
const TO_DISTRIBUTION: u8 = 0x01;
const FROM_DISTRIBUTION: u8 = 0x02;
const PROTECTED: u8 = 0x40;

const HEADER: usize = 24;
const HEADER_QOS: usize = 26;
/// LLC and SNAP, up to the type of what follows.
const SNAP: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0];
const SEQUENCE_AT: usize = 22;
const QOS_AT: usize = 24;
const TID_MASK: u8 = 0x0f;
/// In a request for a block ack session, after category, action, token, parameters and timeout.
const SESSION_START_AT: usize = HEADER + 7;

/// Whether a frame carries data at all: all else is upkeep of the network.
pub fn is_data(frame: &[u8]) -> bool {
    frame.first().is_some_and(|control| control & TYPE_MASK == TYPE_DATA)
}

/// The traffic identifier of a frame that may go into an aggregate.
pub fn tid(frame: &[u8]) -> Option<u8> {
    let with_data = frame.first()? & (SUBTYPE_QOS | SUBTYPE_NO_DATA) == SUBTYPE_QOS;
    (is_data(frame) && with_data && frame.len() > HEADER_QOS).then(|| frame[QOS_AT] & TID_MASK)
}

/// Its sequence number.
pub fn sequence(frame: &[u8]) -> u16 {
    match frame.get(SEQUENCE_AT..HEADER) {
        Some(&[low, high]) => u16::from_le_bytes([low, high]) >> 4,
        _ => 0,
    }
}

/// Gives it another sequence number. No cipher protects that field.
pub fn set_sequence(frame: &mut [u8], sequence: u16) {
    if let Some(field) = frame.get_mut(SEQUENCE_AT..HEADER) {
        let fragment = u16::from(field[0] & 0x0f);
        field.copy_from_slice(&(sequence << 4 | fragment).to_le_bytes());
    }
}

/// The traffic identifier of which a request for a block ack session tells.
pub fn session_request(frame: &[u8]) -> Option<u8> {
    const ACTION: u8 = 0xd0;
    // Category and action of an "ADDBA request".
    let body = frame.get(HEADER..).filter(|_| frame[0] == ACTION)?;
    let parameters = body.strip_prefix(&[3, 0])?.get(1)?;
    (frame.len() >= SESSION_START_AT + 2).then_some(parameters >> 2 & TID_MASK)
}

/// The first sequence number of the session in such a request.
pub fn set_session_start(frame: &mut [u8], start: u16) {
    if let Some(field) = frame.get_mut(SESSION_START_AT..SESSION_START_AT + 2) {
        field.copy_from_slice(&(start << 4).to_le_bytes());
    }
}

/// The Ethernet frame inside, as an interface would hand it on; none if there is none or it
/// is encrypted.
pub fn ethernet(frame: &[u8]) -> Option<Vec<u8>> {
    let length = if tid(frame).is_some() { HEADER_QOS } else { HEADER };
    let header = frame.get(..length)?;
    let body = frame.get(length..)?.strip_prefix(&SNAP)?;
    if !is_data(frame) || header[1] & PROTECTED != 0 {
        return None;
    }
    let (one, two, three) = (&header[4..10], &header[10..16], &header[16..22]);
    let (destination, source) = match header[1] & (TO_DISTRIBUTION | FROM_DISTRIBUTION) {
        TO_DISTRIBUTION => (three, two),
        FROM_DISTRIBUTION => (one, three),
        _ => (one, two),
    };
    Some([destination, source, body].concat())
}

/// The block ack request by which a sender tells that nothing before `start` will come: with
/// the addresses of a frame that it gave up.
pub fn block_ack_request(lost: &[u8], tid: u8, start: u16) -> Vec<u8> {
    const BLOCK_ACK_REQUEST: [u8; 2] = [0x84, 0];
    const COMPRESSED: u16 = 0x0004;
    // hwsim takes nothing shorter than a data frame's header; mac80211 looks at no more than it
    // knows.
    let mut request = BLOCK_ACK_REQUEST.to_vec();
    request.extend([0; 2]);
    request.extend(&lost[4..16]);
    request.extend((COMPRESSED | u16::from(tid) << 12).to_le_bytes());
    request.extend((start << 4).to_le_bytes());
    request.resize(HEADER, 0);
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From an access point to a station: quality of service, sequence number 0xabc, TID 5.
    fn down() -> Vec<u8> {
        let mut frame = vec![0x88, FROM_DISTRIBUTION, 0, 0];
        frame.extend([[1; 6], [2; 6], [3; 6]].concat());
        frame.extend([0xc0, 0xab, 0x05, 0]);
        frame.extend(SNAP);
        frame.extend([8, 0, b'x']);
        frame
    }

    #[test]
    fn a_data_frame_is_understood() {
        let frame = down();
        assert!(is_data(&frame));
        assert_eq!(tid(&frame), Some(5));
        assert_eq!(sequence(&frame), 0xabc);
        assert_eq!(ethernet(&frame).unwrap(), [&[1; 6][..], &[3; 6], &[8, 0, b'x']].concat());
    }

    #[test]
    fn the_way_up_has_other_addresses() {
        let mut frame = down();
        frame[1] = TO_DISTRIBUTION;
        assert_eq!(ethernet(&frame).unwrap()[..12], [[3; 6], [2; 6]].concat());
    }

    #[test]
    fn what_is_encrypted_or_no_data_has_nothing_inside() {
        let mut frame = down();
        frame[1] |= PROTECTED;
        assert_eq!(ethernet(&frame), None);
        let mut beacon = down();
        beacon[0] = 0x80;
        assert_eq!((ethernet(&beacon), tid(&beacon)), (None, None));
        // A station that tells only that it goes to sleep.
        let mut null = down();
        null[0] = 0xc8;
        assert_eq!(tid(&null), None);
        for end in 0..HEADER_QOS {
            assert_eq!(ethernet(&down()[..end]), None);
        }
    }

    #[test]
    fn a_frame_can_be_numbered_again() {
        let mut frame = down();
        set_sequence(&mut frame, 0x123);
        assert_eq!(sequence(&frame), 0x123);
        assert_eq!(frame[..SEQUENCE_AT], down()[..SEQUENCE_AT]);
        assert_eq!(frame[HEADER..], down()[HEADER..]);
    }

    #[test]
    fn the_start_of_a_session_can_be_set() {
        let mut request = vec![0xd0; HEADER];
        // TID 5, a window of 64, from 0x001 on.
        request.extend([3, 0, 9, 0x16, 0x10, 0, 0, 0x10, 0x00]);
        assert_eq!(session_request(&request), Some(5));
        set_session_start(&mut request, 0xabc);
        assert_eq!(request[HEADER..], [3, 0, 9, 0x16, 0x10, 0, 0, 0xc0, 0xab]);
        assert_eq!(session_request(&request[..HEADER + 8]), None);
        assert_eq!(session_request(&down()), None);
    }

    #[test]
    fn a_request_has_the_addresses_and_the_number() {
        let request = block_ack_request(&down(), 5, 0xfff);
        assert_eq!(request[..4], [0x84, 0, 0, 0]);
        assert_eq!(request[4..16], [[1; 6], [2; 6]].concat());
        assert_eq!(request[16..], [0x04, 0x50, 0xf0, 0xff, 0, 0, 0, 0]);
    }
}
