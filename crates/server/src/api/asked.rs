//! A request for stored profiles: what it selects, and how its answer is computed and sent.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use candela_query::Query;

use crate::api::selection::base_query_of;
use crate::api::selection::query_of;
use crate::api_error::ApiError;
use crate::app::App;
use crate::app::SharedApp;
use crate::app::compute;
use crate::auth::Caller;
use crate::parameters::Parameters;
use crate::reply::AcceptsGzip;
use crate::reply::Reply;

/// The request of a route that takes the parameters of a selection.
pub(crate) struct Asked {
    pub(crate) app: SharedApp,
    accepts: AcceptsGzip,
    pub(crate) parameters: Parameters,
    pub(crate) query: Query,
}

impl Asked {
    /// Computes the answer, and compresses it, off the reactor. A client that goes away cancels the
    /// query.
    pub(crate) async fn answer<W>(self, work: W) -> Result<Reply, ApiError>
    where
        W: FnOnce(&App, &Query) -> Result<Reply, ApiError> + Send + 'static,
    {
        let accepts = self.accepts;
        self.answer_as_it_is(move |app, query| {
            work(app, query).map(|reply| reply.compressed(accepts))
        })
        .await
    }

    /// The same for what is compressed already.
    pub(crate) async fn answer_as_it_is<W>(self, work: W) -> Result<Reply, ApiError>
    where
        W: FnOnce(&App, &Query) -> Result<Reply, ApiError> + Send + 'static,
    {
        let query = self.query;
        let _waiting = query.cancellation.on_drop();
        compute(&self.app, move |app| work(app, &query)).await
    }

    /// The other selection of a comparison.
    ///
    /// # Errors
    /// 400 with the parameter and what is wrong with it.
    pub(crate) fn base_query(&self) -> Result<Query, ApiError> {
        base_query_of(&self.app, &self.parameters, &self.query)
    }
}

impl FromRequestParts<SharedApp> for Asked {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &SharedApp) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, app).await?;
        let parameters = Parameters::of(&parts.uri);
        Ok(Self {
            query: query_of(app, &caller, &parameters)?,
            app: SharedApp::clone(app),
            accepts: AcceptsGzip::of(&parts.headers),
            parameters,
        })
    }
}
