//! `candela infra describe nodes`

use std::collections::BTreeMap;
use std::process::ExitCode;

use serde_json::Value;

use crate::args::GlobalArgs;
use crate::commands::client::Client;
use crate::commands::listed_rows::print_table;
use crate::commands::query::rfc3339;
use crate::errors::CliError;
use crate::output;
use crate::table::Table;

pub(super) fn nodes(global: &GlobalArgs, json: bool) -> Result<ExitCode, CliError> {
    let answer = Client::new(global)?.get_json("/api/v1/fleet/nodes", &[])?;
    if json {
        output::print_json(&answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(&["node", "connected", "version", "daemons", "seen"]);
    for node in entries(&answer, "nodes") {
        let is_connected = node["connected"] == true;
        table.push(vec![
            text(&node["node"]),
            if is_connected { "yes" } else { "no" }.to_owned(),
            text(&node["version"]),
            daemons_text(node),
            rfc3339(node["seen"].as_i64().unwrap_or_default()),
        ]);
    }
    if table.len() == 0 {
        return Err(CliError::no_data(
            "no node has listened or reported; start agents with `candela agent --server URL`",
        ));
    }
    print_table(table, global)?;
    if global.quiet {
        return Ok(ExitCode::SUCCESS);
    }
    for node in entries(&answer, "nodes") {
        for daemon in entries(node, "daemons") {
            if let Some(error) = daemon["last_error"].as_str() {
                let (node, daemon) = (text(&node["node"]), text(&daemon["id"]));
                output::note(&format!("{node} {daemon}: {error}"));
            }
            for said in entries(daemon, "notes") {
                let (node, daemon) = (text(&node["node"]), text(&daemon["id"]));
                output::note(&format!("{node} {daemon}: {}", text(said)));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// How many are in each state.
fn daemons_text(node: &Value) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for daemon in entries(node, "daemons") {
        *counts.entry(text(&daemon["state"])).or_default() += 1;
    }
    let counts = counts.iter();
    let counts: Vec<String> = counts
        .map(|(state, count)| format!("{count} {state}"))
        .collect();
    match counts[..] {
        [] => "-".to_owned(),
        _ => counts.join(", "),
    }
}

fn entries<'a>(answer: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    answer[name].as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    }
}
