//! What servers that take pushed profiles do to them, so that the same program looks the same whichever
//! client sent it: names, types and stacks that runtimes are known to write differently.

mod go_stacks;
mod names;
mod rebuild;
mod types;

use candela_model::LocationId;
use candela_model::Profile;
use candela_model::StackId;

use crate::normalize::go_stacks::mended_stacks;
use crate::normalize::names::Names;
use crate::normalize::names::Naming;
use crate::normalize::rebuild::Renamed;
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
    /// Bounds of what is made: stacks that get their callers back grow, and so do names that get their
    /// file.
    pub limits: Limits,
}

/// The profile with the names, types and stacks that are usual:
///
/// - `-` in types becomes `_` (.NET); the names `godeltaprof_memory`, `godeltaprof_block` and
///   `godeltaprof_mutex` lose their prefix; CPU time in a profile named `wall` is `process_cpu`.
/// - Of Go, type parameters in the names of functions are cut, and stacks that the runtime cut at
///   its limit get the missing callers where other stacks tell them, within the limits.
/// - Of scripting languages, functions are `file function`, as far as the limits allow names to grow.
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
    let names = Names::of(&profile, naming, &options.limits);
    let functions_beyond = names.functions_beyond(&profile.symbols);
    // Most profiles need no more than a few other names, and copying them takes a seventh of what it
    // takes to store one.
    if mended.is_empty()
        && uses_all_entries(&profile)
        && let Some(renamed) = profile
            .symbols
            .rename_functions(|function, symbols| names.name(function, symbols))
    {
        let renamed = Renamed {
            functions: renamed as u64,
            functions_beyond,
        };
        note_renamed(renamed, report);
        return profile;
    }
    let (profile, renamed) = rebuilt(&profile, names, &mended);
    note_renamed(renamed, report);
    profile
}

fn note_renamed(renamed: Renamed, report: &mut Report) {
    report.note_many(
        "functions_renamed",
        "functions were named as is usual for their language",
        renamed.functions,
    );
    report.note_many(
        "functions_not_renamed",
        "functions kept their names, as those of others took the bytes that names may take",
        renamed.functions_beyond,
    );
}

/// Whether samples refer to all stacks, label sets and links, and with them to all locations and
/// functions: a copy would leave out the others, and what is noted of them.
fn uses_all_entries(profile: &Profile) -> bool {
    let mut stacks = vec![false; profile.stacks.len()];
    let mut label_sets = vec![false; profile.label_sets.len()];
    let mut links = vec![false; profile.links.len()];
    for sample in profile.series.iter().flat_map(|series| &series.samples) {
        stacks[sample.stack.index()] = true;
        label_sets[sample.label_set.index()] = true;
        links[sample.link.index()] = true;
    }
    // Of each of these tables the first entry is the empty one.
    let uses_samples_entries = [stacks, label_sets, links]
        .iter()
        .all(|used| used.iter().skip(1).all(|&used| used));
    uses_samples_entries && uses_all_functions(profile)
}

/// Whether stacks refer to all locations, and those to all functions.
fn uses_all_functions(profile: &Profile) -> bool {
    let symbols = &profile.symbols;
    let mut locations = vec![false; symbols.locations().len()];
    for stack in 0..profile.stacks.len() {
        for location in profile.stacks.get(StackId::from_index(stack)) {
            locations[location.index()] = true;
        }
    }
    let mut functions = vec![false; symbols.functions().len()];
    for location in 0..locations.len() {
        for line in symbols.lines(LocationId::from_index(location)) {
            functions[line.function.index()] = true;
        }
    }
    [locations, functions].iter().flatten().all(|&used| used)
}
