// SPDX-License-Identifier: GPL-2.0-or-later
//! A conversation between a client and a server, packet by packet.

use std::net::UdpSocket;
use std::os::fd::{FromRawFd, OwnedFd};
use std::thread;
use std::time::Duration;

use pemi::daemon::control;
use serde_json::{Value, json};

use super::{Daemon, Net, PATIENCE, PORT};

/// Server datagrams that the engine sends twice at the beginning.
pub const TWICE: usize = 12;
/// Stands in for the delay of a wireless hop, which veth pairs do not have.
/// The engine gives a repair a few of them, so the longer, the less a test
/// minds a busy machine; 100 ms is the longest that anything is held.
pub const HOP: Duration = Duration::from_millis(20);
/// How long the server and the way to it take, at first: where the hop is most of the path nothing is held
/// before something was repaired.
const WAN: Duration = Duration::from_millis(160);
/// Within this time a copy comes, if one comes: holding ends before it.
pub const COPY: Duration = Duration::from_millis(500);
/// Client packets: an acknowledgement, and one that names a hole.
pub const PLAIN: usize = 36;
pub const TELLING: usize = 38;

/// Both ends of a UDP flow. Every datagram has its number in its last four
/// bytes.
pub struct Talk {
    pub client: UdpSocket,
    pub server: UdpSocket,
    /// What the server has sent, and how often each has arrived.
    pub down: Vec<(Vec<u8>, usize)>,
    pub up: Vec<Vec<u8>>,
}

impl Talk {
    pub fn new(net: &Net, (client, server): (&str, &str)) -> Talk {
        let client = net.socket("c", client, 0);
        let server = net.socket("s", server, PORT);
        client.connect(server.local_addr().unwrap()).unwrap();
        server.connect(client.local_addr().unwrap()).unwrap();
        Talk { client, server, down: Vec::new(), up: Vec::new() }
    }

    /// The same with the greetings exchanged and the client's acknowledgements
    /// known.
    pub fn settled(net: &Net, ends: (&str, &str)) -> Talk {
        let mut talk = Talk::new(net, ends);
        talk.greet();
        while talk.down.len() < 2 * TWICE {
            talk.say(short(1000));
            talk.say(short(1000));
            talk.client_has_all();
            thread::sleep(HOP);
            talk.reply(short(PLAIN));
            talk.server_hears(talk.up.len() - 1);
        }
        talk
    }

    pub fn greet(&mut self) {
        self.reply(long(0, 1200));
        self.server_hears(0);
        thread::sleep(WAN);
        self.say(long(0, 1200));
        self.say(long(2, 700));
        self.client_has_all();
        thread::sleep(HOP);
        self.reply(long(2, 100));
        self.server_hears(1);
    }

    /// The server says something.
    pub fn say(&mut self, datagram: Vec<u8>) {
        let datagram = numbered(datagram, self.down.len());
        self.server.send(&datagram).unwrap();
        self.down.push((datagram, 0));
    }

    /// The client says something.
    pub fn reply(&mut self, datagram: Vec<u8>) {
        let datagram = numbered(datagram, self.up.len());
        self.client.send(&datagram).unwrap();
        self.up.push(datagram);
    }

    /// The client takes the next datagram, which has to be as it was sent.
    pub fn client_hears(&mut self) -> usize {
        let got = receive(&self.client);
        let number = number_of(&got);
        let (sent, arrivals) = &mut self.down[number];
        assert!(got == *sent, "datagram {number} arrived altered");
        *arrivals += 1;
        number
    }

    pub fn client_has_all(&mut self) {
        while self.down.iter().any(|(_, arrivals)| *arrivals == 0) {
            self.client_hears();
        }
    }

    pub fn copies(&self) -> usize {
        self.down.iter().map(|(_, arrivals)| arrivals.saturating_sub(1)).sum()
    }

    /// The server takes the next datagram, which has to be this one.
    pub fn server_hears(&self, number: usize) {
        assert_eq!(self.server_takes(), number);
    }

    /// The server takes the next datagram, whichever it is.
    pub fn server_takes(&self) -> usize {
        let got = receive(&self.server);
        let number = number_of(&got);
        assert!(got == self.up[number], "datagram {number} arrived altered");
        number
    }

    pub fn flow(&self, daemon: &Daemon) -> Value {
        let answer = control::ask(&daemon.control, &json!({"method": "flows"})).unwrap();
        let name = self.client.local_addr().unwrap().to_string();
        let flows = answer["flows"].as_array().unwrap();
        flows.iter().find(|flow| flow["client"] == name).unwrap().clone()
    }
}

pub fn receive(socket: &UdpSocket) -> Vec<u8> {
    let mut buffer = [0; 2048];
    let len = socket.recv(&mut buffer).expect("nothing arrives");
    buffer[..len].to_vec()
}

pub fn numbered(mut datagram: Vec<u8>, number: usize) -> Vec<u8> {
    let at = datagram.len() - 4;
    datagram[at..].copy_from_slice(&(number as u32).to_be_bytes());
    datagram
}

pub fn number_of(datagram: &[u8]) -> usize {
    u32::from_be_bytes(*datagram.last_chunk().unwrap()) as usize
}

/// A datagram of QUIC version 1 with a long header: 0 Initial, 2 Handshake.
pub fn long(kind: u8, len: usize) -> Vec<u8> {
    let mut datagram = vec![0xc0 | kind << 4, 0, 0, 0, 1];
    datagram.extend([4, 1, 2, 3, 4, 4, 9, 9, 9, 9]);
    if kind == 0 {
        // No token.
        datagram.push(0);
    }
    let body = len - datagram.len() - 2;
    datagram.extend((0x4000 | body as u16).to_be_bytes());
    datagram.resize(len, 0x55);
    datagram
}

/// One with a short header.
pub fn short(len: usize) -> Vec<u8> {
    let mut datagram = vec![0x41, 9, 9, 9, 9];
    datagram.resize(len, 0x55);
    datagram
}

pub fn count(status: &Value, pointer: &str) -> usize {
    status.pointer(pointer).unwrap().as_u64().unwrap() as usize
}

/// The IP packets that come to the client.
pub fn wire(net: &Net, client: &str) -> UdpSocket {
    let protocol = if client.contains(':') { libc::ETH_P_IPV6 } else { libc::ETH_P_IP };
    let protocol = i32::from((protocol as u16).to_be());
    let fd = net.inside("c", || {
        // SAFETY: no pointers.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_DGRAM, protocol) };
        assert!(fd >= 0, "{}", std::io::Error::last_os_error());
        // SAFETY: a new descriptor that nobody else knows.
        unsafe { OwnedFd::from_raw_fd(fd) }
    });
    // Not UDP, but receiving with a timeout is the same.
    let socket = UdpSocket::from(fd);
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Copies are the same packets down to the IP header. Checksums are not
/// compared: veth pairs leave those of the first ones open, and those of
/// copies were checked by the client's kernel.
pub fn compare(wire: &UdpSocket, talk: &Talk) {
    let mut packets: Vec<Option<Vec<u8>>> = vec![None; talk.down.len()];
    let mut left = talk.down.len() + talk.copies();
    while left > 0 {
        let mut packet = receive(wire);
        let (header, protocol) =
            if packet[0] >> 4 == 4 { (20, packet[9]) } else { (40, packet[6]) };
        if i32::from(protocol) != libc::IPPROTO_UDP {
            continue;
        }
        left -= 1;
        packet[header + 6..header + 8].fill(0);
        let first = packets[number_of(&packet)].get_or_insert_with(|| packet.clone());
        assert!(packet == *first, "{packet:?} {first:?}");
    }
}

/// Without answers to probes the replies alone tell the round trip, which the
/// tests make long.
pub fn no_echo(net: &Net) {
    net.sysctl("c", "ipv4/icmp_echo_ignore_all");
    net.sysctl("c", "ipv6/icmp/echo_ignore_all");
}

/// Pretends that a packet was lost and waits for its copy; false if there is none, as on
/// a machine that stands still just then: the reply says nothing when it is late.
pub fn hole(talk: &mut Talk) -> bool {
    let copies = talk.down[TWICE..].iter().map(|(_, arrivals)| arrivals - 1).sum::<usize>();
    talk.say(short(1000));
    talk.say(short(1000));
    talk.client_has_all();
    thread::sleep(HOP);
    talk.reply(short(TELLING));
    talk.client.set_read_timeout(Some(COPY)).unwrap();
    let copy = talk.client.peek(&mut [0]).is_ok();
    talk.client.set_read_timeout(Some(PATIENCE)).unwrap();
    while copy
        && talk.down[TWICE..].iter().map(|(_, arrivals)| arrivals - 1).sum::<usize>() == copies
    {
        talk.client_hears();
    }
    copy
}

/// Both ways in which packets to clients are seen, the queue and a ring: what the rules are made
/// for, and the daemon's flags.
pub fn ways() -> [(Value, Vec<&'static str>); 2] {
    let queue = (json!({}), vec!["--device", "lan0"]);
    [queue, (ring(), RING.to_vec())]
}

/// Flags of a daemon with a ring.
pub const RING: [&str; 6] = ["--device", "lan0", "--repair", "infer", "--capture", "ring"];

/// What the rules for it are made for.
pub fn ring() -> Value {
    json!({"device": "lan0", "repair": "infer", "capture": "ring"})
}
