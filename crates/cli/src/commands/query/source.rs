//! The code of a function: its source lines with what they took, and its instructions.

use std::process::ExitCode;

use candela_model::SourcePlace;
use candela_model::SourceQuestion;
use candela_symbols::SourceRoots;
use serde_json::Value;
use serde_json::json;

use super::code_text::disassembly_text;
use super::code_text::source_text;
use super::remarks::nothing_found;
use super::remarks::tell_partial;
use super::selection::asked;
use super::selection::emit;
use super::selection::load_files;
use super::selection::parameters_of;
use crate::args::GlobalArgs;
use crate::args::query::DisassemblyArgs;
use crate::args::query::OutputFormat;
use crate::args::query::SourceArgs;
use crate::commands::client::Client;
use crate::commands::profiles::resolve;
use crate::errors::CliError;
use crate::output;

pub(crate) fn source(global: &GlobalArgs, arguments: &SourceArgs) -> Result<ExitCode, CliError> {
    let is_json = is_json(arguments)?;
    let answer = if arguments.selection.files.is_empty() {
        ask(global, arguments, "/api/v1/source", None)?
    } else {
        answer_of_files(global, arguments)?
    };
    finish(arguments, is_json, &answer, source_text)
}

pub(crate) fn disassembly(
    global: &GlobalArgs,
    arguments: &DisassemblyArgs,
) -> Result<ExitCode, CliError> {
    let source = &arguments.source;
    let is_json = is_json(source)?;
    if !source.selection.files.is_empty() {
        return Err(CliError::usage(
            "disassembly asks a server; `candela open FILE` is one for files",
        ));
    }
    let build_id = arguments.build_id.as_deref();
    let answer = ask(global, source, "/api/v1/disassembly", build_id)?;
    finish(source, is_json, &answer, disassembly_text)
}

fn is_json(arguments: &SourceArgs) -> Result<bool, CliError> {
    match arguments.selection.range.format {
        OutputFormat::Text => Ok(false),
        OutputFormat::Json => Ok(true),
        _ => Err(CliError::usage("code has the formats text, json")),
    }
}

fn ask(
    global: &GlobalArgs,
    arguments: &SourceArgs,
    path: &str,
    build_id: Option<&str>,
) -> Result<Value, CliError> {
    let mut parameters = parameters_of(&arguments.selection)?;
    parameters.push(("function", &arguments.function));
    parameters.extend(arguments.file.as_deref().map(|file| ("file", file)));
    parameters.extend(arguments.binary.as_deref().map(|path| ("binary", path)));
    parameters.extend(build_id.map(|build_id| ("build_id", build_id)));
    Client::new(global)?.get_json(path, &parameters)
}

/// What a server that had the files would answer.
fn answer_of_files(global: &GlobalArgs, arguments: &SourceArgs) -> Result<Value, CliError> {
    let selection = &arguments.selection;
    let question = SourceQuestion {
        function: Some(arguments.function.clone()),
        file: arguments.file.clone(),
        binary: arguments.binary.clone(),
    };
    let loaded = load_files(global, selection)?;
    let profile_type = resolve(&loaded.profile, loaded.choice(asked(selection)))?;
    let places = loaded
        .profile
        .source_values(&profile_type, &question.everywhere());
    let of_type = loaded.profile.series.iter();
    let of_type = of_type.filter(|series| series.profile_type == profile_type);
    let place = question.choose(&places);
    let mut answer = json!({
        "schema": "candela/source/v1",
        "type": profile_type.to_string(),
        "unit": profile_type.sample_unit,
        "total": of_type.fold(0_i64, |sum, series| sum.saturating_add(series.total())),
        "function": arguments.function,
        "places": candela_formats::places_json(&places),
        "place": place.map(candela_formats::place_json),
        "source": place.map(text_of),
    });
    if place.is_none() {
        answer["hint"] = json!(format!(
            "no stack here has {}; `candela query top` lists what there is",
            arguments.function
        ));
    }
    Ok(answer)
}

/// The text of the file as its reader may read it: whoever runs this asks for nobody else.
fn text_of(place: &SourcePlace) -> Value {
    let here = std::env::current_dir().unwrap_or_default();
    let folders = ["/".to_owned(), here.to_string_lossy().into_owned()];
    let read = SourceRoots::parse(&folders).map(|roots| roots.read(&place.file));
    match read {
        Ok(Ok(found)) => json!({"state": "found", "message": "", "hint": "", "text": found.text}),
        Ok(Err(error)) => json!({"state": "missing", "message": error.to_string(), "hint": ""}),
        Err(error) => json!({"state": "missing", "message": error.to_string(), "hint": ""}),
    }
}

fn finish(
    arguments: &SourceArgs,
    is_json: bool,
    answer: &Value,
    text: impl FnOnce(&Value) -> String,
) -> Result<ExitCode, CliError> {
    if answer["hint"].is_string() {
        return Err(nothing_found(answer));
    }
    tell_partial(answer);
    let text = if is_json {
        format!("{answer:#}\n")
    } else {
        text(answer)
    };
    // Why there is no text or no code stands beside the figures, not among them.
    for part in ["source", "code"] {
        let (message, hint) = (&answer[part]["message"], &answer[part]["hint"]);
        if let (Some(message), Some(hint)) = (message.as_str(), hint.as_str())
            && !message.is_empty()
        {
            let separator = if hint.is_empty() { "" } else { "; " };
            output::note(&format!("note: {message}{separator}{hint}"));
        }
    }
    if let Some(hint) = answer["lines_hint"].as_str() {
        output::note(&format!("note: no sample has a line; {hint}"));
    }
    emit(&arguments.selection, text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
