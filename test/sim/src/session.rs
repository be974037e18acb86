// SPDX-License-Identifier: GPL-2.0-or-later
//! The cryptographic session of simulated connections: the messages of a TLS 1.3
//! handshake by their number and sizes, and packets that are not encrypted.
//!
//! A real handshake would make a run depend on the randomness of a TLS library
//! (an ECDSA signature alone is 70 to 72 bytes long). Everything that a network
//! can see is as usual: the messages, the flights that carry them, 16 bytes of
//! authentication tag on each packet. The engine gets the packets as a router
//! does and knows nothing of it.

use std::any::Any;
use std::sync::Arc;

use bytes::BytesMut;
use quinn_proto::crypto::{
    AeadKey, ClientConfig, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey,
    HmacKey, KeyPair, Keys, PacketKey, ServerConfig, Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError};

/// Length of the authentication tag: zeros, and at its end the whole packet number.
pub const TAG_LEN: usize = 16;

/// A message of the handshake (RFC 8446, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Carries the client's transport parameters.
    ClientHello = 1,
    /// Ends the Initial packets.
    ServerHello = 2,
    /// Carries the server's transport parameters.
    EncryptedExtensions = 8,
    /// Stands for certificate and signature.
    Certificate = 11,
    /// Ends the flight of either side.
    Finished = 20,
}

impl Kind {
    fn of(byte: u8) -> Option<Kind> {
        use Kind::*;
        [ClientHello, ServerHello, EncryptedExtensions, Certificate, Finished]
            .into_iter()
            .find(|kind| *kind as u8 == byte)
    }

    /// Typical length with X25519 and a self-signed certificate.
    fn least_len(self) -> usize {
        match self {
            Kind::ClientHello => 320,
            Kind::ServerHello => 94,
            Kind::EncryptedExtensions => 0,
            Kind::Certificate => 660,
            Kind::Finished => 36,
        }
    }

    /// Appends the message: type, 24-bit length, body, zeros up to the usual length.
    pub fn write(self, body: &[u8], out: &mut Vec<u8>) {
        let len = body.len().max(self.least_len().saturating_sub(4));
        out.push(self as u8);
        out.extend_from_slice(&(len as u32).to_be_bytes()[1..]);
        out.extend_from_slice(body);
        out.resize(out.len() + len - body.len(), 0);
    }
}

/// Takes messages out of the bytes of CRYPTO frames.
#[derive(Debug, Default)]
pub struct Messages {
    bytes: Vec<u8>,
}

impl Messages {
    /// More bytes, in order.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next complete message.
    pub fn take(&mut self) -> Option<(Kind, Vec<u8>)> {
        let header = self.bytes.get(..4)?;
        let kind = Kind::of(header[0])?;
        let end = 4 + u32::from_be_bytes([0, header[1], header[2], header[3]]) as usize;
        let body = self.bytes.get(4..end)?.to_vec();
        self.bytes.drain(..end);
        Some((kind, body))
    }
}

/// Transport parameters as the body of a message that may be padded.
pub fn parameters_body(parameters: &[u8]) -> Vec<u8> {
    let mut body = (parameters.len() as u16).to_be_bytes().to_vec();
    body.extend_from_slice(parameters);
    body
}

/// One side of a handshake.
struct PlainSession {
    side: Side,
    local: TransportParameters,
    peer: Option<TransportParameters>,
    messages: Messages,
    /// The peer's last message of interest.
    seen: Option<Kind>,
    /// How many keys were given out: handshake, 1-RTT.
    keys: u8,
    hello_written: bool,
}

impl PlainSession {
    fn new(side: Side, local: &TransportParameters) -> Box<PlainSession> {
        let messages = Messages::default();
        let (peer, seen) = (None, None);
        Box::new(PlainSession {
            side,
            local: *local,
            peer,
            messages,
            seen,
            keys: 0,
            hello_written: false,
        })
    }

    fn local_body(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.local.write(&mut bytes);
        parameters_body(&bytes)
    }
}

impl Session for PlainSession {
    fn initial_keys(&self, _: &ConnectionId, _: Side) -> Keys {
        plain_keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        match self.side {
            Side::Client => self.keys < 2,
            Side::Server => self.seen != Some(Kind::Finished),
        }
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        self.messages.push(bytes);
        while let Some((kind, body)) = self.messages.take() {
            if matches!(kind, Kind::ClientHello | Kind::EncryptedExtensions) {
                let len = usize::from(u16::from_be_bytes([body[0], body[1]]));
                self.peer = Some(TransportParameters::read(self.side, &mut &body[2..2 + len])?);
            }
            self.seen = Some(kind);
        }
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer)
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        // What is written still belongs to the packets before the keys returned.
        match (self.side, self.seen, self.keys) {
            (Side::Client, None, 0) if !self.hello_written => {
                self.hello_written = true;
                Kind::ClientHello.write(&self.local_body(), out);
                return None;
            }
            (Side::Client, Some(_), 0) => {}
            (Side::Client, Some(Kind::Finished), 1) => Kind::Finished.write(&[], out),
            (Side::Server, Some(_), 0) => Kind::ServerHello.write(&[], out),
            (Side::Server, Some(_), 1) => {
                Kind::EncryptedExtensions.write(&self.local_body(), out);
                Kind::Certificate.write(&[], out);
                Kind::Finished.write(&[], out);
            }
            _ => return None,
        }
        self.keys += 1;
        Some(plain_keys())
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(plain_keys().packet)
    }

    fn is_valid_retry(&self, _: &ConnectionId, _: &[u8], _: &[u8]) -> bool {
        false
    }

    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

/// Gives out plain sessions, and plain keys wherever quinn-proto wants keys.
pub struct Plain;

impl ClientConfig for Plain {
    fn start_session(
        self: Arc<Self>,
        _: u32,
        _: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(PlainSession::new(Side::Client, parameters))
    }
}

impl ServerConfig for Plain {
    fn initial_keys(&self, _: u32, _: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(plain_keys())
    }

    fn retry_tag(&self, _: u32, _: &ConnectionId, _: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(
        self: Arc<Self>,
        _: u32,
        parameters: &TransportParameters,
    ) -> Box<dyn Session> {
        PlainSession::new(Side::Server, parameters)
    }
}

fn plain_keys() -> Keys {
    fn pair<K: ?Sized>(key: fn() -> Box<K>) -> KeyPair<Box<K>> {
        KeyPair { local: key(), remote: key() }
    }
    Keys { header: pair(|| Box::new(Plain)), packet: pair(|| Box::new(Plain)) }
}

impl PacketKey for Plain {
    fn encrypt(&self, number: u64, packet: &mut [u8], _: usize) {
        if let Some(tag) = packet.last_chunk_mut() {
            *tag = number.to_be_bytes();
        }
    }

    fn decrypt(&self, number: u64, _: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let len = payload.len().checked_sub(TAG_LEN).ok_or(CryptoError)?;
        // A packet whose shortened number was completed wrongly, as that of a copy
        // that comes very late, does not decrypt.
        let tag = payload.last_chunk().copied().map_or(0, u64::from_be_bytes);
        if tag != number {
            return Err(CryptoError);
        }
        payload.truncate(len);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG_LEN
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

impl HeaderKey for Plain {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}

    fn encrypt(&self, _: usize, _: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        16
    }
}

impl HmacKey for Plain {
    fn sign(&self, data: &[u8], out: &mut [u8]) {
        // A stateless reset token must only differ from those of other IDs.
        for (at, byte) in out.iter_mut().enumerate() {
            *byte = data.get(at).copied().unwrap_or(0x5a);
        }
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, _: &[u8], _: &[u8]) -> Result<(), CryptoError> {
        Ok(())
    }
}

impl HandshakeTokenKey for Plain {
    fn aead_from_hkdf(&self, _: &[u8]) -> Box<dyn AeadKey> {
        Box::new(Plain)
    }
}

impl AeadKey for Plain {
    fn seal(&self, data: &mut Vec<u8>, _: &[u8]) -> Result<(), CryptoError> {
        data.resize(data.len() + TAG_LEN, 0);
        Ok(())
    }

    fn open<'a>(&self, data: &'a mut [u8], _: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        let len = data.len().checked_sub(TAG_LEN).ok_or(CryptoError)?;
        Ok(&mut data[..len])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_taken_out_when_they_are_complete() {
        let mut bytes = Vec::new();
        Kind::EncryptedExtensions.write(&parameters_body(b"abc"), &mut bytes);
        Kind::Finished.write(&[], &mut bytes);
        let mut messages = Messages::default();
        messages.push(&bytes[..7]);
        assert_eq!(messages.take(), None);
        messages.push(&bytes[7..]);
        assert_eq!(messages.take(), Some((Kind::EncryptedExtensions, b"\0\x03abc".to_vec())));
        assert_eq!(messages.take(), Some((Kind::Finished, vec![0; 32])));
        assert_eq!(messages.take(), None);
    }
}
