//! What `query` and `record` do with a profile before it is written.

use std::collections::BTreeSet;
use std::path::Path;

use candela_formats::Format;
use candela_formats::HtmlOptions;
use candela_formats::named_type;
pub(crate) use candela_formats::unasked_type;
use candela_model::FlameTree;
use candela_model::FlameTreeBuilder;
use candela_model::Profile;
use candela_model::ProfileType;

use crate::args::GlobalArgs;
use crate::errors::CliError;
use crate::output;

/// What is asked for where nobody says: most profiles have it.
pub(crate) const DEFAULT_TYPE: &str = "cpu";

/// Which type of a profile is meant.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TypeChoice<'a> {
    /// What the command line says: an identifier, short name, prefix or sample type.
    pub(crate) asked: Option<&'a str>,
    /// The sample type that the writer of the profile wants to be shown first.
    pub(crate) writers: Option<&'a str>,
}

/// The type of a profile that is meant.
pub(crate) fn resolve(profile: &Profile, choice: TypeChoice<'_>) -> Result<ProfileType, CliError> {
    let available = || profile.series.iter().map(|series| &series.profile_type);
    let Some(pattern) = choice.asked else {
        return unasked_type(profile, choice.writers)
            .ok_or_else(|| CliError::no_data("no data: there is no profile"));
    };
    if let Some(found) = named_type(profile, pattern) {
        return Ok(found);
    }
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

/// Adds wall time where it is asked for: files have its parts, and a copy for everybody would double
/// what they take.
pub(crate) fn add_wall_if_asked(profile: &mut Profile, asked: Option<&str>) {
    if asked.is_some_and(ProfileType::may_be_wall) {
        profile.add_wall();
    }
}

/// The stacks of one type, merged.
pub(crate) fn tree_of(
    profile: &Profile,
    choice: TypeChoice<'_>,
) -> Result<(ProfileType, FlameTree), CliError> {
    let profile_type = resolve(profile, choice)?;
    let mut builder = FlameTreeBuilder::new();
    for (position, series) in profile.series.iter().enumerate() {
        if series.profile_type == profile_type {
            builder.add_series(profile, position);
        }
    }
    Ok((profile_type, builder.finish()))
}

/// Says which type it is where nobody asked and others could have been meant as well.
pub(crate) fn tell_choice(profile: &Profile, choice: TypeChoice<'_>) {
    let Some(shown) = unasked_type(profile, choice.writers).filter(|_| choice.asked.is_none())
    else {
        return;
    };
    if named_type(profile, DEFAULT_TYPE).as_ref() == Some(&shown) {
        return;
    }
    let types = profile.series.iter().map(|series| &series.profile_type);
    let others: BTreeSet<String> = types
        .filter(|it| **it != shown)
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
    choice: TypeChoice<'_>,
    format: Format,
) {
    let is_silent = matches!(format, Format::Csv | Format::Markdown);
    if !is_silent || global.limit == 0 {
        return;
    }
    if let Ok((_, tree)) = tree_of(profile, choice) {
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
    named_type(profile, wanted).ok_or_else(|| {
        let types = profile.series.iter().map(|series| &series.profile_type);
        let available: BTreeSet<String> = types.map(ToString::to_string).collect();
        let available: Vec<String> = available.into_iter().collect();
        CliError::usage(format!(
            "--sample-type {wanted:?} names none of the profile types here: {}",
            available.join(", ")
        ))
    })
}

/// The window as a page of one file, in builds that have the window.
pub(crate) fn html_options() -> HtmlOptions {
    HtmlOptions {
        #[cfg(feature = "ui")]
        template: candela_server::OFFLINE_PAGE,
        ..HtmlOptions::default()
    }
}

#[cfg(test)]
mod tests {
    use candela_model::Labels;
    use candela_model::ProfileSeries;

    use super::*;

    fn profile(types: &[&str]) -> Profile {
        let mut profile = Profile::default();
        for profile_type in types {
            let profile_type = profile_type.parse().expect("a type");
            let series = ProfileSeries::new(Labels::default(), profile_type);
            profile.series.push(series);
        }
        profile
    }

    #[test]
    fn the_writer_goes_before_cpu_and_cpu_before_what_tells_most() {
        let cpu = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
        let allocated = "memory:alloc_space:bytes:space:bytes";
        let in_use = "memory:inuse_space:bytes:space:bytes";
        let shown = |types: &[&str], writers| {
            let shown = unasked_type(&profile(types), writers);
            shown.map(|shown| shown.to_string())
        };
        let all = [allocated, in_use, cpu];
        assert_eq!(shown(&all, Some("alloc_space")).as_deref(), Some(allocated));
        assert_eq!(shown(&all, Some("goroutine")).as_deref(), Some(cpu));
        assert_eq!(shown(&all, None).as_deref(), Some(cpu));
        assert_eq!(shown(&all[..2], None).as_deref(), Some(in_use));
        assert_eq!(shown(&[], Some("cpu")), None);
    }

    #[test]
    fn a_type_without_samples_is_not_shown_where_another_has_some() {
        let allocated = "memory:alloc_space:bytes:space:bytes";
        let in_use = "memory:inuse_space:bytes:space:bytes";
        let mut profile = profile(&[in_use, allocated]);
        let sample = candela_model::Sample::new(candela_model::StackId::default(), 1);
        profile.series[1].samples.push(sample);
        let shown = unasked_type(&profile, None).map(|shown| shown.to_string());
        assert_eq!(shown.as_deref(), Some(allocated));
    }
}
