// SPDX-License-Identifier: GPL-2.0-or-later
//! The two halves of one connection.

use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::TcpStream;

use crate::sockets::reset;

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// In order, with so many bytes from client to server and back.
    Closed(u64, u64),
    /// One side broke off, and so the other was broken off, too.
    Reset,
}

/// Copies both ways until both sides have ended. When one has sent all it has, the
/// other is told so at once and may go on sending.
///
/// What has been read and not yet written is at most `buffer` bytes in each direction;
/// then the sender has to wait, as its window closes.
pub async fn relay(mut client: TcpStream, mut server: TcpStream, buffer: usize) -> End {
    match copy_bidirectional_with_sizes(&mut client, &mut server, buffer, buffer).await {
        Ok((up, down)) => End::Closed(up, down),
        Err(_) => {
            reset(client);
            reset(server);
            End::Reset
        }
    }
}
