//! A stream whose writes fail when the peer takes what is sent too slowly for too long.
//!
//! A peer has an allowance of time. Waiting for it uses the allowance up, and every byte that it takes adds to it, at
//! the rate that is required. So a write fails with `TimedOut` if the peer takes less than that rate for the whole
//! period, and never otherwise. Time in which there is nothing to send does not count.
//!
//! What the kernel has buffered looks as if the peer had taken it. [`limit_unsent_bytes`] keeps that buffer small: otherwise
//! it holds megabytes on a fast network, and moves only after a third of it was read.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;
use tokio::time::{Instant, Sleep, sleep_until};

/// How many unsent bytes the kernel keeps for a connection. It asks for more only when half of them were sent, so this is
/// little enough for that to happen within the period at the lowest rate. What is sent and not acknowledged does not count,
/// so this does not limit the speed of a distant peer.
const MAX_UNSENT_BYTES: u32 = 32 * 1024;

/// Limits what the kernel buffers for the connections of a listener, so that their progress is seen. A failure is
/// ignored: connections to slow readers may then be closed too early.
pub(super) fn limit_unsent_bytes(listener: &TcpListener) {
    #[cfg(target_os = "linux")]
    let _ = socket2::SockRef::from(listener).set_tcp_notsent_lowat(MAX_UNSENT_BYTES);
    #[cfg(not(target_os = "linux"))]
    let _ = (listener, MAX_UNSENT_BYTES);
}

/// The rate at which a peer has to take bytes, and for how long it may be slower.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadRate {
    pub bytes_per_second: u32,
    pub period: Duration,
}

#[derive(Debug)]
pub(super) struct MinimumRate<S> {
    stream: S,
    rate: ReadRate,
    /// For how long writes may be pending from now on.
    allowance: Duration,
    /// Since when a write is pending, and the timer of the time at which the allowance is used up.
    pending: Option<(Instant, Pin<Box<Sleep>>)>,
    /// How many bytes the peer has taken, where somebody wants to know.
    taken: Option<Arc<AtomicU64>>,
}

impl<S> MinimumRate<S> {
    pub(super) const fn new(stream: S, rate: ReadRate) -> Self {
        Self { stream, rate, allowance: rate.period, pending: None, taken: None }
    }

    /// Adds the bytes that the peer takes to this counter.
    pub(super) fn counting(self, taken: Arc<AtomicU64>) -> Self {
        Self { taken: Some(taken), ..self }
    }

    /// Returns the result of a write, or `TimedOut` if the allowance is used up.
    fn check(&mut self, context: &mut Context<'_>, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match result {
            Poll::Ready(result) => {
                if let Some((since, _)) = self.pending.take() {
                    self.allowance = self.allowance.saturating_sub(since.elapsed());
                }
                if let Ok(count) = result {
                    if let Some(taken) = &self.taken {
                        taken.fetch_add(count as u64, Ordering::Relaxed);
                    }
                    let count = u32::try_from(count).unwrap_or(u32::MAX);
                    let earned = Duration::from_secs(1) * count / self.rate.bytes_per_second;
                    self.allowance = self.allowance.saturating_add(earned).min(self.rate.period);
                }
                Poll::Ready(result)
            }
            Poll::Pending => {
                let allowance = self.allowance;
                let (_, timer) = self.pending.get_or_insert_with(|| {
                    let now = Instant::now();
                    (now, Box::pin(sleep_until(now + allowance)))
                });
                timer.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for MinimumRate<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for MinimumRate<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.check(context, result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.check(context, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Does not wait for the peer: a socket has nothing to flush.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    /// Does not wait for the peer either.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::net::TcpSocket;
    use tokio::sync::watch;
    use tokio::time::{sleep, timeout};

    use super::*;

    const RATE: ReadRate = ReadRate { bytes_per_second: 1024, period: Duration::from_secs(30) };
    const KIB: usize = 1024;

    /// Sends this much to a peer that reads `step` bytes at each interval.
    async fn send(total: usize, step: usize, interval: Duration) -> io::Result<()> {
        let (ours, theirs): (_, DuplexStream) = duplex(KIB);
        let reader = tokio::spawn(async move {
            let (mut theirs, mut bytes) = (theirs, vec![0; step]);
            loop {
                sleep(interval).await;
                if theirs.read_exact(&mut bytes).await.is_err() {
                    break;
                }
            }
        });
        let result = MinimumRate::new(ours, RATE).write_all(&vec![0; total]).await;
        reader.abort();
        result
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_reads_nothing_is_given_up_on_after_the_period() {
        let (ours, _theirs) = duplex(KIB);
        let start = Instant::now();
        let error = MinimumRate::new(ours, RATE).write_all(&[0; 16 * KIB]).await.unwrap_err();
        assert_eq!((error.kind(), start.elapsed().as_secs()), (io::ErrorKind::TimedOut, 30));
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_reads_a_byte_now_and_then_is_given_up_on() {
        let error = send(64 * KIB, 1, Duration::from_secs(1)).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let error = send(512 * KIB, 900, Duration::from_secs(1)).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_reads_fast_enough_may_take_any_time_and_pause() {
        send(512 * KIB, KIB, Duration::from_secs(1)).await.unwrap();
        send(512 * KIB, 32 * KIB, Duration::from_secs(29)).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn time_without_anything_to_send_does_not_count() {
        let (ours, mut theirs) = duplex(KIB);
        let mut ours = MinimumRate::new(ours, RATE);
        for _ in 0..10 {
            ours.write_all(&[0; 16]).await.unwrap();
            theirs.read_exact(&mut [0; 16]).await.unwrap();
            sleep(RATE.period * 2).await;
        }
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

    /// 30 KiB is what [`RATE`] requires in its period. A small receive buffer takes bytes as steadily as a slow network
    /// does.
    #[tokio::test]
    async fn on_a_slow_network_progress_is_seen_at_the_lowest_rate() {
        let unseen = largest_unseen(Some(4096), 256, KIB).await;
        assert!(unseen < 30 * KIB, "{unseen} bytes were read without progress");
    }
}
