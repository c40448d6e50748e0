//! A stream that is closed only when the peer has stopped sending, if it may still be.
//!
//! A request may be answered before its body has arrived, such as one that is too large. If the socket were closed at once, the
//! kernel would reset the connection because of the bytes that nobody read, and the peer could lose the response (RFC 9112,
//! section 9.6). So the stream first says that nothing more will come, and then discards what arrives for some time.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use super::connection_life::ConnectionLife;

/// How long the peer may take to stop sending.
const MAX_LINGER: Duration = Duration::from_secs(30);
/// How long it may send less than [`MIN_PROGRESS`] and leave its side open.
const MAX_SILENCE: Duration = Duration::from_secs(2);
/// Fewer bytes are no body on its way, but a client that holds the connection.
const MIN_PROGRESS: usize = 1024;
/// How much is discarded at a time.
const CHUNK: usize = 4 * 1024;

#[derive(Debug)]
pub(super) struct Lingering<S> {
    stream: S,
    life: Arc<ConnectionLife>,
    discarding: Option<Discarding>,
}

#[derive(Debug)]
struct Discarding {
    since: Instant,
    silence: Pin<Box<Sleep>>,
    /// What has arrived since the silence was last over.
    received: usize,
}

impl<S> Lingering<S> {
    pub(super) const fn new(stream: S, life: Arc<ConnectionLife>) -> Self {
        Self { stream, life, discarding: None }
    }
}

impl<S: AsyncRead + Unpin> Lingering<S> {
    /// Completes when the peer has closed its side, or the time is up.
    fn poll_discard(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let discarding = self.discarding.get_or_insert_with(|| Discarding {
            since: Instant::now(),
            silence: Box::pin(sleep(MAX_SILENCE)),
            received: 0,
        });
        let mut chunk = [0; CHUNK];
        loop {
            let mut read = ReadBuf::new(&mut chunk);
            match Pin::new(&mut self.stream).poll_read(context, &mut read) {
                Poll::Ready(Ok(())) if !read.filled().is_empty() && discarding.since.elapsed() < MAX_LINGER => {
                    discarding.received += read.filled().len();
                    if discarding.received >= MIN_PROGRESS {
                        discarding.received = 0;
                        discarding.silence.as_mut().reset(Instant::now() + MAX_SILENCE);
                    }
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return discarding.silence.as_mut().poll(context),
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Lingering<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Lingering<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.discarding.is_none() {
            std::task::ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
        }
        if self.life.may_have_unread_body() {
            std::task::ready!(self.poll_discard(context));
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;

    /// A stream whose peer may still be sending, and the peer.
    fn lingering() -> (Lingering<DuplexStream>, DuplexStream) {
        let (ours, theirs) = duplex(1024);
        let life = ConnectionLife::begin();
        life.set_unread_body(true);
        (Lingering::new(ours, Arc::new(life)), theirs)
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_peer_still_sends_is_read_until_it_closes() {
        let (mut ours, mut theirs) = lingering();
        let sending = tokio::spawn(async move {
            for _ in 0..20 {
                theirs.write_all(&[0; 4096]).await.unwrap();
                sleep(Duration::from_secs(1)).await;
            }
            theirs.shutdown().await.unwrap();
            let mut response = String::new();
            theirs.read_to_string(&mut response).await.unwrap();
            response
        });
        let start = Instant::now();
        ours.write_all(b"too large").await.unwrap();
        ours.shutdown().await.unwrap();
        assert_eq!(start.elapsed().as_secs(), 20);
        assert_eq!(sending.await.unwrap(), "too large");
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_is_silent_or_never_stops_is_closed() {
        let (mut ours, _silent) = lingering();
        let start = Instant::now();
        ours.shutdown().await.unwrap();
        assert_eq!(start.elapsed(), MAX_SILENCE);

        // A byte now and then is as good as silence.
        for (bytes, closed_after) in [(MIN_PROGRESS, MAX_LINGER), (1, MAX_SILENCE)] {
            let (mut ours, mut endless) = lingering();
            let start = Instant::now();
            let sending = tokio::spawn(async move {
                while endless.write_all(&vec![0; bytes]).await.is_ok() {
                    sleep(Duration::from_secs(1)).await;
                }
            });
            ours.shutdown().await.unwrap();
            assert_eq!(start.elapsed(), closed_after);
            drop(ours);
            sending.await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_with_nothing_unread_is_closed_at_once() {
        let (ours, _theirs) = duplex(1024);
        let start = Instant::now();
        Lingering::new(ours, Arc::new(ConnectionLife::begin())).shutdown().await.unwrap();
        assert_eq!(start.elapsed(), Duration::ZERO);
    }
}
