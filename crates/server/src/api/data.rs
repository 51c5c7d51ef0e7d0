//! `DELETE /api/v1/data`: profiles erased by selector.

use axum::extract::State;
use axum::http::StatusCode;
use candela_model::LabelMatcher;
use candela_model::ProfileType;
use candela_model::Selector;
use candela_model::TypeResolutionError;
use candela_model::resolve_profile_type;
use candela_query::Query;
use candela_store::Erased;
use candela_store::Erasure;
use candela_store::QuarantinedBlock;
use candela_store::StoreError;
use candela_store::TimeRange;
use serde_json::Value;
use serde_json::json;

use crate::api::errors::query_error;
use crate::api::head::milliseconds;
use crate::api::selection::boundary_of;
use crate::api::selection::selector_of;
use crate::api_error::ApiError;
use crate::app::SharedApp;
use crate::app::compute;
use crate::auth::Caller;
use crate::auth::TenantName;
use crate::parameters::Parameters;
use crate::reply::Reply;
use crate::turns::Lane;

/// Erases profiles, and answers when no file has them any more. A client that goes away does not
/// end it.
pub(crate) async fn erase(
    State(app): State<SharedApp>,
    caller: Caller,
    parameters: Parameters,
) -> Result<Reply, ApiError> {
    let tenant = caller.one_tenant()?;
    let selector = selector_of(&parameters)?;
    check_selector(&parameters, &selector)?;
    let range = range_of(&app, &parameters)?;
    let wanted_type = parameters.one("type");
    let profile_type = match wanted_type {
        None => None,
        Some(pattern) => stored_type(&app, &caller, &selector, range, pattern).await?,
    };
    let mut answer = json!({
        "query": selector.to_string(),
        "type": profile_type.as_deref().or(wanted_type),
        "from": (range.from_ns != i64::MIN).then(|| milliseconds(range.from_ns)),
        "to": (range.to_ns != i64::MAX).then(|| milliseconds(range.to_ns)),
    });
    // A type that nothing has is no reason to erase all types.
    let erased = if wanted_type.is_some() && profile_type.is_none() {
        let nothing = Erased::default();
        app.tenants.count_erased(tenant, &nothing);
        nothing
    } else {
        let erasure = Erasure {
            selector,
            profile_type,
            range,
        };
        erase_to_the_end(&app, tenant, erasure).await?
    };
    // What is gone cannot be asked who took it.
    tracing::info!(
        name = %caller.name,
        %tenant,
        query = %answer["query"],
        profiles = erased.profiles,
        "profiles were erased"
    );
    add_counts(&mut answer, &erased);
    if erased.profiles == 0 {
        answer["hint"] = json!(hint(&answer));
    }
    Ok(Reply::json("erased", answer))
}

/// Erases and counts in a task of its own: a handler ends where it waits when its client goes away,
/// and half of an erasure has still to be counted and to leave the log.
async fn erase_to_the_end(
    app: &SharedApp,
    tenant: &TenantName,
    erasure: Erasure,
) -> Result<Erased, ApiError> {
    let (app, tenant) = (SharedApp::clone(app), tenant.clone());
    let task = tokio::spawn(async move {
        let erased = app.store.erase(&tenant, erasure).await;
        let erased = erased.map_err(|error| store_error(&error))?;
        app.tenants.count_erased(&tenant, &erased);
        Ok(erased)
    });
    match task.await {
        Ok(erased) => erased,
        Err(error) => {
            tracing::error!("an erasure failed because of a bug: {error}");
            Err(ApiError::internal("this request hit a bug in the server"))
        }
    }
}

/// Refuses a selector that every profile fits: one without matchers, and one whose matchers all take
/// series that lack the label.
fn check_selector(parameters: &Parameters, selector: &Selector) -> Result<(), ApiError> {
    if parameters.one("query").is_none() {
        let message = "query is missing: which profiles are to be erased?";
        return Err(ApiError::bad_request("missing_parameter", message)
            .hint(r#"query={service_name="checkout"}"#));
    }
    let is_needed = |matcher: &LabelMatcher| !matcher.matches("");
    if selector.matchers().iter().any(is_needed) {
        return Ok(());
    }
    let message = format!("query: {selector} fits series without any label: it would erase all");
    Err(
        ApiError::bad_request("selector_too_wide", message).hint(
            r#"name a label that must be there, such as {service_name="checkout"}; {service_name=~".+"} is everything"#,
        ),
    )
}

/// All of time, unless the parameters say otherwise: what is erased should not come back because
/// nobody said since when.
fn range_of(app: &SharedApp, parameters: &Parameters) -> Result<TimeRange, ApiError> {
    let now_ns = app.clock.now_ns();
    let from_ns = boundary_of(parameters, "from", now_ns)?.unwrap_or(i64::MIN);
    let to_ns = boundary_of(parameters, "to", now_ns)?.unwrap_or(i64::MAX);
    if from_ns > to_ns {
        let message = "from is after to";
        return Err(ApiError::bad_request("bad_range", message).hint("exchange the two"));
    }
    Ok(TimeRange { from_ns, to_ns })
}

/// The stored type that an identifier, a short name or a prefix means; `None` when there is none.
async fn stored_type(
    app: &SharedApp,
    caller: &Caller,
    selector: &Selector,
    range: TimeRange,
    pattern: &str,
) -> Result<Option<String>, ApiError> {
    let query = Query {
        selector: selector.clone(),
        range,
        ..caller.query()
    };
    let types = compute(app, caller, Lane::Lists, move |app| {
        let answer = app.engine.types(&query).map_err(query_error)?;
        Ok(answer.value)
    })
    .await?;
    match resolve_profile_type(pattern, &types) {
        Ok(profile_type) => Ok(Some(profile_type.to_string())),
        // What cannot be read just now may have it, if it is one: the store looks there too.
        Err(TypeResolutionError::NoMatch { .. }) => {
            let identifier = pattern.parse::<ProfileType>();
            Ok(identifier.ok().map(|profile_type| profile_type.to_string()))
        }
        Err(error @ TypeResolutionError::Ambiguous { .. }) => {
            let error = ApiError::bad_request("bad_type", format!("type: {error}"));
            Err(error.hint("erase one after the other, by their identifiers"))
        }
    }
}

fn add_counts(answer: &mut Value, erased: &Erased) {
    answer["profiles"] = json!(erased.profiles);
    answer["samples"] = json!(erased.samples);
    answer["blocks"] = json!(erased.blocks);
    answer["bytes_before"] = json!(erased.bytes_before);
    answer["bytes_after"] = json!(erased.bytes_after);
    answer["kept_sums"] = json!(erased.kept_sums);
    answer["partial_sums"] = json!(erased.partial_sums);
    answer["leftover_files"] = json!(erased.leftover_files);
}

fn hint(answer: &Value) -> String {
    let of_type = match answer["type"].as_str() {
        Some(wanted) => format!(" of type {wanted}"),
        None => String::new(),
    };
    format!(
        "no profile{of_type} fits: here a selector sees the labels of series, not those of single \
         samples"
    )
}

fn store_error(error: &StoreError) -> ApiError {
    tracing::error!("profiles were not erased, or not all: {error}");
    let (status, message, hint) = match error {
        // Time does not cure it, so no client should try until somebody has.
        StoreError::NotErasedIn { blocks } => (
            StatusCode::INTERNAL_SERVER_ERROR,
            not_erased_in(blocks),
            "`candela store verify` says which files are damaged; send the same again when they are \
             restored or gone",
        ),
        _ => (
            StatusCode::SERVICE_UNAVAILABLE,
            "not everything could be erased; the server's log has the reason".to_owned(),
            "send the same again: it erases what is left",
        ),
    };
    ApiError::new(status, "not_erased", message).hint(hint)
}

/// Without the reasons, which name files of the server.
fn not_erased_in(blocks: &[QuarantinedBlock]) -> String {
    let names: Vec<&str> = blocks.iter().map(|block| &*block.block_id).collect();
    format!(
        "what could be read is erased, these blocks may have more of it and cannot be read: {}; restore \
         their files and start the server again, or stop it, delete all files with their names and run \
         `candela store rebuild-catalog`; then erase it again",
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::http::Uri;
    use candela_query::Engine;
    use candela_store::Store;
    use candela_store::StoreOptions;
    use futures::FutureExt;

    use super::*;
    use crate::app::App;
    use crate::app::DEFAULT_TENANT;
    use crate::options::ServerOptions;
    use crate::tenants::tenants_json;

    #[tokio::test]
    async fn a_client_that_goes_away_does_not_end_it() {
        let data_dir = tempfile::tempdir().expect("a temporary directory");
        let store = Store::open(StoreOptions::new(data_dir.path())).expect("a new store opens");
        let options = ServerOptions::new("127.0.0.1:0".parse().expect("an address"));
        let app = App::new(&options, store.clone(), Engine::new(store)).expect("no accounts");
        let caller = Caller::anonymous();
        let uri = Uri::from_static("/?query=%7Bservice_name%3D%22a%22%7D");
        let request = erase(
            State(SharedApp::clone(&app)),
            caller.clone(),
            Parameters::of(&uri),
        );
        let answer = request.now_or_never();
        assert!(answer.is_none(), "it waits, and then its client is gone");
        let counted = async {
            let requests = || {
                tenants_json(&app.tenants, &[], &caller)[DEFAULT_TENANT]["erased"]["requests"]
                    .clone()
            };
            let mut looks = tokio::time::interval(Duration::from_millis(10));
            while requests() != 1 {
                looks.tick().await;
            }
        };
        let counted = tokio::time::timeout(Duration::from_secs(60), counted).await;
        counted.expect("it is counted all the same");
    }
}
