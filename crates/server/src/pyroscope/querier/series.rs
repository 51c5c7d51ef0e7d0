//! `Series`: which values of labels there are together.

use std::collections::BTreeSet;

use axum::response::Response;
use candela_model::Labels;
use candela_model::ProfileType;
use candela_query::Query;
use candela_wire::querier::v1::SeriesRequest;
use candela_wire::querier::v1::SeriesResponse;
use candela_wire::types::v1::Labels as LabelsMessage;

use crate::api::errors::query_error;
use crate::pyroscope::querier::lines::pairs;
use crate::pyroscope::querier::names::READS_ANY_NAME;
use crate::pyroscope::querier::names::is_plain_name;
use crate::pyroscope::querier::names::selectors;
use crate::pyroscope::querier::selection::PROFILE_TYPE;
use crate::pyroscope::querier::selection::TYPE_LABELS;
use crate::pyroscope::querier::selection::is_type_label;
use crate::pyroscope::querier::selection::own_name;
use crate::pyroscope::querier::selection::range_or_all;
use crate::pyroscope::querier::selection::type_label;
use crate::pyroscope::querier::selection::wants_type;
use crate::pyroscope::querier::selection::without_types;
use crate::rpc::Call;
use crate::turns::Lane;

pub(crate) async fn series(call: Call) -> Response {
    let reads_any_name = call.accepts(READS_ANY_NAME);
    call.answer(
        Lane::Lists,
        move |app, caller, asked: SeriesRequest, cancellation| {
            let query = Query {
                range: range_or_all(asked.start, asked.end)?,
                cancellation,
                ..caller.query()
            };
            let names = names_to_read(&asked.label_names);
            let mut found: BTreeSet<Labels> = BTreeSet::new();
            for selector in selectors(&asked.matchers)? {
                let query = Query {
                    selector: without_types(&selector),
                    ..query.clone()
                };
                let sets = app.engine.label_sets(&query, &names);
                for set in sets.map_err(query_error)?.value {
                    let id = set.get(PROFILE_TYPE).unwrap_or("");
                    let Ok(profile_type) = id.parse() else {
                        continue;
                    };
                    if wants_type(&selector, &profile_type) {
                        found.insert(shown(&set, &profile_type, &asked.label_names));
                    }
                }
            }
            let sets = found.iter().map(|set| {
                let is_read = |name: &str| reads_any_name || is_plain_name(name);
                Labels::from_pairs(set.iter().filter(|(name, _)| is_read(name)))
            });
            // Without the names that a client does not read some are equal.
            let sets: BTreeSet<Labels> = sets.filter(|set| set.iter().next().is_some()).collect();
            let sets = sets.iter().map(|set| LabelsMessage { labels: pairs(set) });
            Ok(SeriesResponse {
                labels_set: sets.collect(),
            })
        },
    )
    .await
}

/// What the engine is asked for: of types always the whole, which tells all parts, and whether
/// the matchers want it.
fn names_to_read(asked: &[String]) -> Vec<&str> {
    if asked.is_empty() {
        return Vec::new();
    }
    let names = asked.iter().map(|name| own_name(name));
    let own = names.filter(|name| !is_type_label(name));
    own.chain([PROFILE_TYPE]).collect()
}

/// The labels of a set under the names that clients know; all of them where none are asked for.
fn shown(set: &Labels, profile_type: &ProfileType, asked: &[String]) -> Labels {
    let value = |name: &str| {
        let of_series = || set.get(own_name(name)).map(str::to_owned);
        type_label(name, profile_type).or_else(of_series)
    };
    let names: Vec<&str> = if asked.is_empty() {
        let of_series = set.iter().map(|(name, _)| name);
        of_series.chain(TYPE_LABELS).collect()
    } else {
        asked.iter().map(String::as_str).collect()
    };
    let names: BTreeSet<&str> = names.into_iter().collect();
    let pairs = names.iter().filter_map(|name| Some((*name, value(name)?)));
    Labels::from_pairs(pairs)
}
