//! `candela infra describe persistence`

use std::process::ExitCode;

use candela_fleet::DaemonBody;
use candela_fleet::FleetDocument;
use candela_fleet::ObservabilityDaemon;
use candela_fleet::PerfettoTrigger;
use serde_json::Value;

use super::DOCUMENT;
use crate::args::GlobalArgs;
use crate::args::infra::DescribeArgs;
use crate::commands::client::Client;
use crate::commands::listed_rows::print_table;
use crate::commands::query::rfc3339;
use crate::errors::CliError;
use crate::output;
use crate::table::Table;

pub(super) fn describe(
    global: &GlobalArgs,
    arguments: &DescribeArgs,
) -> Result<ExitCode, CliError> {
    let client = Client::new(global)?;
    if arguments.history {
        let history = client.get_json(&format!("{DOCUMENT}/history"), &[])?;
        print_history(global, &history, arguments.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let path = match arguments.version {
        Some(version) => format!("{DOCUMENT}/versions/{version}"),
        None => DOCUMENT.to_owned(),
    };
    let answer = client.get_json(&path, &[])?;
    if arguments.json {
        // Without a schema: what is printed is edited and applied, and there it would be an unknown key.
        output::print_json(&answer["document"])?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = heading(&answer);
    text.push('\n');
    match FleetDocument::read_applied(&answer["document"].to_string()) {
        Ok(accepted) => {
            text.push_str(&daemons_text(&accepted.document));
            for note in accepted.warnings().filter(|_| !global.quiet) {
                output::note(&note.to_string());
            }
        }
        // The server may be newer than this program.
        Err(problems) => output::note(&format!("this version reads it otherwise: {problems}")),
    }
    output::print_text(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn heading(answer: &Value) -> String {
    let version = answer["version"].as_u64().unwrap_or_default();
    if version == 0 {
        return "no document was applied".to_owned();
    }
    let author = answer["author"].as_str().unwrap_or("?");
    let time = rfc3339(answer["time"].as_i64().unwrap_or_default());
    let again = match answer["rolled_back_to"].as_u64() {
        Some(old) => format!(", which is version {old} once more"),
        None => String::new(),
    };
    format!("version {version}, applied by {author} at {time}{again}")
}

fn daemons_text(document: &FleetDocument) -> String {
    if document.daemons().is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["daemon", "state", "what it does", "exports to"]);
    for daemon in document.daemons() {
        let rests = document.is_suspended() && !daemon.keeps_running_when_suspended();
        let destination = daemon.body.destination();
        table.push(vec![
            daemon.body.name().to_owned(),
            if rests { "suspended" } else { "runs" }.to_owned(),
            what_it_does(daemon),
            destination.map_or_else(String::new, |it| it.to_string()),
        ]);
    }
    table.to_text()
}

fn what_it_does(daemon: &ObservabilityDaemon) -> String {
    match &daemon.body {
        DaemonBody::PerfCollector(collector) => format!(
            "{} Hz, a dump every {} s",
            collector.frequency_hz(),
            collector.dump_seconds()
        ),
        DaemonBody::PerfettoDaemon(daemon) => {
            let name = daemon.trigger_name.as_deref().unwrap_or_default();
            match (daemon.trigger, daemon.interval) {
                (Some(PerfettoTrigger::TimeInterval), Some(milliseconds)) => {
                    let seconds = f64::from(milliseconds) / 1000.0;
                    format!("{name}, a snapshot every {seconds} s")
                }
                _ => format!("{name}, a snapshot when asked"),
            }
        }
    }
}

fn print_history(global: &GlobalArgs, history: &Value, json: bool) -> Result<(), CliError> {
    if json {
        return output::print_json(history);
    }
    let mut table = Table::new(&["version", "time", "author", "content"]);
    for entry in history["versions"].as_array().into_iter().flatten() {
        let again = entry["rolled_back_to"].as_u64();
        table.push(vec![
            entry["version"].to_string(),
            rfc3339(entry["time"].as_i64().unwrap_or_default()),
            entry["author"].as_str().unwrap_or("?").to_owned(),
            again.map_or_else(|| "new".to_owned(), |old| format!("that of version {old}")),
        ]);
    }
    print_table(table, global)
}
