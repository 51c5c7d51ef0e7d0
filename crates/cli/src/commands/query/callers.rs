//! What calls a function, and what it calls.

use std::process::ExitCode;

use candela_formats::TreeOptions;
use candela_model::Filter;
use candela_model::FilterKind;
use candela_model::Filters;
use candela_model::FlameTree;
use candela_model::FrameTable;
use candela_model::ProfileType;
use serde_json::json;

use super::selection::emit;
use super::selection::load_tree_with_rare_stacks;
use crate::args::GlobalArgs;
use crate::args::query::CallersArgs;
use crate::args::query::OutputFormat;
use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;

pub(crate) fn callers(global: &GlobalArgs, arguments: &CallersArgs) -> Result<ExitCode, CliError> {
    let selection = &arguments.selection;
    let is_json = match selection.range.format {
        OutputFormat::Text => false,
        OutputFormat::Json => true,
        _ => return Err(CliError::usage("callers have the formats text, json")),
    };
    let (profile_type, tree) = load_tree_with_rare_stacks(global, selection)?;
    let is_wanted = frames_of(&arguments.function, &tree.frames)?;
    let callers = tree.callers(|frame| is_wanted[frame.index()]);
    let callees = tree.callees(|frame| is_wanted[frame.index()]);
    if callers.is_empty() {
        return Err(CliError::no_data(format!(
            "no data: no function here is named {0:?} or matches it; `candela query top` lists them",
            arguments.function
        )));
    }
    let text = if is_json {
        json_of(&profile_type, &tree, &callers, &callees)?
    } else {
        text_of(&profile_type, &callers, &callees)?
    };
    emit(selection, &text)?;
    Ok(ExitCode::SUCCESS)
}

/// For each frame whether it has this name or matches it as a pattern. Names such as `(*Cart).total` have characters that
/// mean something else in a pattern.
fn frames_of(function: &str, frames: &FrameTable) -> Result<Vec<bool>, CliError> {
    let names = frames
        .frames()
        .iter()
        .map(|frame| frames.strings.get(frame.name));
    let by_name: Vec<bool> = names.map(|name| name == function).collect();
    let pattern = match Filter::new(FilterKind::Focus, function) {
        Ok(pattern) => pattern,
        Err(_) if by_name.contains(&true) => return Ok(by_name),
        Err(error) => return Err(CliError::usage(format!("FUNCTION: {error}"))),
    };
    let by_pattern = Filters::matching_frames(&pattern, frames);
    let either = by_name.into_iter().zip(by_pattern);
    Ok(either.map(|(named, matching)| named || matching).collect())
}

fn text_of(
    profile_type: &ProfileType,
    callers: &FlameTree,
    callees: &FlameTree,
) -> Result<Vec<u8>, CliError> {
    let mut text = b"Callers, upwards\n".to_vec();
    let options = TreeOptions::default();
    candela_formats::write_tree(callers, profile_type, &options, &mut text)
        .or_exit(ExitStatus::Failed, "callers")?;
    text.extend_from_slice(b"\nCallees, downwards\n");
    candela_formats::write_tree(callees, profile_type, &options, &mut text)
        .or_exit(ExitStatus::Failed, "callees")?;
    Ok(text)
}

/// As the server writes it.
fn json_of(
    profile_type: &ProfileType,
    tree: &FlameTree,
    callers: &FlameTree,
    callees: &FlameTree,
) -> Result<Vec<u8>, CliError> {
    let head = json!({
        "schema": "candela/callers/v1",
        "type": profile_type.to_string(),
        "unit": profile_type.sample_unit,
        "total": tree.root_total(),
        "function_total": callers.root_total(),
    });
    let mut bytes = Vec::new();
    let trees = [("callers", callers), ("callees", callees)];
    candela_formats::write_trees_json(&head, &trees, &mut bytes)
        .or_exit(ExitStatus::Failed, "callers")?;
    bytes.push(b'\n');
    Ok(bytes)
}
