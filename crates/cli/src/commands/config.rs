//! `candela config`

use std::process::ExitCode;

use serde_json::json;

use crate::args::ConfigCommand;
use crate::args::GlobalArgs;
use crate::config::Settings;
use crate::config::keys::KEYS;
use crate::errors::CliError;
use crate::output;

pub(crate) fn run(global: &GlobalArgs, command: ConfigCommand) -> Result<ExitCode, CliError> {
    let settings = super::settings(global, Vec::new())?;
    match command {
        ConfigCommand::Show { json: true } => output::print_json(&as_json(&settings))?,
        ConfigCommand::Show { json: false } => output::print_text(&as_text(&settings))?,
        ConfigCommand::Check => output::note("the configuration is valid"),
    }
    Ok(ExitCode::SUCCESS)
}

/// YAML that could be used as the file, each value with its origin and meaning.
fn as_text(settings: &Settings) -> String {
    let mut text = String::new();
    let mut section = "";
    for key in KEYS {
        if key.section() != section {
            section = key.section();
            text.push_str(&format!("{section}:\n"));
        }
        let setting = settings.get(key.path);
        let name = &key.path[section.len() + 1..];
        let entry = format!("  {name}: {}", setting.value);
        text.push_str(&format!(
            "{entry:<44} # {} ({})\n",
            key.summary, setting.origin
        ));
    }
    text
}

fn as_json(settings: &Settings) -> serde_json::Value {
    let keys: Vec<serde_json::Value> = KEYS
        .iter()
        .map(|key| {
            let setting = settings.get(key.path);
            json!({
                "key": key.path,
                "value": setting.value.to_string(),
                "origin": setting.origin.to_string(),
                "variable": key.variable(),
                "summary": key.summary,
            })
        })
        .collect();
    json!({ "schema": "candela/config/v1", "keys": keys })
}
