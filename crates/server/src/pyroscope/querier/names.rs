//! `ProfileTypes`, `LabelNames` and `LabelValues`: what there is to ask for.

use std::collections::BTreeSet;

use axum::response::Response;
use candela_model::ProfileType as ModelType;
use candela_model::Selector;
use candela_query::Query;
use candela_wire::querier::v1::ProfileTypesRequest;
use candela_wire::querier::v1::ProfileTypesResponse;
use candela_wire::types::v1::LabelNamesRequest;
use candela_wire::types::v1::LabelNamesResponse;
use candela_wire::types::v1::LabelValuesRequest;
use candela_wire::types::v1::LabelValuesResponse;
use candela_wire::types::v1::ProfileType;

use crate::api::errors::query_error;
use crate::api_error::ApiError;
use crate::app::App;
use crate::pyroscope::querier::selection::TYPE_LABELS;
use crate::pyroscope::querier::selection::is_type_label;
use crate::pyroscope::querier::selection::own_name;
use crate::pyroscope::querier::selection::parse_selector;
use crate::pyroscope::querier::selection::range_or_all;
use crate::pyroscope::querier::selection::type_label;
use crate::pyroscope::querier::selection::wants_type;
use crate::pyroscope::querier::selection::without_types;
use crate::rpc::Call;
use crate::turns::Lane;

/// Lists of matchers of one question: each is a query of its own.
const MOST_SELECTORS: usize = 100;

/// What a client says that reads names of labels of any kind; others are spared them.
pub(crate) const READS_ANY_NAME: &str = "allow-utf8-labelnames=true";

pub(crate) async fn profile_types(call: Call) -> Response {
    call.answer(
        Lane::Lists,
        |app, caller, asked: ProfileTypesRequest, cancellation| {
            let query = Query {
                // Before 1970 there is nothing, and some clients ask from there.
                range: range_or_all(asked.start.max(0), asked.end.max(0))?,
                cancellation,
                ..caller.query()
            };
            let types = app.engine.types(&query).map_err(query_error)?.value;
            Ok(ProfileTypesResponse {
                profile_types: types.iter().map(described).collect(),
            })
        },
    )
    .await
}

pub(crate) async fn label_names(call: Call) -> Response {
    let reads_any_name = call.accepts(READS_ANY_NAME);
    call.answer(
        Lane::Lists,
        move |app, caller, asked: LabelNamesRequest, cancellation| {
            let query = Query {
                range: range_or_all(asked.start, asked.end)?,
                cancellation,
                ..caller.query()
            };
            let mut names: BTreeSet<String> = BTreeSet::new();
            for selector in selectors(&asked.matchers)? {
                let query = Query {
                    selector: without_types(&selector),
                    ..query.clone()
                };
                names.extend(app.engine.labels(&query).map_err(query_error)?.value);
            }
            names.retain(|name| reads_any_name || is_plain_name(name));
            if !names.is_empty() {
                names.extend(TYPE_LABELS.map(str::to_owned));
            }
            Ok(LabelNamesResponse {
                names: names.into_iter().collect(),
            })
        },
    )
    .await
}

pub(crate) async fn label_values(call: Call) -> Response {
    call.answer(
        Lane::Lists,
        |app, caller, asked: LabelValuesRequest, cancellation| {
            if asked.name.is_empty() {
                let message = "name is missing";
                return Err(ApiError::bad_request("missing_parameter", message));
            }
            let query = Query {
                range: range_or_all(asked.start, asked.end)?,
                cancellation,
                ..caller.query()
            };
            let mut values = BTreeSet::new();
            for selector in selectors(&asked.matchers)? {
                values.extend(values_of(app, &query, &selector, &asked.name)?);
            }
            Ok(LabelValuesResponse {
                names: values.into_iter().collect(),
            })
        },
    )
    .await
}

/// The values of a label, or of what clients know as a label of the profile type.
pub(crate) fn values_of(
    app: &App,
    query: &Query,
    selector: &Selector,
    name: &str,
) -> Result<Vec<String>, ApiError> {
    let query = Query {
        selector: without_types(selector),
        ..query.clone()
    };
    if is_type_label(name) {
        let types = app.engine.types(&query).map_err(query_error)?.value;
        let wanted = types.iter().filter(|found| wants_type(selector, found));
        return Ok(wanted.filter_map(|found| type_label(name, found)).collect());
    }
    let answer = app.engine.label_values(&query, own_name(name));
    Ok(answer.map_err(query_error)?.value)
}

/// The selectors of a list of matchers; none is one for everything.
///
/// # Errors
/// 400 when one is none, or they are too many.
pub(crate) fn selectors(matchers: &[String]) -> Result<Vec<Selector>, ApiError> {
    if matchers.is_empty() {
        return Ok(vec![Selector::default()]);
    }
    if matchers.len() > MOST_SELECTORS {
        let count = matchers.len();
        let message = format!("{count} matchers, at most {MOST_SELECTORS} may be");
        return Err(ApiError::bad_request("too_many_matchers", message));
    }
    let parsed = matchers.iter().map(|text| parse_selector("matchers", text));
    parsed.collect()
}

fn described(found: &ModelType) -> ProfileType {
    ProfileType {
        id: found.to_string(),
        name: found.name.clone(),
        sample_type: found.sample_type.clone(),
        sample_unit: found.sample_unit.clone(),
        period_type: found.period_type.clone(),
        period_unit: found.period_unit.clone(),
    }
}

/// Whether a name is one that all clients read: `[a-zA-Z_][a-zA-Z0-9_]*`.
pub(crate) fn is_plain_name(name: &str) -> bool {
    let is_word = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
    name.bytes().all(is_word)
        && name
            .bytes()
            .next()
            .is_some_and(|first| !first.is_ascii_digit())
}
