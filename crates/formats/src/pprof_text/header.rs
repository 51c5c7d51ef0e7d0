//! The lines above each report: what the profile is of.

use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::ProfileType;

use crate::pprof_text::names::base_name;
use crate::pprof_text::values::Shown;
use crate::pprof_text::values::label;
use crate::pprof_text::values::nanoseconds;
use crate::pprof_text::values::percentage;
use crate::printable::printable;
use crate::time_text::utc;

/// The series of one type.
pub(super) fn series_of<'a>(
    profile: &'a Profile,
    profile_type: &'a ProfileType,
) -> impl Iterator<Item = &'a ProfileSeries> + Clone {
    let series = profile.series.iter();
    series.filter(move |series| series.profile_type == *profile_type)
}

/// The sum of the magnitudes of all values: what shares are of.
pub(super) fn total(profile: &Profile, profile_type: &ProfileType) -> i64 {
    let samples = series_of(profile, profile_type).flat_map(|series| &series.samples);
    samples.fold(0_i64, |sum, sample| {
        sum.saturating_add(sample.value.saturating_abs())
    })
}

pub(super) fn header(
    profile: &Profile,
    profile_type: &ProfileType,
    total: i64,
    shown: Shown,
) -> Vec<String> {
    let symbols = &profile.symbols;
    let text = |id| printable(symbols.strings.get(id));
    let mut lines = Vec::new();
    // The first one is that of nothing.
    if let Some(binary) = symbols.mappings().get(1) {
        let file = text(binary.file);
        if !file.is_empty() {
            lines.push(format!("File: {}", base_name(&file)));
        }
        let build_id = text(binary.build_id);
        if !build_id.is_empty() {
            lines.push(format!("Build ID: {build_id}"));
        }
    }
    lines.push(format!("Type: {}", profile_type.sample_type));
    let series = || series_of(profile, profile_type);
    let start = series().map(|series| series.start_ns).min().unwrap_or(0);
    if start != 0 {
        lines.push(format!("Time: {}", utc(start)));
    }
    let end = series().map(|series| series.start_ns.saturating_add(series.duration_ns));
    let duration = end.max().unwrap_or(0).saturating_sub(start);
    if duration > 0 {
        let unit = &profile_type.sample_unit;
        let share = match nanoseconds(total, unit) {
            Some(time) if time != 0.0 => format!("({})", percentage(time as i64, duration)),
            _ => String::new(),
        };
        lines.push(format!(
            "Duration: {}, Total samples = {} {share}",
            label(duration, "nanoseconds", Shown::Fitting),
            label(total, unit, shown),
        ));
    }
    lines
}
