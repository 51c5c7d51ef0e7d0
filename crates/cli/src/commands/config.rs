//! `candela config`

use std::process::ExitCode;

use serde_json::json;

use crate::args::ConfigCommand;
use crate::args::GlobalArgs;
use crate::config::Settings;
use crate::config::Value;
use crate::config::keys::keys;
use crate::errors::CliError;
use crate::output;

pub(crate) fn run(global: &GlobalArgs, command: &ConfigCommand) -> Result<ExitCode, CliError> {
    // What is wrong with our own configuration is no reason not to convert another.
    let settings = || super::settings(global, Vec::new());
    match command {
        ConfigCommand::Show { json: true } => output::print_json(&as_json(&settings()?))?,
        ConfigCommand::Show { json: false } => output::print_text(&as_text(&settings()?))?,
        ConfigCommand::Check => {
            check(&settings()?)?;
            output::note("the configuration is valid");
        }
        ConfigCommand::Import(arguments) => return super::config_import::run(global, arguments),
    }
    Ok(ExitCode::SUCCESS)
}

/// Values can be of the right kind and still be refused by what they are for: everything is built
/// from them that the commands build, short of opening ports and files.
fn check(settings: &Settings) -> Result<(), CliError> {
    let problems: Vec<String> = [check_agent(settings), check_server(settings)]
        .into_iter()
        .flatten()
        .collect();
    if problems.is_empty() {
        return Ok(());
    }
    Err(CliError::usage(problems.join("; ")))
}

#[cfg(feature = "agent")]
fn check_agent(settings: &Settings) -> Vec<String> {
    let options = super::sampling::options(settings).map(drop);
    let server = super::sampling::check_server(settings);
    // It reads the agent's options, too: one problem is told once.
    let on_demand = match &options {
        Ok(()) => super::on_demand::check(settings),
        Err(_) => Ok(()),
    };
    let fleet = super::fleet_node::check(settings);
    [options, server, on_demand, fleet]
        .into_iter()
        .filter_map(Result::err)
        .map(|error| error.to_string())
        .collect()
}

#[cfg(not(feature = "agent"))]
fn check_agent(_: &Settings) -> Vec<String> {
    Vec::new()
}

#[cfg(feature = "server")]
fn check_server(settings: &Settings) -> Vec<String> {
    let options = super::server::server_options(settings, super::server::Companions::default());
    let checked = match &options {
        Ok(options) => candela_server::Server::check(options).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    let backend = check_backend(settings).map_err(|error| error.to_string());
    let found = [checked, backend].into_iter();
    found.filter_map(Result::err).collect()
}

/// A bucket is talked to: that its name and its keys are of the right kind says little.
#[cfg(feature = "server")]
fn check_backend(settings: &Settings) -> Result<(), CliError> {
    let backend = super::backend::backend(settings)?;
    candela_store::check_backend(&backend).map_err(|error| CliError::failed(error.to_string()))
}

#[cfg(not(feature = "server"))]
fn check_server(_: &Settings) -> Vec<String> {
    Vec::new()
}

/// YAML that could be used as the file, each value with its origin and meaning. A key without a
/// value is commented out.
fn as_text(settings: &Settings) -> String {
    let mut text = String::new();
    let mut section = "";
    for key in keys() {
        if key.section() != section {
            section = key.section();
            text.push_str(&format!("{section}:\n"));
        }
        let setting = settings.get(key.path);
        let name = &key.path[section.len() + 1..];
        let entry = match setting.value.to_yaml() {
            Some(value) => format!("  {name}: {value}"),
            None => format!("  # {name}:"),
        };
        text.push_str(&format!(
            "{entry:<44} # {} ({})\n",
            key.summary, setting.origin
        ));
    }
    text
}

fn as_json(settings: &Settings) -> serde_json::Value {
    let keys: Vec<serde_json::Value> = keys()
        .map(|key| {
            let setting = settings.get(key.path);
            let is_set = setting.value != Value::Unset;
            json!({
                "key": key.path,
                "value": is_set.then(|| setting.value.to_string()),
                "origin": setting.origin.to_string(),
                "variable": key.variable(),
                "summary": key.summary,
            })
        })
        .collect();
    json!({ "schema": "candela/config/v1", "keys": keys })
}
