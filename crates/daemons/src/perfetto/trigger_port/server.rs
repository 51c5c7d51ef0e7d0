//! The port, and the thread that serves it beside the daemon.

use std::io;
use std::net::TcpListener;
use std::thread::JoinHandle;
use std::time::Duration;

use candela_listen::ConnectionLimits;
use candela_listen::HostPolicy;
use candela_listen::SecretDigest;
use candela_listen::holder_of_port;
use candela_listen::serve;
use tokio::sync::watch;

use crate::perfetto::trigger_port::TriggerPortError;
use crate::perfetto::trigger_port::TriggerPortOptions;
use crate::perfetto::trigger_port::routes::Counter;
use crate::perfetto::trigger_port::routes::Guard;
use crate::perfetto::trigger_port::routes::router;

const THREAD: &str = "candela-trigger";

/// A cluster manager asks seldom, and bounds what strangers can make us hold.
const LIMITS: ConnectionLimits = ConnectionLimits {
    most: Some(32),
    header_timeout: Duration::from_secs(10),
    write_timeout: Duration::from_secs(30),
    grace: Duration::from_secs(1),
    http2: false,
};

/// A port that is served; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct TriggerServer {
    end: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl TriggerServer {
    /// Takes the port and serves it.
    ///
    /// # Errors
    /// When it is taken, naming who has it, when it cannot be listened on, or the system refuses a thread.
    pub(crate) fn start(
        options: &TriggerPortOptions,
        counter: Counter,
    ) -> Result<Self, TriggerPortError> {
        options.check()?;
        let address = options.listen;
        let listen_error = |source| TriggerPortError::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => TriggerPortError::PortTaken {
                address,
                holder: holder_of_port(address.port()),
            },
            _ => listen_error(source),
        })?;
        listener.set_nonblocking(true).map_err(listen_error)?;
        let bound = listener.local_addr().map_err(listen_error)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(TriggerPortError::Thread)?;
        let entered = runtime.enter();
        let listener = tokio::net::TcpListener::from_std(listener);
        drop(entered);
        let listener = listener.map_err(listen_error)?;
        let guard = Guard {
            hosts: HostPolicy::new(bound, &options.host_names),
            token: options
                .token
                .as_ref()
                .map(|token| SecretDigest::of(token.as_bytes())),
        };
        let router = router(counter, guard);
        let (end, ending) = watch::channel(false);
        let thread = std::thread::Builder::new()
            .name(THREAD.to_owned())
            .spawn(move || runtime.block_on(serve(listener, None, router, LIMITS, ending)))
            .map_err(TriggerPortError::Thread)?;
        tracing::info!(address = %bound, "snapshots can be asked for at this port");
        Ok(Self {
            end,
            thread: Some(thread),
        })
    }
}

impl Drop for TriggerServer {
    fn drop(&mut self) {
        self.end.send_replace(true);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of triggers ended unexpectedly");
        }
    }
}
