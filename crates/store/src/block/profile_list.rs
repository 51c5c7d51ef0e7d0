//! The profiles of a block that is to be written, in its order.

use std::sync::Arc;

use candela_model::Labels;
use candela_model::ProfileType;
use candela_model::SERVICE_NAME_LABEL;

/// A profile without its samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProfileFacts {
    /// Position in [`ProfileList::series`].
    pub(crate) series: u32,
    /// Position in [`ProfileList::types`].
    pub(crate) profile_type: u32,
    /// Start of the window, nanoseconds since the Unix epoch.
    pub(crate) start_ns: i64,
    /// Length of the window, nanoseconds.
    pub(crate) duration_ns: i64,
    /// Distance between samples in the unit of the period; 0 when unknown.
    pub(crate) period: i64,
    /// Sum of the values.
    pub(crate) total: i64,
    /// Number of samples.
    pub(crate) sample_count: u32,
    /// How many profiles were added up into this one.
    pub(crate) merged_profiles: u32,
}

/// Profiles and what they refer to.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProfileList {
    /// The series that occur, each once.
    pub(crate) series: Vec<Arc<Labels>>,
    /// The types that occur, each once.
    pub(crate) types: Vec<Arc<ProfileType>>,
    /// The profiles.
    pub(crate) rows: Vec<ProfileFacts>,
}

impl ProfileList {
    /// Sorts the rows as a block has them (service, type, start, labels) and gives for each the
    /// position that it had.
    pub(crate) fn sort(&mut self) -> Vec<u32> {
        let services = ranks(self.series.iter().map(|labels| service_of(labels)));
        let series = ranks(self.series.iter().map(|labels| &**labels));
        let types = ranks(self.types.iter().map(ToString::to_string));
        let mut order: Vec<u32> = (0..self.rows.len() as u32).collect();
        order.sort_by_key(|&position| {
            let row = &self.rows[position as usize];
            let (of_series, of_type) = (row.series as usize, row.profile_type as usize);
            let kind = (services[of_series], types[of_type]);
            (kind, row.start_ns, series[of_series])
        });
        let rows = order.iter().map(|&position| self.rows[position as usize]);
        self.rows = rows.collect();
        order
    }

    /// The rows of each service, one after the other.
    pub(crate) fn by_service(&self) -> impl Iterator<Item = &[ProfileFacts]> {
        self.rows
            .chunk_by(|left, right| self.service(left) == self.service(right))
    }

    /// The service of a row.
    pub(crate) fn service(&self, row: &ProfileFacts) -> &str {
        service_of(&self.series[row.series as usize])
    }
}

fn service_of(labels: &Labels) -> &str {
    labels.get(SERVICE_NAME_LABEL).unwrap_or("")
}

/// For each value its place among the distinct ones.
fn ranks<T: Ord>(values: impl Iterator<Item = T>) -> Vec<u32> {
    let values: Vec<T> = values.collect();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&left, &right| values[left].cmp(&values[right]));
    let mut ranks = vec![0; values.len()];
    let mut rank = 0;
    for pair in 0..order.len() {
        if pair > 0 && values[order[pair]] != values[order[pair - 1]] {
            rank += 1;
        }
        ranks[order[pair]] = rank;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_one_rank() {
        assert_eq!(ranks(["b", "a", "b", "c"].into_iter()), [1, 0, 1, 2]);
    }
}
