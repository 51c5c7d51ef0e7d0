//! `candela server`, and what `candela up` shares with it.

use std::io::ErrorKind;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use candela_query::Engine;
use candela_server::Limits;
use candela_server::OtlpListen;
use candela_server::SelfProfiler;
use candela_server::Server;
use candela_server::ServerOptions;
use candela_server::SqlLimits;
use candela_server::StatusSource;
use candela_store::LogPlace;
use candela_store::Store;
use candela_store::StoreError;
use candela_store::StoreOptions;
use candela_store::SyncMode;
use candela_symbols::SourceRoots;

use super::access::auth_options;
use super::private::keep_private;
use super::retention_rules::retention_rules;
use super::symbols::symbol_sources;
use super::tenant_limits::tenant_limits;
use super::tenant_limits::tenant_overrides;
use super::tls::tls_options;
use crate::args::GlobalArgs;
use crate::args::serve::ServerArgs;
use crate::config::Settings;
use crate::errors;
use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;
use crate::output;

/// How long work that cannot be interrupted may take after everything else has ended.
const LAST_CHANCE: Duration = Duration::from_secs(1);

/// What runs beside the server in the same process.
#[derive(Default)]
pub(crate) struct Companions {
    /// The agent's figures.
    pub(crate) status: Option<Arc<dyn StatusSource>>,
    /// How this process profiles itself.
    pub(crate) self_profiler: Option<Arc<dyn SelfProfiler>>,
}

pub(crate) fn run(global: &GlobalArgs, arguments: &ServerArgs) -> Result<ExitCode, CliError> {
    let settings = super::settings(global, arguments.overrides())?;
    keep_private(&settings.data_dir(&super::environment()));
    block_on(async {
        let stopped = super::signals::stopped()?;
        let store = open_store(&settings)?;
        let companions = Companions {
            status: None,
            self_profiler: super::self_profile::profiler(),
        };
        let server = bind(&settings, &store, companions).await?;
        output::note(&format!("candela is at {}", server.url()));
        let served = server.run(stopped).await;
        // Whatever became of the server, what it took goes to blocks.
        let served = served.or_exit(ExitStatus::Failed, "server");
        errors::all_of([served, close(store).await])
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Runs a command on the threads that serve requests, and does not wait for what blocks one of them
/// longer than [`LAST_CHANCE`]: its client is gone, and a supervisor would lose patience.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .or_exit(ExitStatus::Failed, "cannot start threads")?;
    let outcome = runtime.block_on(work);
    runtime.shutdown_timeout(LAST_CHANCE);
    outcome
}

pub(crate) fn open_store(settings: &Settings) -> Result<Store, CliError> {
    open_store_of(store_options(settings)?)
}

pub(crate) fn open_store_of(options: StoreOptions) -> Result<Store, CliError> {
    Store::open(options).map_err(|error| {
        let remedy = match &error {
            StoreError::Io { source, .. } => remedy_of(source.kind()),
            _ => "",
        };
        CliError::failed(format!("{error}{remedy}"))
    })
}

/// What helps when the data directory cannot be used.
fn remedy_of(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::PermissionDenied => "; run as its owner, or choose another --data-dir",
        ErrorKind::NotFound
        | ErrorKind::ReadOnlyFilesystem
        | ErrorKind::NotADirectory
        | ErrorKind::AlreadyExists => "; choose another --data-dir",
        ErrorKind::StorageFull => "; make room, or choose another --data-dir",
        _ => "",
    }
}

/// The options of the configuration.
pub(crate) fn store_options(settings: &Settings) -> Result<StoreOptions, CliError> {
    let data_dir = settings.data_dir(&super::environment());
    Ok(StoreOptions {
        log: log_place(settings)?,
        min_free_bytes: settings.bytes("store.min_free_space"),
        sync: match settings.text("store.sync") {
            Some("os") => SyncMode::Os,
            _ => SyncMode::Fsync,
        },
        flush_interval: settings.duration("store.flush_interval"),
        flush_bytes: settings.bytes("store.flush_size"),
        backend: super::backend::backend(settings)?,
        remote_cache_bytes: settings.bytes("store.cache_size"),
        max_age: Some(settings.duration("store.retention")),
        ten_minutes_max_age: Some(settings.duration("store.retention_ten_minutes")),
        hourly_max_age: Some(settings.duration("store.retention_hourly")),
        retention_rules: retention_rules(settings)?,
        compaction_cpu_percent: u32::try_from(settings.integer("store.compaction_cpu"))
            .expect("the key's range is 0 to 100"),
        max_bytes: super::backend::max_bytes(settings),
        max_volume_percent: Some(
            u8::try_from(settings.integer("store.max_volume_percent"))
                .expect("the key's range is 1 to 100"),
        ),
        ..StoreOptions::new(data_dir)
    })
}

fn log_place(settings: &Settings) -> Result<LogPlace, CliError> {
    let backend = settings.text("store.backend").unwrap_or_default();
    match settings.text("store.log") {
        Some("object") if backend == "filesystem" => Err(CliError::usage(
            "store.log is object and store.backend is filesystem; the log goes to the bucket of \
             the blocks, so set store.backend to s3 or gcs, or store.log to local",
        )),
        Some("object") => Ok(LogPlace::Object),
        _ => Ok(LogPlace::Local),
    }
}

/// The options of the configuration.
///
/// # Errors
/// When `server.tenant_limits` names a limit that is none, or a value that it does not take; when a
/// folder of sources is none; when an account is none, or a file of a secret or a certificate cannot be read.
pub(crate) fn server_options(
    settings: &Settings,
    companions: Companions,
) -> Result<ServerOptions, CliError> {
    let otlp = |path: &str| {
        Some(OtlpListen {
            address: settings.address(path),
            is_explicit: settings.is_explicit(path),
        })
    };
    let answers_bytes = settings.bytes("server.answers_memory");
    let limits = Limits {
        answers_bytes: usize::try_from(answers_bytes).unwrap_or(usize::MAX),
        write_timeout: settings.duration("server.write_timeout"),
        ..Limits::default()
    };
    Ok(ServerOptions {
        limits,
        otlp_grpc: otlp("server.otlp_grpc_listen"),
        otlp_http: otlp("server.otlp_http_listen"),
        http_prefixes: settings.list("server.http_prefix"),
        host_names: settings.list("server.allowed_hosts"),
        auth: auth_options(settings)?,
        tls: tls_options(settings, "server.tls")?,
        source_roots: source_roots(settings)?,
        status_source: companions.status,
        self_profiler: companions.self_profiler,
        tenant_limits: tenant_limits(settings),
        tenant_overrides: tenant_overrides(settings)?,
        sql: sql_limits(settings),
        query_cache_bytes: settings.bytes("server.query_cache"),
        ..ServerOptions::new(settings.address("server.listen"))
    })
}

fn source_roots(settings: &Settings) -> Result<SourceRoots, CliError> {
    SourceRoots::parse(&settings.list("server.source_roots"))
        .map_err(|error| CliError::usage(format!("server.source_roots: {error}")))
}

fn sql_limits(settings: &Settings) -> SqlLimits {
    let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    SqlLimits {
        memory: whole(settings.bytes("server.sql_memory")),
        timeout: settings.duration("server.sql_timeout"),
        rows: whole(settings.integer("server.sql_rows").unsigned_abs()),
    }
}

pub(crate) async fn bind(
    settings: &Settings,
    store: &Store,
    companions: Companions,
) -> Result<Server, CliError> {
    let options = ServerOptions {
        symbols: Some(symbol_sources(settings)?),
        ..server_options(settings, companions)?
    };
    let engine = Engine::with_cache(store.clone(), options.query_cache_bytes);
    Server::bind(options, store.clone(), engine)
        .await
        .map_err(|error| CliError::failed(error.to_string()))
}

/// Writes everything to blocks, so that the next start replays nothing.
pub(crate) async fn close(store: Store) -> Result<(), CliError> {
    store.shutdown().await.or_exit(
        ExitStatus::Failed,
        "cannot write the last profiles to blocks (they stay in the log)",
    )
}
