//! The stream of a connection, below TLS: it counts what the client takes, and is closed only when the client has stopped sending.
//!
//! What the kernel has buffered looks as if the client had taken it. [`limit_unsent_bytes`] keeps that buffer small: otherwise
//! it holds megabytes on a fast network, and moves only after a third of it was read.
//!
//! A request may be answered before its body has arrived, such as one that is too large. If the socket were closed at once, the
//! kernel would reset the connection because of the bytes that nobody read, and the client could lose the response (RFC 9112,
//! section 9.6). So the stream first says that nothing more will come, and then discards what arrives for some time.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;
use tokio::time::{Instant, Sleep, sleep};

use super::connection_timeouts::{ConnectionState, InFlight};

/// How many unsent bytes the kernel keeps for a connection. It asks for more only when half of them were sent, so this is
/// little enough for that to happen within the period at the lowest rate. What is sent and not acknowledged does not count,
/// so this does not limit the speed of a distant client.
const MAX_UNSENT_BYTES: u32 = 32 * 1024;
/// How long the client may take to stop sending.
const MAX_LINGER: Duration = Duration::from_secs(30);
/// How long it may send less than [`MIN_PROGRESS`] and leave its side open.
const MAX_SILENCE: Duration = Duration::from_secs(2);
/// Fewer bytes are no body on its way, but a client that holds the connection.
const MIN_PROGRESS: usize = 1024;
/// How much is discarded at a time.
const CHUNK: usize = 4 * 1024;

/// Limits what the kernel buffers for the connections of a listener, so that their progress is seen. A failure is
/// ignored: connections to slow readers may then be closed too early.
pub(super) fn limit_unsent_bytes(listener: &TcpListener) {
    let _ = socket2::SockRef::from(listener).set_tcp_notsent_lowat(MAX_UNSENT_BYTES);
}

#[derive(Debug)]
pub(super) struct ClientStream<S> {
    stream: S,
    state: Arc<ConnectionState>,
    discarding: Option<Discarding>,
}

#[derive(Debug)]
struct Discarding {
    since: Instant,
    silence: Pin<Box<Sleep>>,
    /// What has arrived since the silence was last over.
    received: usize,
    /// This silence is shorter than that of a client without requests, and so is the time in all.
    _in_use: InFlight,
}

impl<S> ClientStream<S> {
    pub(super) const fn new(stream: S, state: Arc<ConnectionState>) -> Self {
        Self { stream, state, discarding: None }
    }
}

impl<S: AsyncRead + Unpin> ClientStream<S> {
    /// Completes when the client has closed its side, or the time is up.
    fn poll_discard(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let discarding = self.discarding.get_or_insert_with(|| Discarding {
            since: Instant::now(),
            silence: Box::pin(sleep(MAX_SILENCE)),
            received: 0,
            _in_use: self.state.stay_in_use(),
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

impl<S: AsyncRead + Unpin> AsyncRead for ClientStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (filled, result) = (buffer.filled().len(), Pin::new(&mut self.stream).poll_read(context, buffer));
        if buffer.filled().len() > filled {
            self.state.record_read();
        }
        result
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ClientStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.state.record_write(&result);
        result
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.state.record_write(&result);
        result
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.discarding.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
        }
        if self.state.may_have_unread_body() {
            ready!(self.poll_discard(context));
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::net::TcpSocket;
    use tokio::sync::watch;
    use tokio::time::timeout;

    use super::*;

    const KIB: usize = 1024;

    /// A stream whose peer may still be sending, and the peer.
    fn lingering() -> (ClientStream<DuplexStream>, DuplexStream) {
        let (ours, theirs) = duplex(1024);
        let state = ConnectionState::default();
        state.set_unread_body(true);
        (ClientStream::new(ours, Arc::new(state)), theirs)
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
        ClientStream::new(ours, Arc::default()).shutdown().await.unwrap();
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    /// Reads `steps` times `step` bytes, slowly, from a listener's connection that always has more to send. Returns the
    /// largest number of bytes that were read without progress on the side of the sender.
    async fn largest_unseen(receive_buffer: Option<u32>, steps: usize, step: usize) -> usize {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        limit_unsent_bytes(&listener);
        let socket = TcpSocket::new_v4().unwrap();
        receive_buffer.map_or(Ok(()), |size| socket.set_recv_buffer_size(size)).unwrap();
        let mut theirs = socket.connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut ours, _) = listener.accept().await.unwrap();
        let (sender, mut written) = watch::channel(0);
        tokio::spawn(async move {
            while ours.write_all(&[0; KIB]).await.is_ok() {
                sender.send_modify(|count| *count += KIB);
            }
        });
        // Until every buffer on the way is full and nothing moves.
        while timeout(Duration::from_millis(200), written.changed()).await.is_ok() {}
        let (mut unseen, mut largest) = (0, 0);
        for _ in 0..steps {
            theirs.read_exact(&mut vec![0; step]).await.unwrap();
            unseen += step;
            largest = largest.max(unseen);
            // A pause, as a slow peer makes.
            while timeout(Duration::from_millis(20), written.changed()).await.is_ok() {
                unseen = 0;
            }
        }
        largest
    }

    /// At 20 KB/s this much is read within thirteen seconds, on loopback too, where buffers hold megabytes.
    #[tokio::test]
    async fn what_a_slow_peer_has_read_is_seen_as_progress() {
        let unseen = largest_unseen(None, 128, 16 * KIB).await;
        assert!(unseen < 256 * KIB, "{unseen} bytes were read without progress");
    }

    /// 30 KiB is what a client has to take in 30 seconds. A small receive buffer takes bytes as steadily as a slow network
    /// does.
    #[tokio::test]
    async fn on_a_slow_network_progress_is_seen_at_the_lowest_rate() {
        let unseen = largest_unseen(Some(4096), 256, KIB).await;
        assert!(unseen < 30 * KIB, "{unseen} bytes were read without progress");
    }
}
