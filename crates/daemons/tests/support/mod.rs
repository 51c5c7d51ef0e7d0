//! What the tests of this crate share.
#![expect(clippy::print_stderr, reason = "a skipped test says why")]

pub(crate) mod inferno;
pub(crate) mod moto;
pub(crate) mod samples;
#[cfg(feature = "perfetto")]
pub(crate) mod traced;
pub(crate) mod traces;

use std::io::Write;
use std::net::Ipv4Addr;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use candela_daemons::ObjectSink;
use candela_daemons::Outbox;
use candela_daemons::UploadError;

/// How long anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Where nobody listens: only root could, and no program of today does.
pub(crate) const NOBODY: &str = "http://127.0.0.1:1";

/// An address of 127.0.0.0/8, all of which is this host's, with the number of this process in it: no other one listens
/// there, now or later. The system gives none of these ports to anybody who asks for any.
pub(crate) fn own_address() -> SocketAddr {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    // Linux has 22 bits for it. 127.0.0.1 is none of these addresses.
    let process = std::process::id() & 0x3f_ffff;
    let host = Ipv4Addr::from_bits(0x7f40_0000 | process);
    let taken = TAKEN.fetch_add(1, Ordering::Relaxed);
    let port = 20_000 + (process * 16 + taken) % 12_000;
    SocketAddr::from((host, u16::try_from(port).expect("below 32000")))
}

/// Says why a test is skipped.
pub(crate) fn skipped(reason: &str) {
    eprintln!("skipped: {reason}");
}

/// A bucket in memory, which fails while it is told to.
#[derive(Debug, Default)]
pub(crate) struct FakeBucket {
    state: Mutex<FakeState>,
}

#[derive(Debug, Default)]
struct FakeState {
    is_down: bool,
    objects: Vec<(String, Bytes)>,
    refused: usize,
}

impl FakeBucket {
    pub(crate) fn set_down(&self, is_down: bool) {
        self.state.lock().expect("no panic").is_down = is_down;
    }

    /// In the order in which they came.
    pub(crate) fn objects(&self) -> Vec<(String, Bytes)> {
        self.state.lock().expect("no panic").objects.clone()
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        self.objects().into_iter().map(|(key, _)| key).collect()
    }

    /// How often somebody has tried while it was down.
    pub(crate) fn refused(&self) -> usize {
        self.state.lock().expect("no panic").refused
    }
}

#[async_trait]
impl ObjectSink for FakeBucket {
    async fn put(&self, key: &str, bytes: Bytes) -> Result<(), UploadError> {
        let mut state = self.state.lock().expect("no panic");
        if state.is_down {
            state.refused += 1;
            return Err(UploadError::Unavailable {
                object: key.to_owned(),
                reason: "a test".to_owned(),
            });
        }
        state.objects.push((key.to_owned(), bytes));
        Ok(())
    }
}

/// A file of this text, which waits.
pub(crate) fn publish(outbox: &Arc<Outbox>, unix_seconds: i64, text: &str) -> String {
    let mut file = outbox.begin().expect("a file");
    file.write_all(text.as_bytes()).expect("it is written");
    file.publish(unix_seconds, "perf-data.gz")
        .expect("it waits")
}

/// Until something is there.
pub(crate) fn wait_until(what: &str, mut is_there: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_there() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

/// Runs a future to its end.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().expect("a runtime");
    runtime.block_on(future)
}
