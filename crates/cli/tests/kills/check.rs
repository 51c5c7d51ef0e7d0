//! What must be true after every restart.

use std::collections::BTreeMap;

use super::load::COMMON_VALUE;
use super::load::Ledger;
use crate::support;
use crate::support::Running;

const SELECTION: &str = "type=cpu&from=now-3d&to=now%2B1h";

/// Acknowledged is readable, nothing is there twice, and all ways to a total agree.
pub(crate) fn check(candela: &Running, ledger: &Ledger, context: &str) {
    let top = support::get_json(&candela.url(&format!("/api/v1/top?{SELECTION}&limit=0")));
    let is_partial = top["partial"].as_bool().unwrap_or(false);
    assert!(!is_partial, "{context}: {top}");
    let rows = top["functions"].as_array().unwrap().iter();
    let own_values: BTreeMap<&str, i64> = rows
        .map(|row| (row["name"].as_str().unwrap(), row["self"].as_i64().unwrap()))
        .collect();
    let acknowledged = ledger.acknowledged.lock().unwrap();
    let unanswered = ledger.unanswered.lock().unwrap();
    let found = |number: u64| own_values.get(format!("push_{number}").as_str()).copied();
    let mut present = 0;
    let mut total = 0;
    for push in acknowledged.values() {
        let number = push.number;
        let value = found(number);
        assert_eq!(
            value,
            Some(push.value),
            "{context}: push {number} was acknowledged"
        );
        present += 1;
        total += push.total;
    }
    for push in unanswered.values() {
        let number = push.number;
        let Some(value) = found(number) else {
            continue;
        };
        assert_eq!(
            value, push.value,
            "{context}: push {number}, not answered, as a whole"
        );
        present += 1;
        total += push.total;
    }
    let pushes = own_values.keys().filter(|name| name.starts_with("push_"));
    assert_eq!(
        pushes.count(),
        present,
        "{context}: nothing that was not sent"
    );
    let common = own_values.get("common").copied().unwrap_or(0);
    let once_each = present as i64 * COMMON_VALUE;
    assert_eq!(common, once_each, "{context}: each push once");
    assert_eq!(
        top["total"].as_i64(),
        Some(total),
        "{context}: total of samples"
    );
    // Series read the table of profiles, not that of samples.
    let series = support::get_json(&candela.url(&format!("/api/v1/series?{SELECTION}&step=86400")));
    let lines = series["series"].as_array().unwrap().iter();
    let points = lines.flat_map(|line| line["points"].as_array().unwrap());
    let of_series: i64 = points.filter_map(|point| point[1].as_i64()).sum();
    assert_eq!(of_series, total, "{context}: total of series: {series}");
    let status = support::get_json(&candela.url("/api/v1/status"));
    let drops = status["drops"].as_array().unwrap();
    assert!(
        drops.is_empty(),
        "{context}: the store lost something: {drops:?}"
    );
}
