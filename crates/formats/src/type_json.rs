//! A profile type as the HTTP API's `/types` writes it.

use candela_model::ProfileType;
use candela_model::short_name;
use serde_json::Value;
use serde_json::json;

/// The five parts, the id that queries use, and the short name that people see.
#[must_use]
pub fn type_json(profile_type: &ProfileType) -> Value {
    json!({
        "id": profile_type.to_string(),
        "name": profile_type.name,
        "sample_type": profile_type.sample_type,
        "sample_unit": profile_type.sample_unit,
        "period_type": profile_type.period_type,
        "period_unit": profile_type.period_unit,
        "short": short_name(profile_type),
    })
}
