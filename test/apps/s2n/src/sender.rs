// SPDX-License-Identifier: GPL-2.0-or-later
//! What a server's connections sent and took for lost, told when they end.

use pemi_apps::output::print_sender;
use s2n_quic::provider::event::{ConnectionInfo, ConnectionMeta, Subscriber, events};

/// Of all connections of a server.
pub struct Senders;

/// Of one.
#[derive(Default)]
pub struct Sender {
    packets: u64,
    lost: u64,
}

impl Subscriber for Senders {
    type ConnectionContext = Sender;

    fn create_connection_context(&mut self, _: &ConnectionMeta, _: &ConnectionInfo) -> Sender {
        Sender::default()
    }

    fn on_packet_sent(&mut self, sender: &mut Sender, _: &ConnectionMeta, _: &events::PacketSent) {
        sender.packets += 1;
    }

    fn on_packet_lost(
        &mut self,
        sender: &mut Sender,
        _: &ConnectionMeta,
        packet: &events::PacketLost,
    ) {
        // One that was sent to learn whether the path carries that much says nothing of it.
        sender.lost += u64::from(!packet.is_mtu_probe);
    }

    fn on_connection_closed(
        &mut self,
        sender: &mut Sender,
        _: &ConnectionMeta,
        _: &events::ConnectionClosed,
    ) {
        if let Err(error) = print_sender(sender.packets, sender.lost, None) {
            eprintln!("{error:#}");
        }
    }
}
