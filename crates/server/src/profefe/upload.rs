//! `POST /api/0/profiles`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use candela_formats::ReadOptions;
use candela_model::SERVICE_NAME_LABEL;

use crate::api_error::ApiError;
use crate::app::App;
use crate::app::SharedApp;
use crate::auth::Caller;
use crate::auth::TenantName;
use crate::ingest::append::received_hash;
use crate::ingest::batch::Batch;
use crate::ingest::body::BodyBounds;
use crate::ingest::body::SentBody;
use crate::ingest::body::read_body;
use crate::ingest::decode::Decoded;
use crate::ingest::decode::decode;
use crate::ingest::pushed_labels::PushedLabels;
use crate::ingest::read::inflated;
use crate::ingest::read::read_error;
use crate::ingest::read::read_options;
use crate::ingest::room::reserve;
use crate::parameters::Parameters;
use crate::profefe::asked::labels_of;
use crate::profefe::asked::parse_time;
use crate::profefe::asked::service_of;
use crate::profefe::kind::Kind;
use crate::profefe::model::WholeProfile;
use crate::profefe::reply::Found;
use crate::profefe::reply::respond;

/// What the parameters say of the profile in the body.
struct Described {
    labels: PushedLabels,
    name: &'static str,
    /// When it was taken, if it does not say so itself.
    created_at_ns: Option<i64>,
}

/// Stores the profile in the body.
pub(crate) async fn upload(
    State(app): State<SharedApp>,
    caller: Caller,
    parameters: Parameters,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let stored = receive(&app, &caller.tenant, &parameters, &headers, body).await;
    respond(stored.map(|profile| Found::Body(profile.json(), None)))
}

async fn receive(
    app: &SharedApp,
    tenant: &TenantName,
    parameters: &Parameters,
    headers: &HeaderMap,
    body: Body,
) -> Result<WholeProfile, ApiError> {
    let counted = |error: &ApiError| app.metrics.count_refused(tenant, error.code, 1);
    let described = Described::of(parameters).inspect_err(counted)?;
    let bounds = BodyBounds::profile(&app.tenants.limits(tenant));
    let _room = reserve(app, bounds, headers).await.inspect_err(counted)?;
    let body = read_body(&app.limits, bounds, headers, body).await;
    let body = body.inspect_err(counted)?;
    let bytes = body.bytes.len() as u64;
    // The time is part of what a profile without one is: another time makes another profile of it.
    let said = [
        format!("{} {}", described.name, described.labels.labels),
        described
            .created_at_ns
            .map_or_else(String::new, |time_ns| time_ns.to_string()),
    ];
    let hash = received_hash("profefe", &[&said[0], &said[1]], &body.bytes);
    let of_tenant = tenant.clone();
    let read = move |app: &App| described.read(app, &of_tenant, body);
    let Decoded {
        value: (batch, whole),
        slot,
    } = decode(app, read).await.inspect_err(counted)?;
    let outcome = batch.outcome();
    batch.store(app, tenant, "profefe", hash, bytes).await?;
    drop(slot);
    outcome?;
    Ok(whole)
}

impl Described {
    fn of(parameters: &Parameters) -> Result<Self, ApiError> {
        let service = service_of(parameters)?;
        let kind = Kind::parse(parameters.one("type").unwrap_or(""))?;
        let mut pairs = labels_of(parameters)?;
        pairs.push((SERVICE_NAME_LABEL.to_owned(), service.to_owned()));
        let created_at = parameters.one("created_at");
        let created_at = created_at.map(|text| parse_time("created_at", text));
        Ok(Self {
            labels: PushedLabels::from_pairs(pairs),
            name: kind.names()[0],
            created_at_ns: created_at.transpose()?,
        })
    }

    fn read(
        self,
        app: &App,
        tenant: &TenantName,
        body: SentBody,
    ) -> Result<(Batch, WholeProfile), ApiError> {
        app.tenants.check_rate(tenant).map_err(ApiError::exceeded)?;
        let limits = app.tenants.limits(tenant);
        let bounds = BodyBounds::profile(&limits);
        let bytes = body.decoded(bounds)?;
        let bytes = inflated(&bytes, bounds)?;
        let usual = read_options(app, &limits, bounds);
        let now_ns = self.created_at_ns.unwrap_or(usual.now_ns);
        let options = ReadOptions {
            labels: self.labels.labels.clone(),
            profile_name: Some(self.name.to_owned()),
            now_ns,
            ..usual
        };
        let read = candela_formats::read_pprof(&bytes[..], &options);
        let (mut profile, mut report) = read.map_err(|error| read_error(&error))?;
        app.tenants.charge(tenant, bytes.len() as u64);
        for series in &mut profile.series {
            // A file of ours has a name in it; here the parameter says what it is.
            self.name.clone_into(&mut series.profile_type.name);
        }
        let start_ns = profile.series.first().map(|series| series.start_ns);
        let mut batch = Batch::default();
        batch.add(app, tenant, profile, &mut report);
        // Such a file has labels, too, which are part of what the profile is called.
        let first = batch.profile().series.first();
        let labels = first.map_or(&self.labels.labels, |series| &series.labels);
        let whole = WholeProfile {
            start_ns: start_ns.unwrap_or(now_ns),
            tenant: Arc::from(&**tenant),
            labels: Arc::new(labels.clone()),
            name: self.name.to_owned(),
        };
        Ok((batch, whole))
    }
}
