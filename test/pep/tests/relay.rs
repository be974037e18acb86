// SPDX-License-Identifier: GPL-2.0-or-later
//! One connection's two halves, over the loopback interface.

use std::io::ErrorKind;
use std::time::Duration;

use pep::relay::{End, relay};
use pep::sockets::reset;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

const BUFFER: usize = 4096;
/// Only a relay that is wrong takes as long.
const PATIENCE: Duration = Duration::from_secs(20);

async fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (near, far) = tokio::join!(TcpStream::connect(address), listener.accept());
    (near.unwrap(), far.unwrap().0)
}

/// The client's and the server's socket, with a relay between them.
async fn split() -> (TcpStream, TcpStream, JoinHandle<End>) {
    let (client, near) = connection().await;
    let (far, server) = connection().await;
    (client, server, tokio::spawn(relay(near, far, BUFFER)))
}

#[tokio::test]
async fn one_side_may_end_while_the_other_goes_on() {
    let (mut client, mut server, relay) = split().await;
    client.write_all(b"question").await.unwrap();
    client.shutdown().await.unwrap();
    let mut question = String::new();
    timeout(PATIENCE, server.read_to_string(&mut question)).await.unwrap().unwrap();
    assert_eq!(question, "question");
    let answer = vec![7; 300_000];
    let sent = answer.clone();
    let sender = tokio::spawn(async move {
        server.write_all(&sent).await.unwrap();
        server.shutdown().await.unwrap();
    });
    let mut received = Vec::new();
    timeout(PATIENCE, client.read_to_end(&mut received)).await.unwrap().unwrap();
    assert!(received == answer);
    sender.await.unwrap();
    assert_eq!(relay.await.unwrap(), End::Closed(8, 300_000));
}

#[tokio::test]
async fn a_reset_reaches_the_other_side() {
    let (client, mut server, relay) = split().await;
    server.write_all(b"some").await.unwrap();
    client.readable().await.unwrap();
    reset(client);
    let seen = timeout(PATIENCE, server.read_u8()).await.unwrap().unwrap_err();
    assert_eq!(seen.kind(), ErrorKind::ConnectionReset);
    assert_eq!(relay.await.unwrap(), End::Reset);
}
