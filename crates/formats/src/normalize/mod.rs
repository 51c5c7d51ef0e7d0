//! What servers that take pushed profiles do to them, so that the same program looks the same whichever
//! client sent it: names, types and stacks that runtimes are known to write differently.

mod go_stacks;
mod names;
mod rebuild;
mod types;

use candela_model::Profile;

use crate::normalize::go_stacks::mended_stacks;
use crate::normalize::names::Naming;
use crate::normalize::rebuild::rebuilt;
use crate::normalize::types::normalize_series;
use crate::options::Limits;
use crate::report::Report;

/// What is known of a profile besides its content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NormalizeOptions {
    /// The client that sampled, as Pyroscope's `spyName` has it; empty when unknown. Of `pyspy`, `rbspy`
    /// and `scripting`, functions get their file in front of the name.
    pub spy: String,
    /// Bounds of what is made: stacks that get their callers back grow.
    pub limits: Limits,
}

/// The profile with the names, types and stacks that are usual:
///
/// - `-` in types becomes `_` (.NET); the names `godeltaprof_memory`, `godeltaprof_block` and
///   `godeltaprof_mutex` lose their prefix; CPU time in a profile named `wall` is `process_cpu`.
/// - Of Go, type parameters in the names of functions are cut, and stacks that the runtime cut at
///   its limit get the missing callers where other stacks tell them, within the limits.
/// - Of scripting languages, functions are `file function`.
/// - Samples with negative values are left out, and with them the stacks, labels and links that no
///   other sample refers to.
///
/// Span and trace ids in the labels `profile_id`, `span_id` and `trace_id` become links in the pprof
/// reader already.
#[must_use]
pub fn normalize(mut profile: Profile, options: &NormalizeOptions, report: &mut Report) -> Profile {
    for series in &mut profile.series {
        normalize_series(series, report);
    }
    let naming = Naming::of(&profile, &options.spy);
    let mended = match naming {
        Naming::Go => mended_stacks(&profile, &options.limits, report),
        Naming::Plain | Naming::WithFile => Default::default(),
    };
    // Most profiles need no more than a few other names, and copying them takes a seventh of what it
    // takes to store one.
    if mended.is_empty()
        && uses_all_entries(&profile)
        && let Some(renamed) = profile
            .symbols
            .rename_functions(|function, strings| naming.name(function, strings))
    {
        note_renamed(renamed as u64, report);
        return profile;
    }
    let (profile, renamed) = rebuilt(&profile, naming, &mended);
    note_renamed(renamed, report);
    profile
}

fn note_renamed(renamed: u64, report: &mut Report) {
    report.note_many(
        "functions_renamed",
        "functions were named as is usual for their language",
        renamed,
    );
}

/// Whether samples refer to all stacks, label sets and links.
fn uses_all_entries(profile: &Profile) -> bool {
    let mut stacks = vec![false; profile.stacks.len()];
    let mut label_sets = vec![false; profile.label_sets.len()];
    let mut links = vec![false; profile.links.len()];
    for sample in profile.series.iter().flat_map(|series| &series.samples) {
        stacks[sample.stack.index()] = true;
        label_sets[sample.label_set.index()] = true;
        links[sample.link.index()] = true;
    }
    // Of each table the first entry is the empty one.
    [stacks, label_sets, links]
        .iter()
        .all(|used| used.iter().skip(1).all(|&used| used))
}
