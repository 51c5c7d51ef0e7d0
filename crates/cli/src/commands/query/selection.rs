//! Answers that are made of stacks: functions, the call tree, the profile itself. A server and a
//! file give the same thing, a profile, so both are answered by the same code.

use std::process::ExitCode;

use candela_formats::Format;
use candela_formats::ReadOptions;
use candela_formats::TableFormat;
use candela_formats::TreeOptions;
use candela_formats::WriteOptions;
use candela_model::FlameTree;
use candela_model::Profile;
use candela_model::ProfileType;
use serde_json::json;

use super::remarks::nothing_found;
use crate::args::GlobalArgs;
use crate::args::query::OutputFormat;
use crate::args::query::SelectionArgs;
use crate::commands::client::Client;
use crate::commands::files::input::FileProfile;
use crate::commands::files::input::Input;
use crate::commands::profiles::DEFAULT_TYPE;
use crate::commands::profiles::add_wall_if_asked;
use crate::commands::profiles::html_options;
use crate::commands::profiles::resolve;
use crate::commands::profiles::tell_choice;
use crate::commands::profiles::tell_cut;
use crate::commands::profiles::tell_cut_rows;
use crate::commands::profiles::tree_of;
use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;
use crate::output;

pub(crate) fn top(global: &GlobalArgs, selection: &SelectionArgs) -> Result<ExitCode, CliError> {
    let format = match selection.range.format {
        OutputFormat::Text => TableFormat::Text,
        OutputFormat::Json => TableFormat::Json,
        OutputFormat::Csv => TableFormat::Csv,
        OutputFormat::Markdown => TableFormat::Markdown,
        _ => return profile(global, selection),
    };
    let (profile_type, tree) = load_tree(global, selection)?;
    let mut text = Vec::new();
    candela_formats::write_top(&tree, &profile_type, format, global.limit, &mut text)
        .or_exit(ExitStatus::Failed, "table")?;
    emit(selection, &text)?;
    // The text and the JSON have this in them.
    if matches!(format, TableFormat::Csv | TableFormat::Markdown) {
        tell_cut_rows(global, tree.function_table().len());
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn tree(global: &GlobalArgs, selection: &SelectionArgs) -> Result<ExitCode, CliError> {
    let is_json = selection.range.format == OutputFormat::Json;
    if selection.range.format != OutputFormat::Text && !is_json {
        return profile(global, selection);
    }
    let (profile_type, tree) = load_tree(global, selection)?;
    if is_json {
        emit(selection, &json_of(&profile_type, &tree)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = Vec::new();
    candela_formats::write_tree(&tree, &profile_type, &TreeOptions::default(), &mut text)
        .or_exit(ExitStatus::Failed, "tree")?;
    emit(selection, &text)?;
    Ok(ExitCode::SUCCESS)
}

/// The whole tree.
fn json_of(profile_type: &ProfileType, tree: &FlameTree) -> Result<Vec<u8>, CliError> {
    let head = json!({
        "schema": "candela/tree/v1",
        "type": profile_type.to_string(),
        "unit": profile_type.sample_unit,
        "total": tree.root_total(),
    });
    let mut bytes = Vec::new();
    candela_formats::write_trees_json(&head, &[("tree", tree)], &mut bytes)
        .or_exit(ExitStatus::Failed, "tree")?;
    bytes.push(b'\n');
    Ok(bytes)
}

pub(crate) fn profile(
    global: &GlobalArgs,
    selection: &SelectionArgs,
) -> Result<ExitCode, CliError> {
    let by_name = selection
        .output
        .as_ref()
        .and_then(|path| Format::from_file_name(&path.to_string_lossy()));
    let format = match selection.range.format {
        OutputFormat::Text => by_name.unwrap_or(Format::Text),
        OutputFormat::Csv => Format::Csv,
        OutputFormat::Markdown => Format::Markdown,
        OutputFormat::Pprof => Format::Pprof,
        OutputFormat::Folded => Format::Folded,
        OutputFormat::Svg => Format::Svg,
        OutputFormat::Json => {
            return Err(CliError::usage(
                "a profile has the formats text, csv, markdown, pprof, folded, svg",
            ));
        }
    };
    if format == Format::Pprof && selection.output.is_none() {
        output::refuse_binary_on_terminal("pprof")?;
    }
    let loaded = load(global, selection)?;
    let (profile, choice) = (&loaded.profile, loaded.choice(asked(selection)));
    let options = WriteOptions {
        sample_type: Some(resolve(profile, choice)?.to_string()),
        limit: global.limit,
        html: html_options(),
        ..WriteOptions::default()
    };
    let mut bytes = Vec::new();
    let report = candela_formats::write(format, profile, &mut bytes, &options)
        .or_exit(ExitStatus::Failed, "profile")?;
    for note in report.notes.iter().filter(|_| !global.quiet) {
        output::note(&format!("note: {note}"));
    }
    emit(selection, &bytes)?;
    tell_cut(global, profile, choice, format);
    Ok(ExitCode::SUCCESS)
}

/// The profile with all that it has: addresses, lines, labels of samples.
fn load(global: &GlobalArgs, selection: &SelectionArgs) -> Result<FileProfile, CliError> {
    load_in_form(global, selection, "/api/v1/pprof", &[])
}

fn load_in_form(
    global: &GlobalArgs,
    selection: &SelectionArgs,
    path: &str,
    form: &[(&str, &str)],
) -> Result<FileProfile, CliError> {
    if !selection.files.is_empty() {
        return load_files(global, selection);
    }
    Ok(FileProfile {
        profile: ask_server(global, selection, path, form)?,
        ..FileProfile::default()
    })
}

/// The merged stacks, which a server also has as sums over long times.
fn load_tree(
    global: &GlobalArgs,
    selection: &SelectionArgs,
) -> Result<(ProfileType, FlameTree), CliError> {
    load_tree_in_form(global, selection, &[("format", "pprof")])
}

/// The same with the stacks that sums over an hour do not have.
pub(super) fn load_tree_with_rare_stacks(
    global: &GlobalArgs,
    selection: &SelectionArgs,
) -> Result<(ProfileType, FlameTree), CliError> {
    let form = [("format", "pprof"), ("rare_stacks", "true")];
    load_tree_in_form(global, selection, &form)
}

fn load_tree_in_form(
    global: &GlobalArgs,
    selection: &SelectionArgs,
    form: &[(&str, &str)],
) -> Result<(ProfileType, FlameTree), CliError> {
    let loaded = load_in_form(global, selection, "/api/v1/flamegraph", form)?;
    tree_of(&loaded.profile, loaded.choice(asked(selection)))
}

pub(super) fn asked(selection: &SelectionArgs) -> Option<&str> {
    selection.profile_type.as_deref()
}

pub(super) fn load_files(
    global: &GlobalArgs,
    selection: &SelectionArgs,
) -> Result<FileProfile, CliError> {
    let filters = selection.filters.filters()?;
    let mut loaded = Input::new(global, &selection.reading).read_all(&selection.files)?;
    add_wall_if_asked(&mut loaded.profile, asked(selection));
    filters.apply_to_profile(&mut loaded.profile);
    if loaded.profile.sample_count() == 0 {
        return Err(CliError::no_data("no data: nothing passes the filters"));
    }
    if !global.quiet {
        tell_choice(&loaded.profile, loaded.choice(asked(selection)));
    }
    Ok(loaded)
}

fn ask_server(
    global: &GlobalArgs,
    selection: &SelectionArgs,
    path: &str,
    form: &[(&str, &str)],
) -> Result<Profile, CliError> {
    let client = Client::new(global)?;
    let mut parameters = parameters_of(selection)?;
    let asked = [parameters.as_slice(), form].concat();
    let bytes = client.get(path, &asked)?;
    let (profile, report) = candela_formats::read_pprof(bytes.as_slice(), &ReadOptions::default())
        .or_exit(ExitStatus::Failed, "answer of the server")?;
    if profile.sample_count() > 0 {
        // Said even with -q: the figures are not those that were asked for.
        for comment in &report.comments {
            output::note(&format!("note: {comment}"));
        }
        return Ok(profile);
    }
    // The comments of an empty answer do not tell the hint from the rest, the table does.
    parameters.push(("limit", "1"));
    let table = client.get_json("/api/v1/top", &parameters)?;
    Err(nothing_found(&table))
}

/// What a server is asked with.
pub(super) fn parameters_of(selection: &SelectionArgs) -> Result<Vec<(&str, &str)>, CliError> {
    let range = &selection.range;
    let mut parameters = vec![
        ("query", range.query.as_str()),
        (
            "type",
            selection.profile_type.as_deref().unwrap_or(DEFAULT_TYPE),
        ),
        ("from", range.from.as_str()),
        ("to", range.to.as_str()),
    ];
    let aggregation = selection.aggregation.as_deref();
    parameters.extend(aggregation.map(|how| ("aggregation", how)));
    // A wrong pattern is an error of the command line, whoever would find it.
    selection.filters.filters()?;
    parameters.extend(selection.filters.parameters());
    Ok(parameters)
}

pub(super) fn emit(selection: &SelectionArgs, bytes: &[u8]) -> Result<(), CliError> {
    match &selection.output {
        Some(path) => output::write_file(path, bytes),
        None => output::print(bytes),
    }
}
