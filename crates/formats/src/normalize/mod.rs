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
    if mended.is_empty() && is_as_usual(&profile, naming) {
        return profile;
    }
    rebuilt(&profile, naming, &mended, report)
}

/// Whether a copy would be the same: most profiles are as they should be, and copying them takes a
/// seventh of what it takes to store one.
fn is_as_usual(profile: &Profile, naming: Naming) -> bool {
    let strings = &profile.symbols.strings;
    let mut functions = profile.symbols.functions().iter();
    if !functions.all(|function| naming.name(function, strings) == strings.get(function.name)) {
        return false;
    }
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
