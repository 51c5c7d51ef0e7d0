//! What `query` and `record` do with a profile before it is written.

use std::collections::BTreeSet;
use std::path::Path;

use candela_formats::Format;
use candela_formats::HtmlOptions;
use candela_formats::most_telling_type;
use candela_model::FlameTree;
use candela_model::FlameTreeBuilder;
use candela_model::Profile;
use candela_model::ProfileType;
use candela_model::resolve_profile_type;

use crate::args::GlobalArgs;
use crate::errors::CliError;
use crate::output;

/// What is asked for where nobody says: most profiles have it.
pub(crate) const DEFAULT_TYPE: &str = "cpu";

/// The type of a profile that a pattern means; without one the default, or else the most telling.
pub(crate) fn resolve(profile: &Profile, pattern: Option<&str>) -> Result<ProfileType, CliError> {
    let available = || profile.series.iter().map(|series| &series.profile_type);
    if let Some(found) = named(profile, pattern.unwrap_or(DEFAULT_TYPE)) {
        return Ok(found);
    }
    let Some(pattern) = pattern else {
        let found = most_telling_type(available());
        return found
            .cloned()
            .ok_or_else(|| CliError::no_data("no data: there is no profile"));
    };
    // What a server answers may be named otherwise than what it was asked for.
    let mut types: Vec<&ProfileType> = available().collect();
    types.sort();
    types.dedup();
    if let [only] = types[..] {
        return Ok(only.clone());
    }
    let names: Vec<String> = types.iter().map(ToString::to_string).collect();
    Err(CliError::usage(format!(
        "--type {pattern:?} names none of the profile types here: {}",
        names.join(", ")
    )))
}

/// The stacks of one type, merged.
pub(crate) fn tree_of(
    profile: &Profile,
    pattern: Option<&str>,
) -> Result<(ProfileType, FlameTree), CliError> {
    let profile_type = resolve(profile, pattern)?;
    let mut builder = FlameTreeBuilder::new();
    for (position, series) in profile.series.iter().enumerate() {
        if series.profile_type == profile_type {
            builder.add_series(profile, position);
        }
    }
    Ok((profile_type, builder.finish()))
}

/// Says which type it is where nobody chose and others could have been meant as well.
pub(crate) fn tell_choice(profile: &Profile) {
    if named(profile, DEFAULT_TYPE).is_some() {
        return;
    }
    let types = || profile.series.iter().map(|series| &series.profile_type);
    let Some(shown) = most_telling_type(types()) else {
        return;
    };
    let others: BTreeSet<String> = types()
        .filter(|it| *it != shown)
        .map(ToString::to_string)
        .collect();
    if others.is_empty() {
        return;
    }
    let others: Vec<String> = others.into_iter().collect();
    output::note(&format!(
        "note: this is {shown}; --type chooses another: {}",
        others.join(", ")
    ));
}

/// Says that rows are missing from a table that has no place to say so itself.
pub(crate) fn tell_cut(
    global: &GlobalArgs,
    profile: &Profile,
    pattern: Option<&str>,
    format: Format,
) {
    let is_silent = matches!(format, Format::Csv | Format::Markdown);
    if !is_silent || global.limit == 0 {
        return;
    }
    if let Ok((_, tree)) = tree_of(profile, pattern) {
        tell_cut_rows(global, tree.function_table().len());
    }
}

/// The same for a number of rows that is known.
pub(crate) fn tell_cut_rows(global: &GlobalArgs, rows: usize) {
    if global.limit == 0 || rows <= global.limit || global.quiet {
        return;
    }
    output::note(&format!(
        "{} of {rows} rows; --limit 0 prints all",
        global.limit
    ));
}

/// The format of a result by its name or that of its file; nothing when there is neither.
pub(crate) fn output_format(
    name: Option<&str>,
    file: Option<&Path>,
) -> Result<Option<Format>, CliError> {
    let known = || {
        let names = Format::all().filter(|format| format.is_writable());
        let names: Vec<&str> = names.map(Format::name).collect();
        names.join(", ")
    };
    if let Some(name) = name {
        let format = Format::from_name(name).filter(|format| format.is_writable());
        let format = format
            .ok_or_else(|| CliError::usage(format!("--to {name:?} is none of {}", known())))?;
        return Ok(Some(format));
    }
    let Some(path) = file else {
        return Ok(None);
    };
    let by_name =
        Format::from_file_name(&path.to_string_lossy()).filter(|format| format.is_writable());
    by_name.map(Some).ok_or_else(|| {
        CliError::usage(format!(
            "the name {:?} tells no format; add --to with one of {}",
            path.display().to_string(),
            known()
        ))
    })
}

/// The type that a pattern, an identifier or the name of a sample type means.
pub(crate) fn resolve_sample_type(
    profile: &Profile,
    wanted: &str,
) -> Result<ProfileType, CliError> {
    named(profile, wanted).ok_or_else(|| {
        let types = profile.series.iter().map(|series| &series.profile_type);
        let available: BTreeSet<String> = types.map(ToString::to_string).collect();
        let available: Vec<String> = available.into_iter().collect();
        CliError::usage(format!(
            "--sample-type {wanted:?} names none of the profile types here: {}",
            available.join(", ")
        ))
    })
}

/// The type with this identifier, short name, prefix or name of its samples.
fn named(profile: &Profile, wanted: &str) -> Option<ProfileType> {
    let mut types = profile.series.iter().map(|series| &series.profile_type);
    let found = resolve_profile_type(wanted, types.clone()).ok();
    let found = found.or_else(|| types.find(|profile_type| profile_type.sample_type == wanted));
    found.cloned()
}

/// The window as a page of one file, in builds that have the window.
pub(crate) fn html_options() -> HtmlOptions {
    HtmlOptions {
        #[cfg(feature = "ui")]
        template: candela_server::OFFLINE_PAGE,
        ..HtmlOptions::default()
    }
}
