//! `GET /api/0/…`: profiles that are stored, whoever sent them.

use std::collections::BTreeSet;

use axum::extract::Path;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use candela_formats::PprofOptions;
use candela_formats::write_pprof;
use candela_model::Profile;
use candela_model::ProfileType;
use candela_model::SERVICE_NAME_LABEL;
use candela_query::Cancellation;
use candela_query::ProfileKey;
use candela_query::Query;
use candela_query::StoredProfile;
use candela_store::TimeRange;
use serde_json::Value;
use serde_json::json;

use crate::api::errors::query_error;
use crate::api_error::ApiError;
use crate::app::App;
use crate::app::SharedApp;
use crate::app::compute;
use crate::auth::Caller;
use crate::parameters::Parameters;
use crate::profefe::asked::Asked;
use crate::profefe::kind::Kind;
use crate::profefe::model::whole_profiles;
use crate::profefe::reply::Found;
use crate::profefe::reply::respond;
use crate::turns::Lane;

/// Profiles that one request may name.
const MOST_IDS: usize = 100;

pub(crate) async fn list(
    State(app): State<SharedApp>,
    caller: Caller,
    parameters: Parameters,
) -> Response {
    let asked = Asked::of(&parameters);
    let work = |app: &App, query: Query, asked: Asked| {
        let stored = app.engine.stored_profiles(&query).map_err(query_error)?;
        let whole = whole_profiles(stored.value).into_keys();
        let wanted = whole.filter(|profile| is_wanted(asked.kind, &profile.name));
        let mut profiles: Vec<Value> = wanted
            .take(asked.limit.saturating_add(1))
            .map(|profile| profile.json())
            .collect();
        if profiles.is_empty() {
            return Ok(Found::Nothing);
        }
        let mut partial = stored.partial;
        if profiles.len() > asked.limit {
            profiles.truncate(asked.limit);
            let message = format!("there are more than the first {} profiles", asked.limit);
            partial = partial.or(Some(message));
        }
        Ok(Found::Body(profiles.into(), partial))
    };
    respond(answer_asked(&app, &caller, asked, work).await)
}

pub(crate) async fn merge(
    State(app): State<SharedApp>,
    caller: Caller,
    parameters: Parameters,
) -> Response {
    let asked = Asked::of(&parameters).and_then(|asked| match asked.kind {
        Some(_) => Ok(asked),
        None => Err(ApiError::bad_request(
            "missing_parameter",
            "missing \"type\"",
        )),
    });
    let work = |app: &App, query: Query, asked: Asked| {
        let types = app.engine.types(&query).map_err(query_error)?.value;
        let wanted = types.into_iter();
        let wanted = wanted.filter(|it| is_wanted(asked.kind, &it.name));
        pprof(app, &query, wanted)
    };
    respond(answer_asked(&app, &caller, asked, work).await)
}

pub(crate) async fn by_ids(
    State(app): State<SharedApp>,
    caller: Caller,
    Path(ids): Path<String>,
) -> Response {
    let query = caller.query();
    let _waiting = query.cancellation.on_drop();
    let answer = match parse_ids(&ids) {
        Ok(ids) => {
            compute(&app, &caller, Lane::Queries, move |app| {
                profiles_of_ids(app, &query, &ids)
            })
            .await
        }
        Err(error) => Err(error),
    };
    respond(answer)
}

pub(crate) async fn services(State(app): State<SharedApp>, caller: Caller) -> Response {
    let query = caller.query();
    let _waiting = query.cancellation.on_drop();
    let answer = compute(&app, &caller, Lane::Lists, move |app| {
        let values = app.engine.label_values(&query, SERVICE_NAME_LABEL);
        let values = values.map_err(query_error)?;
        Ok(Found::Body(json!(values.value), values.partial))
    });
    respond(answer.await)
}

pub(crate) async fn version() -> Response {
    let version = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "commit": "",
        "build_time": "",
    });
    respond(Ok(Found::Body(version, None)))
}

async fn answer_asked(
    app: &SharedApp,
    caller: &Caller,
    asked: Result<Asked, ApiError>,
    work: impl FnOnce(&App, Query, Asked) -> Result<Found, ApiError> + Send + 'static,
) -> Result<Found, ApiError> {
    let asked = asked?;
    let query = Query {
        selector: asked.selector.clone(),
        range: asked.range,
        cancellation: Cancellation::default(),
        ..caller.query()
    };
    let _waiting = query.cancellation.on_drop();
    compute(app, caller, Lane::Queries, move |app| {
        work(app, query, asked)
    })
    .await
}

fn is_wanted(kind: Option<Kind>, name: &str) -> bool {
    kind.is_none_or(|kind| kind == Kind::of_name(name))
}

/// `ID+ID`; some clients write the plus as a space.
fn parse_ids(text: &str) -> Result<BTreeSet<ProfileKey>, ApiError> {
    let parts: Vec<&str> = text.split(['+', ' ']).collect();
    if parts.len() > MOST_IDS {
        let message = format!("{} ids, at most {MOST_IDS} may be", parts.len());
        return Err(ApiError::bad_request("too_many_ids", message));
    }
    let keys = parts.into_iter().map(|part| {
        part.parse::<ProfileKey>()
            .map_err(|error| ApiError::bad_request("bad_id", error.to_string()))
    });
    keys.collect()
}

/// The profiles of these ids as one: of one type, and all of them must be there.
fn profiles_of_ids(
    app: &App,
    query: &Query,
    ids: &BTreeSet<ProfileKey>,
) -> Result<Found, ApiError> {
    let mut parts: Vec<StoredProfile> = Vec::new();
    let mut names: BTreeSet<String> = BTreeSet::new();
    for id in ids {
        let start_ns = id.start_ns();
        let at_start = Query {
            range: TimeRange {
                from_ns: start_ns,
                to_ns: start_ns.saturating_add(1),
            },
            ..query.clone()
        };
        let stored = app.engine.stored_profiles(&at_start).map_err(query_error)?;
        let mut whole = whole_profiles(stored.value).into_iter();
        let found = whole.find(|(profile, _)| profile.id() == *id);
        let Some((profile, of_profile)) = found else {
            let message = format!("there is no profile {id}");
            return Err(ApiError::new(
                StatusCode::NOT_FOUND,
                "unknown_profile",
                message,
            ));
        };
        names.insert(profile.name);
        parts.extend(of_profile);
    }
    if names.len() > 1 {
        let names: Vec<String> = names.into_iter().collect();
        let message = format!(
            "profiles of different types cannot be merged: {}",
            names.join(", ")
        );
        return Err(ApiError::bad_request("bad_type", message));
    }
    let starts = || parts.iter().map(|part| part.start_ns);
    let query = Query {
        range: TimeRange {
            from_ns: starts().min().unwrap_or(0),
            to_ns: starts().max().unwrap_or(0).saturating_add(1),
        },
        profiles: parts.iter().map(StoredProfile::key).collect(),
        ..query.clone()
    };
    let types: BTreeSet<ProfileType> = parts
        .iter()
        .map(|part| ProfileType::clone(&part.profile_type))
        .collect();
    pprof(app, &query, types.into_iter())
}

/// What a query finds of several types, in one pprof.
fn pprof(
    app: &App,
    query: &Query,
    types: impl Iterator<Item = ProfileType>,
) -> Result<Found, ApiError> {
    let mut merged = Profile::default();
    let mut partial = None;
    for profile_type in types {
        let query = Query {
            profile_type: profile_type.to_string(),
            ..query.clone()
        };
        let answer = app.engine.profile(&query).map_err(query_error)?;
        merged.absorb(&answer.value);
        partial = partial.or(answer.partial);
    }
    if merged.series.is_empty() {
        return Ok(Found::Nothing);
    }
    let options = PprofOptions {
        compress: true,
        comments: partial.iter().cloned().collect(),
        ..PprofOptions::default()
    };
    let mut bytes = Vec::new();
    write_pprof(&merged, &mut bytes, &options).map_err(ApiError::unwritten)?;
    Ok(Found::Pprof(bytes, partial))
}
