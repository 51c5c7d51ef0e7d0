//! A request for profiles: what it selects, and how its answer is computed and sent.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use candela_query::Engine;
use candela_query::Query;
use candela_store::TimeRange;
use tokio::sync::OwnedSemaphorePermit;

use crate::answers::Reader;
use crate::api::selection::Defaults;
use crate::api::selection::base_query_of;
use crate::api::selection::query_of;
use crate::api_error::ApiError;
use crate::app::SharedApp;
use crate::app::answer;
use crate::auth::Caller;
use crate::parameters::Parameters;
use crate::reply::AcceptsGzip;
use crate::reply::Reply;
use crate::turns::Lane;

/// The request of a route that takes the parameters of a selection.
pub(crate) struct Asked {
    pub(crate) app: SharedApp,
    pub(crate) caller: Caller,
    /// What answers: the store's profiles, or those of a file.
    pub(crate) engine: Engine,
    pub(crate) accepts: AcceptsGzip,
    pub(crate) reader: Reader,
    pub(crate) parameters: Parameters,
    pub(crate) query: Query,
    /// What a comparison is with where the parameters do not say; `None` is the time before.
    pub(crate) other: Option<OtherSide>,
    /// Whether it is about files that came with the request. They can name any path, so that nothing else
    /// of this host is read for their answers.
    pub(crate) is_of_files: bool,
    /// What the request takes until it is answered.
    pub(crate) slot: Option<OwnedSemaphorePermit>,
}

/// The other side of a comparison of files.
#[derive(Clone, Debug)]
pub(crate) struct OtherSide {
    /// By which name the engine knows it.
    pub(crate) tenant: String,
    /// All of its time.
    pub(crate) range: TimeRange,
}

impl Asked {
    /// Computes the answer, and compresses it, off the reactor. A client that goes away cancels the
    /// query.
    pub(crate) async fn answer<W>(self, lane: Lane, work: W) -> Result<Reply, ApiError>
    where
        W: FnOnce(&Engine, &Query) -> Result<Reply, ApiError> + Send + 'static,
    {
        let accepts = self.accepts;
        self.answer_as_it_is(lane, move |engine, query| {
            work(engine, query).map(|reply| reply.compressed(accepts))
        })
        .await
    }

    /// The same for what is compressed already.
    pub(crate) async fn answer_as_it_is<W>(self, lane: Lane, work: W) -> Result<Reply, ApiError>
    where
        W: FnOnce(&Engine, &Query) -> Result<Reply, ApiError> + Send + 'static,
    {
        let Self {
            query,
            engine,
            slot,
            reader,
            ..
        } = self;
        let _waiting = query.cancellation.on_drop();
        let work = move || work(&engine, &query);
        answer(&self.app, &self.caller, lane, slot, reader, work).await
    }

    /// The other selection of a comparison.
    ///
    /// # Errors
    /// 400 with the parameter and what is wrong with it.
    pub(crate) fn base_query(&self) -> Result<Query, ApiError> {
        let Some(other) = &self.other else {
            return base_query_of(&self.app, &self.parameters, &self.query, None);
        };
        let base = base_query_of(&self.app, &self.parameters, &self.query, Some(other.range))?;
        Ok(Query {
            tenants: vec![other.tenant.clone()],
            ..base
        })
    }
}

impl FromRequestParts<SharedApp> for Asked {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &SharedApp) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, app).await?;
        let parameters = Parameters::of(&parts.uri);
        let defaults = Defaults::of_store(caller.query());
        Ok(Self {
            query: query_of(app, &parameters, defaults)?,
            app: SharedApp::clone(app),
            caller,
            engine: app.engine.clone(),
            accepts: AcceptsGzip::of(&parts.headers),
            reader: Reader::of(parts),
            parameters,
            other: None,
            is_of_files: false,
            slot: None,
        })
    }
}
