//! Which profiles there are, one by one.

use std::collections::BTreeSet;
use std::sync::Arc;

use candela_model::Labels;
use candela_model::ProfileType;

use crate::engine::Engine;
use crate::engine::hint_if;
use crate::error::QueryError;
use crate::matching::SeriesMatch;
use crate::plan::series_matches;
use crate::profile_key::ProfileKey;
use crate::query::Answer;
use crate::query::Query;

/// Bytes of a profile in a list, with its place in it.
const STORED_BYTES: usize = 2 * size_of::<StoredProfile>();
/// What is said of sums.
const NO_SINGLE_PROFILES: &str = "in which no single profile is: they are left out";

/// A profile: one series, type and window.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoredProfile {
    /// The start of its window, nanoseconds since the Unix epoch.
    pub start_ns: i64,
    /// Whose it is.
    pub tenant: Arc<str>,
    /// The labels of its series.
    pub labels: Arc<Labels>,
    /// Its type, as it is stored.
    pub profile_type: Arc<ProfileType>,
}

impl StoredProfile {
    /// What [`Query::profiles`] takes.
    #[must_use]
    pub fn key(&self) -> ProfileKey {
        ProfileKey::new(
            &self.tenant,
            &self.labels,
            &self.profile_type,
            self.start_ns,
        )
    }
}

impl Engine {
    /// The profiles of the series whose labels match, by their starts, each once. The query's type,
    /// its filters and what it asks for of links and single profiles do not matter; labels of samples
    /// choose none.
    ///
    /// # Errors
    /// When the range is none, or the budget is spent.
    pub fn stored_profiles(&self, query: &Query) -> Result<Answer<Vec<StoredProfile>>, QueryError> {
        let query = &query.of_names();
        let mut loaded = self.load_whole_profiles(query, &[])?;
        loaded.tell_of_all_sums(query, NO_SINGLE_PROFILES);
        let tenants = query.distinct_tenants().into_iter();
        let tenants: Vec<Arc<str>> = tenants.map(Arc::from).collect();
        let mut found: BTreeSet<StoredProfile> = BTreeSet::new();
        for source in &loaded.sources {
            if source.day_of_sums().is_some() {
                continue;
            }
            loaded.meter.check_time()?;
            let matches = series_matches(source, query);
            let table = &source.profiles;
            for row in &table.rows {
                let is_match = query.range.contains(row.start_ns)
                    && matches[row.series as usize] == SeriesMatch::All;
                if !is_match {
                    continue;
                }
                let is_new = found.insert(StoredProfile {
                    start_ns: row.start_ns,
                    tenant: Arc::clone(&tenants[source.owner as usize]),
                    labels: Arc::clone(&table.series[row.series as usize]),
                    profile_type: Arc::clone(&table.types[row.profile_type as usize]),
                });
                if is_new {
                    loaded.meter.allocate(STORED_BYTES)?;
                }
            }
        }
        Ok(Answer {
            hint: hint_if(found.is_empty(), query, &loaded)?,
            partial: loaded.partial(),
            value: found.into_iter().collect(),
            ..Answer::default()
        })
    }
}
