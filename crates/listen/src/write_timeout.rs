//! Clients that ask and do not read: what was written for them must not wait for ever.

use std::io;
use std::io::IoSlice;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;
use std::time::Duration;

use tokio::io::AsyncWrite;
use tokio::time::Sleep;

/// Fails once its writer has taken nothing for the whole timeout.
#[derive(Debug)]
pub(crate) struct WriteTimeout<W> {
    writer: W,
    timeout: Duration,
    /// Runs while the writer takes nothing.
    stall: Option<Pin<Box<Sleep>>>,
}

impl<W> WriteTimeout<W> {
    pub(crate) fn new(writer: W, timeout: Duration) -> Self {
        Self {
            writer,
            timeout,
            stall: None,
        }
    }

    /// The outcome of a write, unless it has been pending for too long.
    fn watch<T>(
        &mut self,
        outcome: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.stall = None;
            return outcome;
        }
        let timeout = self.timeout;
        let stall = self
            .stall
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        match stall.as_mut().poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => Poll::Ready(Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("the client has read nothing for {timeout:?}"),
            ))),
        }
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.writer).poll_write(context, bytes);
        self.watch(outcome, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.writer).poll_write_vectored(context, parts);
        self.watch(outcome, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.writer.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.writer).poll_flush(context);
        self.watch(outcome, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.writer).poll_shutdown(context);
        self.watch(outcome, context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;
    use tokio::io::AsyncWriteExt;

    use super::*;

    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime");
        runtime.block_on(test);
    }

    #[test]
    fn a_client_that_reads_nothing_ends_the_write() {
        run(async {
            let (_client, server) = tokio::io::duplex(1024);
            let mut server = WriteTimeout::new(server, Duration::from_millis(10));
            let error = server.write_all(&[0; 4096]).await.expect_err("it is full");
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        });
    }

    #[test]
    fn the_time_begins_anew_with_each_byte_that_is_read() {
        run(async {
            let (mut client, server) = tokio::io::duplex(1024);
            let mut server = WriteTimeout::new(server, Duration::from_secs(3600));
            let mut write_once = async || {
                let mut writer = Pin::new(&mut server);
                std::future::poll_fn(|context| {
                    let written = writer.as_mut().poll_write(context, &[0; 1024]);
                    Poll::Ready((written.is_ready(), writer.stall.is_some()))
                })
                .await
            };
            assert_eq!(write_once().await, (true, false));
            assert_eq!(write_once().await, (false, true), "it is full");
            client.read_exact(&mut [0; 1024]).await.expect("written");
            assert_eq!(write_once().await, (true, false));
        });
    }
}
