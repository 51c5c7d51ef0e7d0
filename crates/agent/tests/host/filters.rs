//! Rules for what is left out: nothing of it is in the profile, and all of it is counted.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::support;
use crate::support::Stacks;
use candela_agent::DropReason;
use candela_agent::RecordOptions;
use candela_agent::RecordTargets;
use candela_agent::Recording;
use candela_agent::SampleFilters;
use candela_model::FilterKind;
use candela_model::Filters;
use candela_model::Selector;

/// Half of the samples that each program is worth: a virtual machine may lose some.
const ENOUGH: u64 = 75;

/// Two programs at once that do the same, recorded with these filters.
fn record(directory: &Path, filters: SampleFilters) -> Recording {
    let mut command = Command::new("sh");
    // Each is worth 150 samples.
    let script = r#""$0/wanted" 0.3 >/dev/null & "$0/other" 0.3 >/dev/null; wait"#;
    command.args(["-c", script]).arg(directory);
    let options = RecordOptions {
        rate_hz: 499,
        duration: Some(Duration::from_secs(60)),
        filters,
        ..RecordOptions::new(RecordTargets::Command(command))
    };
    candela_agent::record(options, || {}).expect("it is recorded")
}

fn selectors(text: &str) -> Vec<Selector> {
    vec![text.parse().expect("a selector")]
}

fn samples_of(recording: &Recording, executable: &str) -> u64 {
    let is_of = |series: &candela_model::ProfileSeries| {
        series.labels.get("process_executable_name") == Some(executable)
    };
    Stacks::of(&recording.profile, is_of).total()
}

#[test]
fn rules_choose_series_and_count_what_they_leave_out() {
    if support::cannot_sample() || support::lacks("gcc") {
        return;
    }
    let _turn = support::turn();
    let directory = tempfile::tempdir().expect("a temporary directory");
    for name in ["wanted", "other"] {
        let program = directory.path().join(name);
        let flags = ["-O2", "-fomit-frame-pointer", "-o"].map(Into::into);
        let paths = [program, support::source("shares.c")];
        support::run("gcc", flags.into_iter().chain(paths));
    }

    let excluding = SampleFilters {
        exclude: selectors(r#"{process_executable_name=~"oth.*"}"#),
        ..SampleFilters::default()
    };
    let including = SampleFilters {
        include: selectors(r#"{service_name="wanted"}"#),
        ..SampleFilters::default()
    };
    for filters in [excluding, including] {
        let recording = record(directory.path(), filters);
        assert!(samples_of(&recording, "wanted") > ENOUGH);
        let left_out = recording.report.count(DropReason::ExcludedByRule);
        assert!(left_out > ENOUGH, "{left_out} samples left out");
        let has_other = recording
            .profile
            .series
            .iter()
            .any(|series| series.labels.get("process_executable_name") == Some("other"));
        assert!(!has_other);
        // A full ring is one, and may come on a busy host.
        let lost = recording.report.lost_samples();
        assert!(lost < left_out, "it is no loss: {:?}", recording.report);
        assert_eq!(recording.profile.validate(), Ok(()));
    }

    let hiding = SampleFilters {
        hide: Filters::parse(&[(FilterKind::Hide, "fn:^burn_")]).expect("a pattern"),
        ..SampleFilters::default()
    };
    let recording = record(directory.path(), hiding);
    let stacks = Stacks::all(&recording.profile);
    let burned = stacks.count(|names| names.iter().any(|name| name.starts_with("burn_")));
    assert_eq!(burned, 0);
    let callers = stacks.count(|names| names.first().is_some_and(|name| name == "work"));
    assert!(
        callers > 2 * ENOUGH,
        "their time is their callers':\n{}",
        stacks.sketch()
    );

    let sparing = SampleFilters {
        min_samples: ENOUGH,
        ..SampleFilters::default()
    };
    let recording = record(directory.path(), sparing);
    assert!(samples_of(&recording, "wanted") > ENOUGH);
    assert_eq!(
        samples_of(&recording, "sh"),
        0,
        "the shell does next to nothing"
    );
    let all = recording.report.quality.samples;
    let left_out = recording.report.count(DropReason::BelowMinSamples);
    assert_eq!(Stacks::all(&recording.profile).total() + left_out, all);
}
