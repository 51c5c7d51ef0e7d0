//! Types, names and values of series.

use candela_model::ProfileSeries;

use crate::report::Report;

/// Names that say how Go's client subtracts, not what is profiled.
const DELTA_PREFIX: &str = "godeltaprof_";

const DELTA_NAMES: [&str; 3] = ["memory", "block", "mutex"];

pub(crate) fn normalize_series(series: &mut ProfileSeries, report: &mut Report) {
    let made = &mut series.profile_type;
    for part in [&mut made.sample_type, &mut made.period_type] {
        if part.contains('-') {
            *part = part.replace('-', "_");
            report.note("types_renamed", "dashes in sample types became underscores");
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
    report.note_many(
        "negative_values",
        "samples with negative values were left out",
        (before - series.samples.len()) as u64,
    );
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
            ("godeltaprof_other:a:count::", "godeltaprof_other:a:count::"),
            (
                "lock:lock-count:count:lock-time:ns",
                "lock:lock_count:count:lock_time:ns",
            ),
        ] {
            assert_eq!(normalized(given).0.profile_type.to_string(), usual);
        }
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
