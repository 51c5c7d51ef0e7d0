//! `candela config import`: another profiler's configuration as ours.
//!
//! Telegen's has two forms, the one of its documentation (`agent.profiling`) and the one that its code
//! reads (`profiling`), and variables of the environment. What has a key of ours becomes it, and each of
//! the other keys gets a line that says why not.

mod convert;
mod meanings;
mod source;

use std::process::ExitCode;

use self::convert::Converted;
use self::convert::convert;
use self::source::Source;
use crate::args::ConfigImportArgs;
use crate::args::GlobalArgs;
use crate::config::keys::keys;
use crate::errors::CliError;
use crate::output;

pub(crate) fn run(global: &GlobalArgs, arguments: &ConfigImportArgs) -> Result<ExitCode, CliError> {
    let source = Source::read(&arguments.input, &super::environment())?;
    let converted = convert(&source.entries);
    if converted.settings.is_empty() && converted.notes.is_empty() {
        return Err(CliError::usage(format!(
            "{}: nothing of Telegen's is in it: neither agent.profiling, profiling nor a variable TELEGEN_…",
            source.name
        )));
    }
    if !global.quiet {
        for note in &converted.notes {
            output::note(note);
        }
        if !converted.foreign.is_empty() {
            let sections: Vec<&str> = converted.foreign.iter().map(String::as_str).collect();
            output::note(&format!("not about profiling: {}", sections.join(", ")));
        }
    }
    let text = as_yaml(&source.name, &converted);
    match &arguments.output {
        Some(path) if path.as_os_str() != "-" => output::write_file(path, text.as_bytes())?,
        _ => output::print_text(&text)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A file that can be used as it is.
fn as_yaml(name: &str, converted: &Converted) -> String {
    let mut text = format!(
        "# Converted from {} by `candela config import`. What is not here has candela's default.\n",
        candela_formats::printable(name)
    );
    let mut section = "";
    for key in keys() {
        let value = converted.settings.get(key.path);
        let Some(value) = value.and_then(crate::config::Value::to_yaml) else {
            continue;
        };
        if key.section() != section {
            section = key.section();
            text.push_str(&format!("{section}:\n"));
        }
        let name = &key.path[section.len() + 1..];
        text.push_str(&format!("  {name}: {value}\n"));
    }
    text
}
