//! What handlers share.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use candela_model::ProfileSeries;
use candela_query::Engine;
#[cfg(feature = "sql")]
use candela_sql::SqlEngine;
#[cfg(feature = "sql")]
use candela_sql::SqlOptions;
use candela_store::Clock;
use candela_store::Store;
use candela_symbols::SourceRoots;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::Semaphore;
use tokio::sync::oneshot;

use crate::agents::Agents;
use crate::answers::Answers;
use crate::answers::Reader;
use crate::answers::Unanswered;
use crate::api::CANCELLED;
use crate::api_error::ApiError;
use crate::arrivals::Arrivals;
use crate::auth::Access;
use crate::auth::AuthError;
use crate::auth::Caller;
use crate::files::HeldFiles;
use crate::fleet::Fleet;
use crate::ingest::room::BodyRoom;
use crate::metrics::Metrics;
use crate::options::Limits;
use crate::options::ServerOptions;
use crate::reply::Reply;
use crate::sources::SelfProfiler;
use crate::sources::StatusSource;
use crate::symbolization::Symbolization;
use crate::tenants::Tenants;
use crate::turns::Lane;
use crate::turns::LaneTurns;
use crate::turns::Turn;

/// The tenant of everything until multi-tenancy is on. Handlers ask their [`Caller`].
pub(crate) const DEFAULT_TENANT: &str = "anonymous";

/// What handlers share.
pub(crate) struct App {
    pub(crate) access: Access,
    pub(crate) store: Store,
    pub(crate) engine: Engine,
    #[cfg(feature = "sql")]
    pub(crate) sql: SqlEngine,
    pub(crate) limits: Limits,
    pub(crate) tenants: Tenants,
    pub(crate) metrics: Metrics,
    pub(crate) agents: Agents,
    pub(crate) arrivals: Arrivals,
    pub(crate) symbolization: Option<Symbolization>,
    pub(crate) source_roots: SourceRoots,
    pub(crate) status_source: Option<Arc<dyn StatusSource>>,
    pub(crate) self_profiler: Option<Arc<dyn SelfProfiler>>,
    /// One profile of this process at a time: two would measure each other.
    pub(crate) self_profile_slot: Arc<Semaphore>,
    pub(crate) turns: LaneTurns,
    pub(crate) answers: Answers,
    pub(crate) decode_slots: Arc<Semaphore>,
    pub(crate) room: BodyRoom,
    pub(crate) files: HeldFiles,
    pub(crate) fleet: Fleet,
    /// Held while a document is changed in dependence of what there is.
    pub(crate) changing_documents: Mutex<()>,
    /// Whether the ports speak TLS.
    pub(crate) is_tls: bool,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) started_ns: i64,
}

pub(crate) type SharedApp = Arc<App>;

impl App {
    /// How long retention keeps the profiles of a series as they came; `None` for ever.
    pub(crate) fn keep_of(&self, tenant: &str, series: &ProfileSeries) -> Option<Duration> {
        let options = self.store.options();
        options.keep_of(tenant, &series.labels, &series.profile_type)
    }

    /// # Errors
    /// When a request could mean two accounts.
    pub(crate) fn new(
        options: &ServerOptions,
        store: Store,
        engine: Engine,
    ) -> Result<SharedApp, AuthError> {
        Ok(Arc::new(Self {
            access: Access::new(&options.auth, Arc::clone(&options.clock))?,
            #[cfg(feature = "sql")]
            sql: sql_engine(options, &store),
            store,
            engine,
            limits: options.limits,
            tenants: Tenants::new(options),
            metrics: Metrics::default(),
            agents: Agents::default(),
            arrivals: Arrivals::default(),
            symbolization: options.symbols.clone().map(Symbolization::new),
            source_roots: options.source_roots.clone(),
            status_source: options.status_source.clone(),
            self_profiler: options.self_profiler.clone(),
            self_profile_slot: Arc::new(Semaphore::new(1)),
            changing_documents: Mutex::default(),
            room: BodyRoom::new(&options.limits),
            files: HeldFiles::new(options),
            fleet: Fleet::new(options.limits.fleet_nodes),
            turns: LaneTurns::new(&options.limits),
            answers: Answers::new(&options.limits),
            decode_slots: Arc::new(Semaphore::new(options.limits.concurrent_decodes.max(1))),
            started_ns: options.clock.now_ns(),
            is_tls: options.tls.is_some(),
            clock: Arc::clone(&options.clock),
        }))
    }

    /// Waits for a caller's turn.
    ///
    /// # Errors
    /// 429 `busy` when it takes too long.
    pub(crate) async fn turn(&self, caller: &Caller, lane: Lane) -> Result<Turn, ApiError> {
        let weight = self.tenants.limits(&caller.tenant).query_weight.get();
        let weight = u32::try_from(weight).unwrap_or(u32::MAX);
        self.turns.take(&caller.asker(), weight, lane).await
    }

    pub(crate) fn uptime(&self) -> Duration {
        let elapsed = self.clock.now_ns().saturating_sub(self.started_ns);
        Duration::from_nanos(u64::try_from(elapsed).unwrap_or(0))
    }
}

#[cfg(feature = "sql")]
fn sql_engine(options: &ServerOptions, store: &Store) -> SqlEngine {
    let limits = options.sql;
    let sql_options = SqlOptions {
        memory_bytes: limits.memory,
        time: limits.timeout,
        rows: limits.rows,
        wait: options.limits.query_wait,
        ..SqlOptions::default()
    };
    SqlEngine::new(store.clone(), sql_options)
}

/// Runs CPU-bound or blocking work where it holds up no other connection. Only as many of a lane as
/// there are cores compute at once; the others wait for their turn, and are refused when that takes too long.
pub(crate) async fn compute<T, W>(
    app: &SharedApp,
    caller: &Caller,
    lane: Lane,
    work: W,
) -> Result<T, ApiError>
where
    T: Send + 'static,
    W: FnOnce(&App) -> Result<T, ApiError> + Send + 'static,
{
    let turn = app.turn(caller, lane).await?;
    let app = Arc::clone(app);
    off_the_reactor(move || {
        // Held until the work is done, even if the client has gone away meanwhile.
        let _turn = turn;
        let result = work(&app);
        if matches!(&result, Err(error) if error.code == CANCELLED) {
            app.metrics.count_cancelled();
        }
        result
    })
    .await
}

/// Computes an answer as [`compute`] does, and sends it: a long one while its client reads it.
pub(crate) async fn answer<W>(
    app: &SharedApp,
    caller: &Caller,
    lane: Lane,
    slot: Option<OwnedSemaphorePermit>,
    reader: Reader,
    work: W,
) -> Result<Reply, ApiError>
where
    W: FnOnce() -> Result<Reply, ApiError> + Send + 'static,
{
    let turn = app.turn(caller, lane).await?;
    let (client, answered) = oneshot::channel();
    let unanswered = Unanswered {
        app: Arc::clone(app),
        party: caller.asker().party(),
        client,
        reader,
        turn,
        slot,
    };
    tokio::task::spawn_blocking(move || match work() {
        Ok(reply) => reply.send(unanswered),
        Err(error) => {
            if error.code == CANCELLED {
                unanswered.app.metrics.count_cancelled();
            }
            let _ = unanswered.client.send(Err(error));
        }
    });
    let answer = answered.await;
    // The panic hook has logged where it happened.
    answer.unwrap_or_else(|_| Err(ApiError::internal("this request hit a bug in the server")))
}

/// Runs blocking work on a thread of its own; a panic in it becomes an error.
pub(crate) async fn off_the_reactor<T, W>(work: W) -> Result<T, ApiError>
where
    T: Send + 'static,
    W: FnOnce() -> Result<T, ApiError> + Send + 'static,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => {
            tracing::error!("a request failed because of a bug: {error}");
            Err(ApiError::internal("this request hit a bug in the server"))
        }
    }
}
