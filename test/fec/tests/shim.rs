// SPDX-License-Identifier: GPL-2.0-or-later
//! Two shims and a path between them that loses packets, over the loopback interface.

use std::net::SocketAddr;
use std::time::Duration;

use fec::encoder::Code;
use fec::shim::{Role, Settings, Shim};
use fec::totals::Totals;
use tokio::net::UdpSocket;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Only what is wrong takes as long.
const PATIENCE: Duration = Duration::from_secs(20);
const LOCAL: &str = "127.0.0.1:0";

struct Running {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Totals>,
}

impl Running {
    async fn new(role: Role, connect: SocketAddr) -> Running {
        let settings = Settings {
            role,
            listen: LOCAL.parse().unwrap(),
            connect,
            code: Code { k: 2, n: 3 },
            flush: Duration::from_millis(5),
            mtu: 1500,
        };
        let shim = Shim::bind(settings).await.unwrap();
        let address = shim.address().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let stopped = async { drop(stopped.await) };
            shim.run(stopped).await.unwrap()
        });
        Running { address, stop, task }
    }

    async fn stop(self) -> Totals {
        self.stop.send(()).unwrap();
        self.task.await.unwrap()
    }
}

/// A path that loses every third packet towards `to`, from the first on, and none back.
async fn lossy_path(to: SocketAddr) -> SocketAddr {
    let near = UdpSocket::bind(LOCAL).await.unwrap();
    let far = UdpSocket::bind(LOCAL).await.unwrap();
    far.connect(to).await.unwrap();
    let address = near.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut there, mut back) = ([0; 2000], [0; 2000]);
        let (mut count, mut peer) = (0, None);
        loop {
            tokio::select! {
                Ok((length, from)) = near.recv_from(&mut there) => {
                    peer = Some(from);
                    count += 1;
                    if count % 3 != 1 {
                        far.send(&there[..length]).await.unwrap();
                    }
                }
                Ok(length) = far.recv(&mut back) => {
                    near.send_to(&back[..length], peer.unwrap()).await.unwrap();
                }
            }
        }
    });
    address
}

#[tokio::test]
async fn a_program_sees_no_loss() {
    let program = UdpSocket::bind(LOCAL).await.unwrap();
    let server = Running::new(Role::Server, program.local_addr().unwrap()).await;
    let path = lossy_path(server.address).await;
    let client = Running::new(Role::Client, path).await;
    let user = UdpSocket::bind(LOCAL).await.unwrap();
    user.connect(client.address).await.unwrap();
    // More than the path carries; nobody is told, as on a path with a lower limit.
    user.send(&[1; 1463]).await.unwrap();

    let mut buffer = [0; 2000];
    for number in 0..100u8 {
        // Two at a time, a full group, of which the first is lost.
        for part in [number, number + 100] {
            user.send(&vec![part; 1462]).await.unwrap();
        }
        let mut parts = Vec::new();
        for _ in 0..2 {
            let heard = timeout(PATIENCE, program.recv_from(&mut buffer)).await.unwrap();
            let (length, from) = heard.unwrap();
            assert_eq!(length, 1462);
            parts.push(buffer[0]);
            // The answer finds its way back through the conversation.
            program.send_to(&buffer[..1], from).await.unwrap();
            assert_eq!(timeout(PATIENCE, user.recv(&mut buffer)).await.unwrap().unwrap(), 1);
        }
        parts.sort_unstable();
        assert_eq!(parts, [number, number + 100]);
    }

    let (client, server) = (client.stop().await, server.stop().await);
    assert_eq!((client.sent.sources, client.sent.repairs, client.sent.too_large), (200, 100, 1));
    let received = server.received;
    assert_eq!((received.sources, received.recovered, received.unrecoverable), (100, 100, 0));
    assert_eq!((server.sent.sources, client.received.sources), (200, 200));
    assert_eq!(client.received.malformed + received.malformed, 0);
}
