//! What two seconds of samples say: how stacks end, and which frames have no name.

use std::collections::BTreeMap;

use candela_model::FrameKind;
use candela_model::Profile;
use candela_unwind::WalkResult;
use serde::Serialize;

use crate::ledger::DropReason;
use crate::missing_frames::explanation::Explanation;
use crate::missing_frames::explanation::explain_drop;
use crate::missing_frames::explanation::explain_result;
use crate::record::Recording;
use crate::short_stacks::ShortStacks;

/// What the kernel itself runs, its modules included.
pub(super) const KERNEL: &str = "[kernel]";

/// Samples of one process, by what is missing in them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SampledFrames {
    /// Samples, on a CPU and off it.
    pub samples: u64,
    /// How long it was watched, nanoseconds.
    pub duration_ns: u64,
    /// Samples by how the walk of their stack ended; those of which there are any.
    pub results: BTreeMap<String, u64>,
    /// Stacks that are not complete, by how and where their walk ended.
    pub short_stacks: Vec<ShortStacks>,
    /// What did not make it and is about frames, by reason; those of which there is any.
    pub drops: BTreeMap<String, u64>,
    /// Frames by the file that they are in.
    pub code: BTreeMap<String, SampledCode>,
}

/// Frames in one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SampledCode {
    /// Frames of samples.
    pub frames: u64,
    /// Those that have no name.
    pub unnamed_frames: u64,
}

impl SampledFrames {
    pub(super) fn of(recording: &Recording) -> Self {
        let report = &recording.report;
        let present = |counts: &BTreeMap<String, u64>| -> BTreeMap<String, u64> {
            let some = counts.iter().filter(|(_, count)| **count > 0);
            some.map(|(name, count)| (name.clone(), *count)).collect()
        };
        let mut drops = present(&report.drops);
        drops.retain(|name, _| is_about_frames(name));
        Self {
            samples: report.quality.samples,
            duration_ns: report.duration_ns,
            results: present(&report.quality.results),
            short_stacks: report.short_stacks.clone(),
            drops,
            code: code_of(&recording.profile),
        }
    }

    /// How walks ended, in words.
    #[must_use]
    pub fn explained_results(&self) -> Vec<(Explanation, u64)> {
        let codes = (0..=u8::MAX).map_while(WalkResult::from_code);
        let seen = codes.filter_map(|code| {
            let count = self.results.get(code.name())?;
            Some((explain_result(code), *count))
        });
        seen.collect()
    }

    /// What did not make it, in words.
    #[must_use]
    pub fn explained_drops(&self) -> Vec<(Explanation, u64)> {
        let seen = DropReason::ALL.iter().filter_map(|&reason| {
            let count = self.drops.get(reason.name())?;
            Some((explain_drop(reason)?, *count))
        });
        seen.collect()
    }
}

fn is_about_frames(name: &str) -> bool {
    let mut reasons = DropReason::ALL.iter();
    let reason = reasons.find(|reason| reason.name() == name);
    reason.is_some_and(|&reason| explain_drop(reason).is_some())
}

/// Frames by file, each sample once. A file without a name stands for code without a file.
fn code_of(profile: &Profile) -> BTreeMap<String, SampledCode> {
    let mut code: BTreeMap<String, SampledCode> = BTreeMap::new();
    let symbols = &profile.symbols;
    for series in &profile.series {
        // Each sample is in a series of times and in one of counts.
        if series.profile_type.sample_unit != "nanoseconds" {
            continue;
        }
        for sample in &series.samples {
            for &id in profile.stacks.get(sample.stack) {
                let location = symbols.location(id);
                let file = match location.kind {
                    FrameKind::Kernel => KERNEL,
                    _ => symbols.strings.get(symbols.mapping(location.mapping).file),
                };
                let counts = code.entry(file.to_owned()).or_default();
                counts.frames += 1;
                counts.unnamed_frames += u64::from(symbols.lines(id).is_empty());
            }
        }
    }
    code
}
