//! What a server is started with.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use candela_listen::TlsOptions;
use candela_store::Clock;
use candela_store::SystemClock;
use candela_symbols::SourceRoots;

use crate::auth::AuthOptions;
use crate::sources::SelfProfiler;
use crate::sources::StatusSource;
use crate::sql_limits::SqlLimits;
use crate::symbolization::SymbolSources;
use crate::tenant_limits::TenantLimits;

/// The port of everything.
pub const DEFAULT_PORT: u16 = 4040;
/// The port on which collectors expect OTLP over gRPC.
pub const OTLP_GRPC_PORT: u16 = 4317;
/// The port on which collectors expect OTLP over HTTP.
pub const OTLP_HTTP_PORT: u16 = 4318;

/// What a server is started with.
#[derive(Clone)]
pub struct ServerOptions {
    /// Where everything is served: HTTP/1.1, h2c and gRPC.
    pub listen: SocketAddr,
    /// Where OTLP over gRPC is served besides; `None` is nowhere.
    pub otlp_grpc: Option<OtlpListen>,
    /// Where OTLP over HTTP is served besides; `None` is nowhere.
    pub otlp_http: Option<OtlpListen>,
    /// Path prefixes, like `/profiling`, under which every route answers too.
    pub http_prefixes: Vec<String>,
    /// Host names, besides `localhost`, by which clients may address a server on loopback.
    pub host_names: Vec<String>,
    /// Who may ask, and whose profiles there are.
    pub auth: AuthOptions,
    /// The certificate of all ports; without it they speak plain HTTP.
    pub tls: Option<TlsOptions>,
    /// What one request may take.
    pub limits: Limits,
    /// What each tenant may send.
    pub tenant_limits: TenantLimits,
    /// Tenants that may send something else, all of whose limits these are.
    pub tenant_overrides: BTreeMap<String, TenantLimits>,
    /// What one SQL query may take.
    pub sql: SqlLimits,
    /// Bytes of sums of blocks that an engine for this server may keep for later queries.
    pub query_cache_bytes: u64,
    /// Where names of stored addresses come from; without it what came without names stays so.
    pub symbols: Option<SymbolSources>,
    /// Where the sources of profiled programs are; without any no source file is read.
    pub source_roots: SourceRoots,
    /// What the agent in this process has to say, if one runs here.
    pub status_source: Option<Arc<dyn StatusSource>>,
    /// How this process profiles itself, if it can.
    pub self_profiler: Option<Arc<dyn SelfProfiler>>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
}

/// An additional port for OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtlpListen {
    /// Where.
    pub address: SocketAddr,
    /// Whether somebody asked for just this address. If so a taken port is an error; a default
    /// that is taken only costs a warning.
    pub is_explicit: bool,
}

/// What one request may take, and how long.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bodies of all requests together that are in memory at a time, bytes; others wait.
    pub bodies_bytes: usize,
    /// Samples of all profiles of one request; a single profile may have as many as its tenant may.
    pub samples_per_request: usize,
    /// Messages inside of one OTLP request: empty ones take little on the wire and much in memory.
    pub messages_per_request: usize,
    /// How far in the future a profile may start: clocks differ.
    pub future: Duration,
    /// Bodies that are decoded and stored at the same time; others wait.
    pub concurrent_decodes: usize,
    /// Queries that compute at the same time; others wait.
    pub concurrent_queries: usize,
    /// How long a query waits for its turn before the answer is 429.
    pub query_wait: Duration,
    /// Bytes of files of `/api/v1/files` that stay in memory between requests, half of them of one tenant.
    pub held_files_bytes: u64,
    /// How long they stay when nobody asks about them.
    pub held_files_idle: Duration,
    /// Nodes of fleets that are remembered; no more may listen.
    pub fleet_nodes: usize,
    /// How often a node that listens is told that the server is there, when it is told nothing else.
    pub fleet_keep_alive: Duration,
    /// How long a client may take to send its headers, and may keep a connection without a request.
    pub header_timeout: Duration,
    /// How long a client may take to send its body, and may wait for room for it and for its turn.
    pub body_timeout: Duration,
    /// Bytes of answers that wait for their clients to read them. One answer may have half of them, and so may one caller.
    pub answers_bytes: usize,
    /// Bytes of what answers are made of that are written while their clients read them. One answer may have half of them, and so
    /// may one caller.
    pub streamed_bytes: usize,
    /// How long a client may read nothing of an answer before its connection is closed.
    pub write_timeout: Duration,
    /// How long requests in flight may go on after the shutdown signal.
    pub shutdown_grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            bodies_bytes: 384 << 20,
            samples_per_request: 2_000_000,
            messages_per_request: 2_000_000,
            future: Duration::from_secs(600),
            concurrent_decodes: cores.max(2),
            concurrent_queries: cores.max(2),
            query_wait: Duration::from_secs(30),
            held_files_bytes: 256 << 20,
            held_files_idle: Duration::from_secs(600),
            fleet_nodes: 10_000,
            fleet_keep_alive: Duration::from_secs(15),
            header_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(60),
            answers_bytes: 256 << 20,
            streamed_bytes: 1 << 30,
            write_timeout: Duration::from_secs(30),
            shutdown_grace: Duration::from_secs(10),
        }
    }
}

impl ServerOptions {
    /// One port, the contract's limits, the system's clock and nothing else.
    #[must_use]
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            otlp_grpc: None,
            otlp_http: None,
            http_prefixes: Vec::new(),
            host_names: Vec::new(),
            auth: AuthOptions::default(),
            tls: None,
            limits: Limits::default(),
            sql: SqlLimits::default(),
            query_cache_bytes: 32 << 20,
            tenant_limits: TenantLimits::default(),
            tenant_overrides: BTreeMap::new(),
            symbols: None,
            source_roots: SourceRoots::default(),
            status_source: None,
            self_profiler: None,
            clock: Arc::new(SystemClock),
        }
    }
}

impl fmt::Debug for ServerOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ServerOptions")
            .field("listen", &self.listen)
            .field("otlp_grpc", &self.otlp_grpc)
            .field("otlp_http", &self.otlp_http)
            .field("http_prefixes", &self.http_prefixes)
            .field("host_names", &self.host_names)
            .field("auth", &self.auth)
            .field("tls", &self.tls)
            .field("limits", &self.limits)
            .field("sql", &self.sql)
            .field("query_cache_bytes", &self.query_cache_bytes)
            .field("tenant_limits", &self.tenant_limits)
            .field("tenant_overrides", &self.tenant_overrides)
            .field("source_roots", &self.source_roots)
            .finish_non_exhaustive()
    }
}
