//! What `query` and `record` do with a profile before it is written.

use candela_formats::Format;
use candela_model::FlameTree;
use candela_model::FlameTreeBuilder;
use candela_model::Profile;
use candela_model::ProfileType;
use candela_model::resolve_profile_type;

use crate::args::GlobalArgs;
use crate::errors::CliError;
use crate::output;

/// The type of a profile that a pattern means.
pub(crate) fn resolve(profile: &Profile, pattern: &str) -> Result<ProfileType, CliError> {
    let available = profile.series.iter().map(|series| &series.profile_type);
    if let Ok(found) = resolve_profile_type(pattern, available.clone()) {
        return Ok(found.clone());
    }
    // A file often has one type only, and then the default `cpu` must not hide it.
    let mut types: Vec<&ProfileType> = available.collect();
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
    pattern: &str,
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

/// Says that rows are missing from a table that has no place to say so itself.
pub(crate) fn tell_cut(global: &GlobalArgs, profile: &Profile, pattern: &str, format: Format) {
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
