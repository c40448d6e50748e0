//! A TCP stream of which each read returns at most one line.
//!
//! lettre reads replies through a buffer, and keeps the buffer when STARTTLS replaces the stream below it. If that buffer held
//! what somebody on the path sent together with the `220`, lettre would take it for replies that arrived over TLS. With this
//! stream it never holds more than the line that is being read. What follows the `220` is left to TLS, whose handshake fails
//! if it is anything else.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use lettre::transport::smtp::client::AsyncTokioStream;
use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, BufReader, ReadBuf};
use tokio::net::TcpStream;

#[derive(Debug)]
pub(super) struct LineStream(BufReader<TcpStream>);

impl LineStream {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self(BufReader::new(stream))
    }
}

impl AsyncRead for LineStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let received = ready!(Pin::new(&mut self.0).poll_fill_buf(cx))?;
        let line = received.iter().position(|byte| *byte == b'\n').map_or(received.len(), |newline| newline + 1);
        let length = line.min(buf.remaining());
        buf.put_slice(&received[..length]);
        Pin::new(&mut self.0).consume(length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for LineStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

impl AsyncTokioStream for LineStream {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.0.get_ref().peer_addr()
    }
}
