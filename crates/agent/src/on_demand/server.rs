//! The endpoint's port, and the thread that serves it beside the agent.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use candela_listen::ConnectionLimits;
use candela_listen::HostPolicy;
use candela_listen::SecretDigest;
use candela_listen::TlsAcceptor;
use candela_listen::TlsOptions;
use candela_listen::holder_of_port;
use candela_listen::serve;
use tokio::sync::watch;

use crate::agent::AgentObserver;
use crate::on_demand::error::OnDemandError;
use crate::on_demand::guard::Guard;
use crate::on_demand::routes::Desk;
use crate::on_demand::routes::PROFILE;
use crate::on_demand::routes::router;
use crate::on_demand::session::Sessions;
use crate::options::AgentOptions;

/// The port that clients of this API expect.
pub const ON_DEMAND_PORT: u16 = 3080;

/// One takes a profile, the others look: this is plenty, and bounds what strangers can make us hold.
const LIMITS: ConnectionLimits = ConnectionLimits {
    most: Some(32),
    header_timeout: Duration::from_secs(10),
    write_timeout: Duration::from_secs(30),
    grace: Duration::from_secs(5),
    http2: false,
};

/// How long a session's thread may take to end once everything else has.
const LAST_CHANCE: Duration = Duration::from_secs(1);

/// Where and for whom profiles are taken on demand.
#[derive(Clone)]
pub struct OnDemandOptions {
    /// Where to listen. An address that other hosts reach needs a token.
    pub listen: SocketAddr,
    /// What clients must send, where it is set; on loopback it need not be.
    pub token: Option<String>,
    /// The certificate of the port; without it plain HTTP is spoken.
    pub tls: Option<TlsOptions>,
    /// Further host names that clients may use on loopback.
    pub host_names: Vec<String>,
    /// Labels, names and bounds of the recordings.
    pub agent: AgentOptions,
}

/// An endpoint that has its port and does not serve yet.
pub struct OnDemandServer {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
    options: OnDemandOptions,
}

/// A running endpoint; it ends when this is dropped.
#[derive(Debug)]
pub struct OnDemandHandle {
    address: SocketAddr,
    has_tls: bool,
    sessions: Arc<Sessions>,
    is_closing: Arc<AtomicBool>,
    end: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

// === impl OnDemandOptions ===

impl OnDemandOptions {
    /// Open on loopback.
    #[must_use]
    pub fn new(listen: SocketAddr, agent: AgentOptions) -> Self {
        Self {
            listen,
            token: None,
            tls: None,
            host_names: Vec::new(),
            agent,
        }
    }

    /// Whether such an endpoint may be served, ports aside.
    ///
    /// # Errors
    /// When other hosts could ask without a token.
    pub fn check(&self) -> Result<(), OnDemandError> {
        let is_loopback = self.listen.ip().to_canonical().is_loopback();
        if is_loopback || self.token.is_some() {
            return Ok(());
        }
        Err(OnDemandError::PublicWithoutToken {
            address: self.listen,
        })
    }
}

impl fmt::Debug for OnDemandOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OnDemandOptions")
            .field("listen", &self.listen)
            .field("token", &self.token.as_ref().map(|_| "***"))
            .field("tls", &self.tls)
            .field("host_names", &self.host_names)
            .field("agent", &self.agent)
            .finish()
    }
}

// === impl OnDemandServer ===

impl OnDemandServer {
    /// Takes the port.
    ///
    /// # Errors
    /// When it is taken, naming who has it, when it cannot be listened on, when other hosts could ask
    /// without a token, and when the certificate cannot be used.
    pub fn bind(options: OnDemandOptions) -> Result<Self, OnDemandError> {
        options.check()?;
        let tls = options.tls.as_ref();
        let tls = tls.map(|tls| tls.acceptor(LIMITS.http2)).transpose()?;
        let address = options.listen;
        let bound = TcpListener::bind(address).and_then(|listener| {
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        });
        let (listener, address) = bound.map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => OnDemandError::PortTaken {
                address,
                holder: holder_of_port(address.port()),
            },
            _ => OnDemandError::Listen { address, source },
        })?;
        Ok(Self {
            listener,
            address,
            tls,
            options,
        })
    }

    /// Serves in a thread of its own; `/metrics` has what `observer` tells.
    ///
    /// # Errors
    /// When the system refuses a thread or the listener.
    pub fn start(self, observer: AgentObserver) -> Result<OnDemandHandle, OnDemandError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .thread_name("candela-demand")
            // The session that goes on, and one whose end nobody waits for any more.
            .max_blocking_threads(4)
            .build()
            .map_err(OnDemandError::Thread)?;
        let entered = runtime.enter();
        let listener = tokio::net::TcpListener::from_std(self.listener);
        drop(entered);
        let listener = listener.map_err(|source| OnDemandError::Listen {
            address: self.address,
            source,
        })?;
        let guard = Guard {
            hosts: HostPolicy::new(self.address, &self.options.host_names),
            token: self
                .options
                .token
                .as_ref()
                .map(|token| SecretDigest::of(token.as_bytes())),
        };
        let desk = Desk {
            sessions: Arc::default(),
            agent: Arc::new(self.options.agent),
            observer,
            is_closing: Arc::default(),
        };
        let (sessions, is_closing) = (Arc::clone(&desk.sessions), Arc::clone(&desk.is_closing));
        let (end, ending) = watch::channel(false);
        let router = router(desk, guard);
        let has_tls = self.tls.is_some();
        let thread = std::thread::Builder::new()
            .name("candela-demand".to_owned())
            .spawn(move || {
                runtime.block_on(serve(listener, self.tls, router, LIMITS, ending));
                runtime.shutdown_timeout(LAST_CHANCE);
            })
            .map_err(OnDemandError::Thread)?;
        Ok(OnDemandHandle {
            address: self.address,
            has_tls,
            sessions,
            is_closing,
            end,
            thread: Some(thread),
        })
    }
}

impl fmt::Debug for OnDemandServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OnDemandServer")
            .field("address", &self.address)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

// === impl OnDemandHandle ===

impl OnDemandHandle {
    /// Where profiles are asked for.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.has_tls { "https" } else { "http" };
        format!("{scheme}://{}{PROFILE}", self.address)
    }
}

impl Drop for OnDemandHandle {
    fn drop(&mut self) {
        self.is_closing.store(true, Ordering::SeqCst);
        self.sessions.abandon();
        self.end.send_replace(true);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of profiles on demand ended unexpectedly");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(listen: &str) -> OnDemandOptions {
        let listen = listen.parse().expect("an address");
        OnDemandOptions::new(listen, AgentOptions::default())
    }

    #[test]
    fn networks_need_a_token() {
        for open in ["127.0.0.1:3080", "[::1]:3080", "[::ffff:127.0.0.1]:3080"] {
            assert!(options(open).check().is_ok(), "{open}");
        }
        for public in ["0.0.0.0:3080", "[::]:3080", "192.0.2.1:3080"] {
            let mut options = options(public);
            let error = options.check().expect_err(public).to_string();
            assert!(error.contains("agent.on_demand.token"), "{error}");
            options.token = Some("sesame".to_owned());
            assert!(options.check().is_ok(), "{public}");
            assert!(!format!("{options:?}").contains("sesame"));
        }
    }

    #[test]
    fn a_taken_port_is_told_with_its_holder() {
        let first = OnDemandServer::bind(options("127.0.0.1:0")).expect("a free port");
        let second = OnDemandServer::bind(options(&first.address.to_string()));
        let error = second.expect_err("taken").to_string();
        let holder = format!("(pid {})", std::process::id());
        assert!(error.contains(&holder), "{error}");
    }
}
