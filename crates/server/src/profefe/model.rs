//! Profiles as Profefe has them.

use std::collections::BTreeMap;
use std::sync::Arc;

use candela_model::Labels;
use candela_model::ProfileType;
use candela_model::SERVICE_NAME_LABEL;
use candela_query::ProfileKey;
use candela_query::StoredProfile;
use jiff::Timestamp;
use serde_json::Value;
use serde_json::json;

use crate::profefe::kind::Kind;

const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;

/// All that came in one pprof.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WholeProfile {
    pub(super) start_ns: i64,
    pub(super) tenant: Arc<str>,
    pub(super) labels: Arc<Labels>,
    /// The first part of its types.
    pub(super) name: String,
}

impl WholeProfile {
    /// What it is called: its parts have keys of their own, with the rest of their types.
    pub(super) fn id(&self) -> ProfileKey {
        let profile_type = ProfileType {
            name: self.name.clone(),
            ..ProfileType::default()
        };
        ProfileKey::new(&self.tenant, &self.labels, &profile_type, self.start_ns)
    }

    pub(super) fn json(&self) -> Value {
        let others = self
            .labels
            .iter()
            .filter(|(name, _)| *name != SERVICE_NAME_LABEL);
        let labels: Vec<Value> = others
            .map(|(name, value)| json!({"key": name, "value": value}))
            .collect();
        let mut value = json!({
            "id": self.id().to_string(),
            "type": Kind::of_name(&self.name).name(),
            "service": self.labels.get(SERVICE_NAME_LABEL).unwrap_or(""),
            "created_at": created_at(self.start_ns),
        });
        if !labels.is_empty() {
            value["labels"] = labels.into();
        }
        value
    }
}

/// Parts by what they are parts of, in the order of their starts.
pub(super) fn whole_profiles(
    parts: Vec<StoredProfile>,
) -> BTreeMap<WholeProfile, Vec<StoredProfile>> {
    let mut whole: BTreeMap<WholeProfile, Vec<StoredProfile>> = BTreeMap::new();
    for part in parts {
        let profile = WholeProfile {
            start_ns: part.start_ns,
            tenant: Arc::clone(&part.tenant),
            labels: Arc::clone(&part.labels),
            name: part.profile_type.name.clone(),
        };
        whole.entry(profile).or_default().push(part);
    }
    whole
}

/// RFC 3339 in whole seconds.
fn created_at(start_ns: i64) -> String {
    let seconds = start_ns.div_euclid(NANOSECONDS_PER_SECOND);
    let time = Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH);
    time.to_string()
}
