//! What servers do to the profiles that they take, so that the same program looks the same whichever
//! client sent it: names, types and stacks that runtimes are known to write differently.

mod go_stacks;
mod labels;
mod names;
mod rebuild;
mod types;

use candela_model::LocationId;
use candela_model::Profile;
use candela_model::StackId;
use hashbrown::HashMap;

use crate::normalize::go_stacks::mended_stacks;
pub use crate::normalize::labels::breaks_line;
use crate::normalize::labels::clean_labels;
pub use crate::normalize::labels::is_reserved_label;
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
/// - `-` in sample types becomes `_` (.NET), but for those of events, and so do colons and control characters in all parts of a type; the names `godeltaprof_memory`, `godeltaprof_block` and
///   `godeltaprof_mutex` lose their prefix; CPU time in a profile named `wall` is `process_cpu`.
/// - Of functions of Go, type parameters in their names are cut, and stacks that the runtime cut at
///   its limit get the missing callers where other stacks tell them, within the limits.
/// - Of scripting languages, functions are `file function`, as far as the limits allow names to grow.
/// - Labels whose names are reserved (`__…__`) are left out, and control characters and line ends in labels are escaped.
/// - Samples with negative values are left out, and with them the stacks, labels and links that no
///   other sample refers to.
///
/// Span and trace ids in the labels `profile_id`, `span_id` and `trace_id` become links in the pprof
/// reader already.
#[must_use]
pub fn normalize(mut profile: Profile, options: &NormalizeOptions, report: &mut Report) -> Profile {
    let mut is_whole = true;
    for series in &mut profile.series {
        is_whole &= normalize_series(series, report) == 0;
    }
    clean_labels(&mut profile, report);
    let naming = Naming::of(&options.spy);
    // The stacks of another program tell nothing, even where it runs the same binary.
    let mended = match is_of_one_program(&profile) {
        true => mended_stacks(&profile, &options.limits, report),
        false => HashMap::default(),
    };
    let names = Names::of(&profile, naming, &options.limits);
    let functions_beyond = names.functions_beyond(&profile.symbols);
    let is_usual = is_whole
        && mended.is_empty()
        && functions_beyond == 0
        && !names.change_any(&profile.symbols);
    if is_usual {
        return profile;
    }
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

fn is_of_one_program(profile: &Profile) -> bool {
    let mut all = profile.series.windows(2);
    all.all(|two| two[0].labels == two[1].labels)
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
