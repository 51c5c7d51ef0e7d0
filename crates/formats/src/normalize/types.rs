//! Types, names and values of series.

use candela_model::ProfileSeries;
use candela_model::ProfileType;

use crate::normalize::labels::breaks_line;
use crate::report::Report;

/// Names that say how Go's client subtracts, not what is profiled.
const DELTA_PREFIX: &str = "godeltaprof_";

const TYPES_RENAMED: &str =
    "dashes in sample types, and colons and control characters in types, became underscores";

const DELTA_NAMES: [&str; 3] = ["memory", "block", "mutex"];

/// Returns how many samples were left out.
pub(crate) fn normalize_series(series: &mut ProfileSeries, report: &mut Report) -> usize {
    let made = &mut series.profile_type;
    let is_event = is_event(made);
    for part in [&mut made.sample_type, &mut made.period_type] {
        if part.contains('-') && !is_event {
            *part = part.replace('-', "_");
            report.note("types_renamed", TYPES_RENAMED);
        }
    }
    let parts = [
        &mut made.name,
        &mut made.sample_type,
        &mut made.sample_unit,
        &mut made.period_type,
        &mut made.period_unit,
    ];
    for part in parts {
        // An id is one line, with colons between its parts.
        let is_odd = |odd: char| odd == ':' || breaks_line(odd);
        if part.contains(is_odd) {
            *part = part.replace(is_odd, "_");
            report.note("types_renamed", TYPES_RENAMED);
        }
    }
    let delta = made.name.strip_prefix(DELTA_PREFIX);
    if let Some(name) = delta.filter(|name| DELTA_NAMES.contains(name)) {
        made.name = name.to_owned();
    }
    if made.name == "wall" && made.sample_type == "cpu" {
        "process_cpu".clone_into(&mut made.name);
    }
    let before = series.samples.len();
    series.samples.retain(|sample| sample.value >= 0);
    let negative = before - series.samples.len();
    report.note_many(
        "negative_values",
        "samples with negative values were left out",
        negative as u64,
    );
    negative
}

/// Whether the type is of an event that was counted or sampled, which is called what `perf` calls it (`cache-misses`) and is
/// its own period.
fn is_event(profile_type: &ProfileType) -> bool {
    let sample_type = &profile_type.sample_type;
    sample_type == "samples" || *sample_type == profile_type.period_type
}

#[cfg(test)]
mod tests {
    use candela_model::Labels;
    use candela_model::Sample;
    use candela_model::StackId;

    use super::*;

    fn normalized(id: &str) -> (ProfileSeries, Report) {
        let mut series = ProfileSeries::new(Labels::default(), id.parse().expect("an id"));
        for value in [3, -1] {
            series.samples.push(Sample::new(StackId(0), value));
        }
        let mut report = Report::default();
        normalize_series(&mut series, &mut report);
        (series, report)
    }

    #[test]
    fn types_get_their_usual_names() {
        for (given, usual) in [
            (
                "wall:cpu:nanoseconds:cpu:nanoseconds",
                "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
            ),
            (
                "wall:wall:nanoseconds:wall:nanoseconds",
                "wall:wall:nanoseconds:wall:nanoseconds",
            ),
            (
                "godeltaprof_block:delay:nanoseconds:contentions:count",
                "block:delay:nanoseconds:contentions:count",
            ),
            (
                "event:cache-misses:count:cache-misses:count",
                "event:cache-misses:count:cache-misses:count",
            ),
            (
                "hardware:samples:count:branch-misses:count",
                "hardware:samples:count:branch-misses:count",
            ),
            ("godeltaprof_other:a:count::", "godeltaprof_other:a:count::"),
            (
                "lock:lock-count:count:lock-time:ns",
                "lock:lock_count:count:lock_time:ns",
            ),
        ] {
            assert_eq!(normalized(given).0.profile_type.to_string(), usual);
        }
    }

    /// The wrapper of a profile may call it anything.
    #[test]
    fn every_type_has_an_id() {
        let odd = ProfileType::new("a:b", "cp\nu", "nano:s", "", "\0");
        let mut series = ProfileSeries::new(Labels::default(), odd);
        normalize_series(&mut series, &mut Report::default());
        assert_eq!(series.profile_type.to_string(), "a_b:cp_u:nano_s::_");
    }

    #[test]
    fn other_names_make_no_other_series() {
        let (series, report) = normalized("godeltaprof_mutex:delay:nanoseconds:contentions:count");
        let plain = normalized("mutex:delay:nanoseconds:contentions:count").0;
        assert_eq!(series.profile_type, plain.profile_type);
        assert_eq!(series.labels, plain.labels);
        assert_eq!(series.total(), 3);
        assert_eq!(report.count("negative_values"), 1);
    }
}
