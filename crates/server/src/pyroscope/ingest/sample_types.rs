//! The part `sample_type_config` of a form: what a client says of the columns of its pprof.

use std::collections::BTreeMap;

use candela_formats::Report;
use candela_formats::is_known_type;
use candela_formats::repaired_json;
use candela_model::ProfileSeries;
use serde::Deserialize;

use super::names::interval_ns;
use super::names::parts_of_suffix;
use crate::api_error::ApiError;

/// What is said of each column, by its sample type.
#[derive(Clone, Debug, Default)]
pub(crate) struct SampleTypes(BTreeMap<String, Option<SampleType>>);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct SampleType {
    units: String,
    display_name: String,
    /// Whether the values are numbers of samples, so many in a second.
    sampled: bool,
}

impl SampleTypes {
    /// # Errors
    /// 422 when the part is not such JSON.
    pub(crate) fn parse(part: &[u8], report: &mut Report) -> Result<Self, ApiError> {
        let text = repaired_json(part, report);
        serde_json::from_str(&text).map(Self).map_err(|error| {
            let message = format!("sample_type_config cannot be read: {error}");
            ApiError::unprocessable("bad_config", message)
        })
    }

    /// Adds to a column what the pprof does not say of it itself, and changes nothing else.
    pub(crate) fn complete(&self, series: &mut ProfileSeries, rate: u32) {
        if let Some(Some(known)) = self.0.get(&series.profile_type.sample_type) {
            known.complete(series, rate);
        }
    }
}

impl SampleType {
    fn complete(&self, series: &mut ProfileSeries, rate: u32) {
        // Not by its type, which is the usual one where the pprof has none.
        let has_period = series.period != 0;
        let column = &mut series.profile_type;
        if let Some(name) = self.profile_name(&column.sample_type, &column.period_type) {
            name.clone_into(&mut column.name);
        }
        let is_time = matches!(column.name.as_str(), "process_cpu" | "wall");
        let is_sampled = self.sampled && is_time && rate > 0;
        if column.sample_unit.is_empty() {
            let unit = self.unit();
            let is_counted_time = is_sampled && unit == "count" && column.sample_type != "samples";
            if is_counted_time {
                "nanoseconds".clone_into(&mut column.sample_unit);
                for sample in &mut series.samples {
                    sample.value = sample.value.saturating_mul(interval_ns(rate));
                }
            } else {
                unit.clone_into(&mut column.sample_unit);
            }
        }
        if is_sampled && !has_period {
            series.period = interval_ns(rate);
            if column.period_type.is_empty() {
                "cpu".clone_into(&mut column.period_type);
                "nanoseconds".clone_into(&mut column.period_unit);
            }
        }
    }

    /// The name of the profile type, where the display name tells more than the profile does: those of
    /// mutexes and of blocks have the same sample types, and others are only known by their own.
    fn profile_name(&self, sample_type: &str, period_type: &str) -> Option<&'static str> {
        match self.display_name.as_str() {
            display if display.starts_with("mutex_") => Some("mutex"),
            display if display.starts_with("block_") => Some("block"),
            // Not the name of what is scraped, but what everybody who asks for pushed ones expects.
            "goroutines" => Some("goroutines"),
            _ if is_known_type(sample_type, period_type) => None,
            display => parts_of_suffix(display).map(|parts| parts[0]),
        }
    }

    /// Our name of the unit.
    fn unit(&self) -> &str {
        match self.units.as_str() {
            "samples" | "objects" | "goroutines" | "lock_samples" => "count",
            "lock_nanoseconds" => "nanoseconds",
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use candela_model::Labels;
    use candela_model::ProfileType;
    use candela_model::Sample;
    use candela_model::StackId;

    use super::*;

    /// The type, the total and the period of a column of three samples.
    fn completed(id: &str, period: i64, config: &str) -> (String, i64, i64) {
        let profile_type: ProfileType = id.parse().expect("an id");
        let mut series = ProfileSeries::new(Labels::default(), profile_type);
        series.period = period;
        series.samples.push(Sample::new(StackId(0), 3));
        let config = format!("{{\"{}\": {config}}}", series.profile_type.sample_type);
        let config = SampleTypes::parse(config.as_bytes(), &mut Report::default());
        config.expect("a config").complete(&mut series, 50);
        let total = series.total();
        (series.profile_type.to_string(), total, series.period)
    }

    #[test]
    fn a_column_gets_what_it_lacks_and_keeps_what_it_has() {
        let sampled = r#"{"units": "samples", "display-name": "cpu", "sampled": true}"#;
        let cases = [
            // No unit: samples at 50 Hz are 20 ms each.
            (
                ("process_cpu:cpu::cpu:nanoseconds", 0, sampled),
                (
                    "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
                    60_000_000,
                    20_000_000,
                ),
            ),
            // Counted samples stay numbers, and get a period.
            (
                ("samples:samples:count::", 0, sampled),
                ("process_cpu:samples:count:cpu:nanoseconds", 3, 20_000_000),
            ),
            // What a type is called, its own name says better.
            (
                ("wall:wall:nanoseconds:wall:nanoseconds", 1, sampled),
                ("wall:wall:nanoseconds:wall:nanoseconds", 3, 1),
            ),
            // The clock of its period, too.
            (
                ("wall:wall:nanoseconds:wall:nanoseconds", 0, sampled),
                ("wall:wall:nanoseconds:wall:nanoseconds", 3, 20_000_000),
            ),
            // All is said.
            (
                ("process_cpu:cpu:nanoseconds:cpu:nanoseconds", 7, sampled),
                ("process_cpu:cpu:nanoseconds:cpu:nanoseconds", 3, 7),
            ),
            // Bytes are not time, whatever is said of them.
            (
                ("memory:alloc_space:bytes:space:bytes", 0, sampled),
                ("memory:alloc_space:bytes:space:bytes", 3, 0),
            ),
            (
                (
                    "mutex:delay::contentions:count",
                    1,
                    r#"{"units": "lock_nanoseconds", "display-name": "block_duration"}"#,
                ),
                ("block:delay:nanoseconds:contentions:count", 3, 1),
            ),
            (
                (
                    "space:space:bytes::",
                    0,
                    r#"{"display-name": "inuse_space"}"#,
                ),
                ("memory:space:bytes::", 3, 0),
            ),
        ];
        for ((id, period, config), (wanted, total, wanted_period)) in cases {
            let wanted = (wanted.to_owned(), total, wanted_period);
            assert_eq!(completed(id, period, config), wanted, "{id} {config}");
        }
    }
}
