// SPDX-License-Identifier: GPL-2.0-or-later
//! TCP and UDP of any port through the built daemon (`protocols` `all`). Nobody reports of a
//! cable, so what is seen here is that nothing breaks: segments that were merged on their way, the
//! checksums that hardware was to fill in, the daemon's own way and the way back to the kernel's.

#[allow(dead_code, reason = "each test file uses a part of it")]
mod lab;

use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;

use lab::{ENDS, Net, PATIENCE};
use serde_json::json;

/// More than what is awaited at a time, and enough for the kernel to merge segments.
const DOWN: usize = 8 << 20;
const UP: usize = 2 << 20;
/// No port that `port` names.
const PORT: u16 = 8080;
const ARGUMENTS: [&str; 6] = ["--device", "lan0", "--repair", "radio", "--protocols", "all"];

fn net() -> Option<Net> {
    Net::ruled(&json!({"device": "lan0", "repair": "radio", "protocols": "all"}))
}

fn bytes(len: usize) -> Vec<u8> {
    let mut state = len as u32;
    let next = |_| {
        state = state.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
        (state >> 24) as u8
    };
    (0..len).map(next).collect()
}

/// The server's side: says its part when it has been asked, and gives what it was told.
fn serve(listener: TcpListener) -> Vec<u8> {
    let (mut stream, _) = listener.accept().unwrap();
    stream.read_exact(&mut [0; 3]).unwrap();
    stream.write_all(&bytes(DOWN)).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut told = Vec::new();
    stream.read_to_end(&mut told).unwrap();
    told
}

/// A connection with a request, a download and an upload.
fn converse(net: &Net, client: &str, server: &str) {
    let server = SocketAddr::new(server.parse::<IpAddr>().unwrap(), PORT);
    let listener = net.inside("s", || TcpListener::bind(server).unwrap());
    let serving = thread::spawn(move || serve(listener));
    let mut stream = net.inside("c", || TcpStream::connect_timeout(&server, PATIENCE).unwrap());
    assert_eq!(stream.local_addr().unwrap().ip().to_string(), client.replace(":0::", "::"));
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"get").unwrap();
    let mut got = Vec::new();
    stream.read_to_end(&mut got).unwrap();
    assert!(got == bytes(DOWN), "{} bytes, or others", got.len());
    stream.write_all(&bytes(UP)).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let told = serving.join().unwrap();
    assert!(told == bytes(UP), "{} bytes, or others", told.len());
}

#[test]
fn tcp_passes_unaltered() {
    let Some(net) = net() else { return };
    let mut daemon = net.start(&ARGUMENTS);
    for (client, server) in ENDS {
        converse(&net, client, server);
    }
    let status = daemon.until(|_| true);
    let number = |path: &str| status.pointer(path).and_then(|it| it.as_u64()).unwrap();
    // The trials of the client's two addresses.
    assert!(number("/reports/asked") >= 8, "{status}");
    assert_eq!((number("/reports/losses"), number("/resent/packets")), (0, 0), "{status}");
    assert_eq!((number("/packets/quic"), number("/packets/malformed")), (0, 0), "{status}");
    assert_eq!((number("/queues/0/verdict_errors"), number("/concealed/now")), (0, 0), "{status}");
    // The daemon has seen no data of the client's: the rules do not queue it.
    assert!(number("/bytes/up") < UP as u64 / 4, "{status}");
}

#[test]
fn udp_of_any_port_passes_unaltered() {
    let Some(net) = net() else { return };
    let mut daemon = net.start(&ARGUMENTS);
    for (client, server) in ENDS {
        let client = net.socket("c", client, 50000);
        let server = net.socket("s", server, PORT);
        let mut buffer = [0; 4096];
        // Also those that the kernel takes apart and puts together again.
        for len in [1, 60, 1200, 1472, 3000] {
            let payload = bytes(len);
            for (from, to) in [(&client, &server), (&server, &client)] {
                from.send_to(&payload, to.local_addr().unwrap()).unwrap();
                let (got, sender) = to.recv_from(&mut buffer).unwrap();
                assert_eq!(sender, from.local_addr().unwrap());
                assert!(buffer[..got] == payload, "{len}");
            }
        }
    }
    let status = daemon.until(|_| true);
    assert!(status["packets"]["down"].as_u64() >= Some(10), "{status}");
    assert_eq!(status["queues"][0]["verdict_errors"], 0, "{status}");
}
