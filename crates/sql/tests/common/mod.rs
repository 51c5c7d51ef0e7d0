//! Profiles that tests make, and the questions that documents show.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use candela_model::FrameKind;
use candela_model::LabelSetId;
use candela_model::Labels;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use candela_model::SampleLabel;
use candela_sql::SqlAnswer;
use candela_sql::SqlOptions;
use candela_store::ManualClock;
use candela_store::Store;
use candela_store::StoreOptions;
use candela_store::SyncMode;

pub(crate) const TENANT: &str = "tenant";
/// An hour before a midnight, so that some profiles are of the next day.
pub(crate) const START_NS: i64 = 1_732_143_600_000_000_000;
pub(crate) const STEP_NS: i64 = 100_000_000_000;
pub(crate) const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
pub(crate) const SERVICES: [&str; 3] = ["api", "db", "web"];
pub(crate) const TYPES: [&str; 2] = [CPU, "process_cpu:samples:count:cpu:nanoseconds"];
pub(crate) const PODS: [&str; 2] = ["p-1", "p-2"];
pub(crate) const THREADS: [&str; 2] = ["worker", "main"];

/// One series' profile.
#[derive(Clone, Debug)]
pub(crate) struct Plain {
    pub(crate) service: usize,
    pub(crate) profile_type: usize,
    pub(crate) pod: usize,
    pub(crate) step: i64,
    /// Functions from the leaf up, thread, value.
    pub(crate) samples: Vec<(Vec<usize>, Option<usize>, i64)>,
}

impl Plain {
    pub(crate) fn profile(&self) -> Profile {
        let mut profile = Profile::default();
        let labels = [
            ("service_name", SERVICES[self.service]),
            ("pod", PODS[self.pod]),
        ];
        let profile_type = TYPES[self.profile_type].parse().expect("a type");
        let mut series = ProfileSeries::new(Labels::from_pairs(labels), profile_type);
        series.start_ns = START_NS + self.step * STEP_NS;
        series.duration_ns = STEP_NS;
        for (functions, thread, value) in &self.samples {
            let functions = functions.iter();
            let stack: Vec<LocationId> = functions
                .map(|&function| location(&mut profile, function))
                .collect();
            let stack = profile.stacks.intern(&stack);
            let label_set = thread.map_or(LabelSetId(0), |thread| {
                let strings = &mut profile.symbols.strings;
                let name = strings.intern("thread_name");
                let label = SampleLabel::text(name, strings.intern(THREADS[thread]));
                profile.label_sets.intern(vec![label])
            });
            series.samples.push(Sample {
                label_set,
                ..Sample::new(stack, *value)
            });
        }
        profile.series.push(series);
        profile
    }
}

fn location(profile: &mut Profile, number: usize) -> LocationId {
    let symbols = &mut profile.symbols;
    // The first one is what docs/storage.md asks for.
    let name = match number {
        5 => "walk".to_owned(),
        _ => format!("function_{number}"),
    };
    let line = number as u32 * 10;
    let function = symbols.intern_function(&name, "", "demo.c", line);
    let place = Location::new(FrameKind::Native, 0x1000 + number as u64);
    symbols.intern_location(&place, &[(function, line + 1, 2)])
}

/// Nothing takes so long, unless it never comes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Limits that a slow machine does not exceed.
pub(crate) fn limits() -> SqlOptions {
    SqlOptions {
        time: PATIENCE,
        wait: PATIENCE,
        ..SqlOptions::default()
    }
}

/// A store that takes old profiles, and flushes and merges only when asked.
pub(crate) fn open(directory: &Path) -> Store {
    let options = StoreOptions {
        sync: SyncMode::Os,
        segment_bytes: 1 << 20,
        max_age: None,
        readable_stacks: true,
        compaction_cpu_percent: 0,
        clock: Arc::new(ManualClock::at(START_NS)),
        ..StoreOptions::new(directory)
    };
    Store::open(options).expect("opens")
}

/// The rows as JSON has them.
pub(crate) fn rows(answer: &SqlAnswer) -> Vec<Vec<serde_json::Value>> {
    let json = answer.to_json().expect("JSON");
    let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    let rows = json["rows"].as_array().expect("rows").iter();
    rows.map(|row| row.as_array().expect("a row").clone())
        .collect()
}
