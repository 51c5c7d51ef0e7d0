//! Rates by the most obvious means: every profile takes [`STEP_NS`], and starts at a multiple of it.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use candela_model::FilterKind;
use candela_model::Labels;
use candela_query::Query;
use candela_query::SeriesOptions;

use super::CPU;
use super::FlatProfile;
use super::Naive;
use super::SAMPLES;
use super::STEP_NS;
use super::filters;
use super::line_of;

impl Naive {
    /// When profiles start that are in the time of an answer: of series that match, whatever their samples are.
    pub(crate) fn profiled_starts(&self, query: &Query, service: Option<&str>) -> BTreeSet<i64> {
        let is_profiled = |profile: &&FlatProfile| {
            let is_source = profile.profile_type == query.profile_type
                || (query.profile_type == SAMPLES
                    && profile.profile_type == CPU
                    && profile.period > 0);
            is_source
                && profile.is_of(query)
                && query.range.contains(profile.start_ns)
                && (query.profiles.is_empty() || query.profiles.contains(&profile.key()))
                && service.is_none_or(|it| profile.labels.get("service_name") == Some(it))
                && self.selects(query, &profile.labels)
        };
        let profiles = self.profiles.iter().filter(is_profiled);
        profiles.map(|profile| profile.start_ns).collect()
    }

    /// Whether labels of samples are asked for: which series may have such samples depends on what lies beside them.
    pub(crate) fn asks_for_samples(&self, query: &Query) -> bool {
        let mut kinds = self.filters.iter().map(|filter| filter.kind);
        query.selector.to_string().contains("thread_name")
            || kinds.any(|kind| matches!(kind, FilterKind::TagFocus | FilterKind::TagIgnore))
    }

    pub(crate) fn rates(
        &self,
        query: &Query,
        options: &SeriesOptions,
    ) -> BTreeMap<(Labels, i64), f64> {
        let mut profiled: BTreeMap<i64, i64> = BTreeMap::new();
        for start_ns in self.profiled_starts(query, None) {
            for (point, part_ns) in parts_of(start_ns, query, options) {
                *profiled.entry(point).or_default() += part_ns;
            }
        }
        let mut rates: BTreeMap<(Labels, i64), f64> = BTreeMap::new();
        for (sample, value) in self.matching(query) {
            if filters::shown(&self.filters, &sample.stack).is_none() {
                continue;
            }
            let start_ns = self.profiles[sample.profile].start_ns;
            for (point, part_ns) in parts_of(start_ns, query, options) {
                let in_step = value as f64 * part_ns as f64 / STEP_NS as f64;
                let rate = rates.entry((line_of(sample, options), point)).or_default();
                *rate += in_step * 1e9 / profiled[&point] as f64;
            }
        }
        rates
    }
}

/// What each step has of the window of a profile, as far as it lies in the range.
fn parts_of(start_ns: i64, query: &Query, options: &SeriesOptions) -> Vec<(i64, i64)> {
    let step_ns = options.step_ns.expect("a step");
    let origin_ns = options.origin_ns.expect("an origin");
    let end_ns = (start_ns + STEP_NS).min(query.range.to_ns);
    let nearest = (start_ns - origin_ns).div_euclid(step_ns);
    let points = (nearest - 1..nearest + 3).map(|number| origin_ns + number * step_ns);
    let parts = points.map(|point| {
        // A step ends with its point, which is in it.
        let (from_ns, to_ns) = (point - step_ns + 1, point + 1);
        (point, end_ns.min(to_ns) - start_ns.max(from_ns))
    });
    parts.filter(|part| part.1 > 0).collect()
}
