//! A server from its ports to its end.

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::Builder;
use std::thread::JoinHandle;

use axum::Router;
use candela_listen::ConnectionLimits;
use candela_listen::HostPolicy;
use candela_listen::TlsAcceptor;
use candela_listen::serve;
use candela_query::Engine;
use candela_store::Store;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::app::App;
use crate::app::SharedApp;
use crate::error::ServerError;
use crate::listen::listen;
use crate::listen::listen_for_otlp;
use crate::local_ingest::LocalIngest;
use crate::options::Limits;
use crate::options::ServerOptions;
use crate::router::main_router;
use crate::router::otlp_router;
use crate::router::paths;
use crate::sources::SelfProfiler;

/// A server that has its ports and is ready to run.
pub struct Server {
    app: SharedApp,
    main: Surface,
    otlp_grpc: Option<Surface>,
    otlp_http: Option<Surface>,
    limits: Limits,
    tls: Option<TlsAcceptor>,
    self_profiler: Option<Arc<dyn SelfProfiler>>,
}

/// A port and what answers on it.
struct Surface {
    listener: TcpListener,
    address: SocketAddr,
    router: Router,
}

/// The settings that choose the addresses, as errors name them.
const LISTEN: &str = "--listen (server.listen)";
const OTLP_GRPC_LISTEN: &str = "server.otlp_grpc_listen";
const OTLP_HTTP_LISTEN: &str = "server.otlp_http_listen";

impl Server {
    /// Takes the ports. Clients may connect from here on and wait until [`run`](Self::run).
    ///
    /// # Errors
    /// When a port that was asked for is taken or cannot be used, naming who has it, when it is
    /// public and there are no accounts, and when
    /// accounts, the certificate or a path prefix are none. Default OTLP ports that are taken only cost a warning.
    #[expect(
        clippy::unused_async,
        reason = "it needs the runtime that the server runs in, and may await a name one day"
    )]
    pub async fn bind(
        options: ServerOptions,
        store: Store,
        engine: Engine,
    ) -> Result<Self, ServerError> {
        let prefixes = normalized_prefixes(&options.http_prefixes)?;
        check_public(&options)?;
        let tls = acceptor(&options)?;
        let self_profiler = options.self_profiler.clone();
        let app = App::new(&options, store, engine)?;
        let hosts = |address| HostPolicy::new(address, &options.host_names);

        let main = listen(options.listen, LISTEN)?;
        let main = Surface::new(main, options.listen, |address| {
            main_router(&app, hosts(address), &prefixes)
        })?;
        let otlp = |wanted, setting| -> Result<Option<Surface>, ServerError> {
            let Some(listener) = listen_for_otlp(wanted, setting)? else {
                return Ok(None);
            };
            let address = wanted.map_or(options.listen, |wanted| wanted.address);
            Surface::new(listener, address, |address| {
                otlp_router(&app, hosts(address))
            })
            .map(Some)
        };
        let otlp_grpc = otlp(options.otlp_grpc, OTLP_GRPC_LISTEN)?;
        let otlp_http = otlp(options.otlp_http, OTLP_HTTP_LISTEN)?;
        Ok(Self {
            app,
            main,
            otlp_grpc,
            otlp_http,
            limits: options.limits,
            tls,
            self_profiler,
        })
    }

    /// Whether [`bind`](Self::bind) would take these options, ports and files aside.
    ///
    /// # Errors
    /// When a path prefix, accounts or the certificate are none, and when an address is public and there
    /// are no accounts.
    pub fn check(options: &ServerOptions) -> Result<(), ServerError> {
        normalized_prefixes(&options.http_prefixes)?;
        options.auth.check()?;
        acceptor(options)?;
        check_public(options)
    }

    /// Where everything is served.
    #[must_use]
    pub fn local_address(&self) -> SocketAddr {
        self.main.address
    }

    /// The same as users write it: `http://127.0.0.1:4040`, or `https://` with TLS.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.main.address)
    }

    /// Where OTLP over gRPC is served besides, if it is.
    #[must_use]
    pub fn otlp_grpc_address(&self) -> Option<SocketAddr> {
        self.otlp_grpc.as_ref().map(|surface| surface.address)
    }

    /// Where OTLP over HTTP is served besides, if it is.
    #[must_use]
    pub fn otlp_http_address(&self) -> Option<SocketAddr> {
        self.otlp_http.as_ref().map(|surface| surface.address)
    }

    /// The way in for what the same process measures: the tenant's limits without a network.
    #[must_use]
    pub fn local_ingest(&self) -> LocalIngest {
        LocalIngest::new(SharedApp::clone(&self.app))
    }

    /// Serves until `shutdown` resolves and the requests in flight are answered, or the grace
    /// period of [`Limits`] is over. Profiles of answered requests are durable; flushing the store
    /// is up to who opened it. Needs a tokio runtime with time and IO.
    ///
    /// # Errors
    /// When the runtime refuses a listener.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send) -> Result<(), ServerError> {
        let (end, ending) = watch::channel(false);
        let mut surfaces = JoinSet::new();
        let limits = ConnectionLimits {
            most: None,
            header_timeout: self.limits.header_timeout,
            write_timeout: self.limits.write_timeout,
            grace: self.limits.shutdown_grace,
            http2: true,
        };
        let all = [Some(self.main), self.otlp_grpc, self.otlp_http];
        for surface in all.into_iter().flatten() {
            let address = surface.address;
            let listener = tokio::net::TcpListener::from_std(surface.listener)
                .map_err(|source| ServerError::listen(address, source))?;
            let tls = self.tls.clone();
            let ending = ending.clone();
            surfaces.spawn(serve(listener, tls, surface.router, limits, ending));
        }
        let naming = start_naming(&self.app);
        shutdown.await;
        if let Some(symbolization) = &self.app.symbolization {
            symbolization.stop();
        }
        if let Some(profiler) = &self.self_profiler {
            profiler.stop();
        }
        self.app.arrivals.close();
        self.app.fleet.end();
        end.send_replace(true);
        while surfaces.join_next().await.is_some() {}
        if let Some(naming) = naming {
            // It stops between two addresses; the store is whoever's opened it once it has.
            let _ = tokio::task::spawn_blocking(move || naming.join()).await;
        }
        Ok(())
    }
}

/// Starts the thread that names what was stored as addresses. Without it everything else goes on.
fn start_naming(app: &SharedApp) -> Option<JoinHandle<()>> {
    app.symbolization.as_ref()?;
    let app = SharedApp::clone(app);
    let started = Builder::new()
        .name("candela-symbols".to_owned())
        .spawn(move || {
            if let Some(symbolization) = &app.symbolization {
                symbolization.run(&app.store);
            }
        });
    started
        .inspect_err(|error| tracing::error!("no thread for symbols: {error}"))
        .ok()
}

impl Surface {
    fn new(
        listener: TcpListener,
        wanted: SocketAddr,
        router: impl FnOnce(SocketAddr) -> Router,
    ) -> Result<Self, ServerError> {
        let address = listener
            .local_addr()
            .map_err(|source| ServerError::listen(wanted, source))?;
        Ok(Self {
            listener,
            address,
            router: router(address),
        })
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Server")
            .field("main", &self.main.address)
            .field("otlp_grpc", &self.otlp_grpc_address())
            .field("otlp_http", &self.otlp_http_address())
            .finish_non_exhaustive()
    }
}

fn acceptor(options: &ServerOptions) -> Result<Option<TlsAcceptor>, ServerError> {
    let tls = options.tls.as_ref();
    Ok(tls.map(|tls| tls.acceptor(true)).transpose()?)
}

/// Refuses to let everybody in: profiles tell what a company runs, and who may write may fill a disk.
/// Loopback needs no accounts, because who is on the host could read the files themselves.
fn check_public(options: &ServerOptions) -> Result<(), ServerError> {
    if options.auth.has_accounts() || options.auth.is_insecure {
        return Ok(());
    }
    let addresses = [
        (Some(options.listen), LISTEN),
        (options.otlp_grpc.map(|it| it.address), OTLP_GRPC_LISTEN),
        (options.otlp_http.map(|it| it.address), OTLP_HTTP_LISTEN),
    ];
    for (address, setting) in addresses {
        let public = address.filter(|address| !address.ip().to_canonical().is_loopback());
        if let Some(address) = public {
            return Err(ServerError::PublicWithoutAuth { address, setting });
        }
    }
    Ok(())
}

/// Prefixes as `/a/b`: a slash before, none behind, `/` alone is no prefix. None may lead to a path
/// that is served already: `/debug/pprof` is a page of its own.
fn normalized_prefixes(prefixes: &[String]) -> Result<Vec<String>, ServerError> {
    let mut normalized = Vec::new();
    let mut taken: BTreeSet<String> = paths("").collect();
    for prefix in prefixes {
        let path = prefix.trim_matches('/');
        let is_plain =
            |character: char| character.is_ascii_alphanumeric() || "-_.~/".contains(character);
        if !path.chars().all(is_plain) || path.contains("//") {
            return Err(ServerError::Prefix {
                prefix: prefix.clone(),
            });
        }
        let path = format!("/{path}");
        if path == "/" || normalized.contains(&path) {
            continue;
        }
        let under_prefix: BTreeSet<String> = paths(&path).collect();
        if let Some(path) = under_prefix.intersection(&taken).next() {
            return Err(ServerError::PrefixTaken {
                prefix: prefix.clone(),
                path: path.clone(),
            });
        }
        taken.extend(under_prefix);
        normalized.push(path);
    }
    Ok(normalized)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_paths() {
        let prefixes = |given: &[&str]| {
            let given: Vec<String> = given.iter().map(|&prefix| prefix.to_owned()).collect();
            normalized_prefixes(&given)
        };
        let normalized = prefixes(&["profiling/", "/a/b", "/", "", "/profiling"]).expect("valid");
        assert_eq!(normalized, ["/profiling", "/a/b"]);
        for bad in ["/{x}", "/a b", "/a//b", "/é"] {
            assert!(prefixes(&[bad]).is_err(), "{bad}");
        }
    }

    #[test]
    fn prefixes_that_are_routes_are_refused() {
        let taken: [&[&str]; 6] = [
            &["/ready"],
            &["/healthz/"],
            &["metrics"],
            &["/debug/pprof"],
            &["/api/v1/top"],
            &["/a", "/a/ready"],
        ];
        for prefixes in taken {
            let given: Vec<String> = prefixes.iter().map(ToString::to_string).collect();
            let error = normalized_prefixes(&given).expect_err("taken");
            assert!(matches!(error, ServerError::PrefixTaken { .. }), "{error}");
        }
    }
}
