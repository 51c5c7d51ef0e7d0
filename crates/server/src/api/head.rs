//! What every answer about values begins with.

use candela_query::Answer;
use candela_query::Query;
use serde_json::Value;
use serde_json::json;

const NANOSECONDS_PER_MILLISECOND: i64 = 1_000_000;

/// Type, unit and range, and whatever the user should know about the answer: a hint when nothing
/// matched, and why when it is only a part.
pub(crate) fn answer_head<T>(query: &Query, answer: &Answer<T>) -> Value {
    let profile_type = answer.profile_type.as_ref();
    let mut head = json!({
        "type": profile_type.map_or_else(|| query.profile_type.clone(), ToString::to_string),
        "unit": profile_type.map_or("", |profile_type| &profile_type.sample_unit),
        "from": milliseconds(query.range.from_ns),
        "to": milliseconds(query.range.to_ns),
    });
    add_remarks(&mut head, answer);
    head
}

/// `hint`, `partial` and `partial_reason`, where there is something to say.
pub(crate) fn add_remarks<T>(head: &mut Value, answer: &Answer<T>) {
    if let Some(hint) = &answer.hint {
        head["hint"] = json!(hint);
    }
    if let Some(reason) = &answer.partial {
        head["partial"] = json!(true);
        head["partial_reason"] = json!(reason);
    }
}

/// The time that profiles took, which may be less than a millisecond and is not 0.
pub(crate) fn profiled_ms(nanoseconds: i64) -> f64 {
    nanoseconds as f64 / NANOSECONDS_PER_MILLISECOND as f64
}

pub(crate) fn milliseconds(nanoseconds: i64) -> i64 {
    nanoseconds.div_euclid(NANOSECONDS_PER_MILLISECOND)
}
