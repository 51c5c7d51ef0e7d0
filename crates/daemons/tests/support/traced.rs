//! A real `traced`, as `cargo xtask perfetto` provides one.

use std::env;
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

/// All tests of a process have one place for sockets, which a library reads from the environment.
static SOCKETS: Mutex<()> = Mutex::new(());

/// Where a `traced` can be started. One test at a time has it.
pub(crate) struct Host {
    program: PathBuf,
    producers: PathBuf,
    consumers: PathBuf,
    _sockets: MutexGuard<'static, ()>,
}

/// A `traced` that runs. It is killed with the value.
pub(crate) struct Traced(Child);

impl Host {
    /// `None`, with the reason, where there is no `traced` to be had.
    pub(crate) fn find() -> Option<Self> {
        let path = |name: &str| env::var_os(name).map(PathBuf::from);
        let (Some(folder), Some(producers), Some(consumers)) = (
            path("CANDELA_TEST_PERFETTO"),
            path("PERFETTO_PRODUCER_SOCK_NAME"),
            path("PERFETTO_CONSUMER_SOCK_NAME"),
        ) else {
            super::skipped("no place for a traced; run cargo xtask perfetto");
            return None;
        };
        let program = folder.join("traced");
        if !program.is_file() {
            super::skipped("scripts/fetch-perfetto has not fetched traced");
            return None;
        }
        let sockets = SOCKETS.lock().unwrap_or_else(PoisonError::into_inner);
        let host = Self {
            program,
            producers,
            consumers,
            _sockets: sockets,
        };
        host.clean();
        Some(host)
    }

    /// Starts it, and waits until it listens.
    pub(crate) fn start(&self) -> Traced {
        self.clean();
        let process = Command::new(&self.program)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("traced starts");
        let mut traced = Traced(process);
        super::wait_until("traced listens", || {
            let ended = traced.0.try_wait().expect("a child");
            assert!(ended.is_none(), "traced has ended: {ended:?}");
            fs::exists(&self.producers).is_ok_and(|is_there| is_there)
                && UnixStream::connect(&self.consumers).is_ok()
        });
        traced
    }

    /// Sockets of one that was killed stay, and look as if somebody listened.
    fn clean(&self) {
        for socket in [&self.producers, &self.consumers] {
            let _ = fs::remove_file(socket);
        }
    }
}

impl Traced {
    /// It does nothing until it goes on.
    pub(crate) fn hold(&self) {
        self.signal("-STOP");
    }

    pub(crate) fn go_on(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let pid = self.0.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status();
        assert!(sent.is_ok_and(|status| status.success()), "{signal}");
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
