//! `candela profiling perfetto-snapshot`: a snapshot of every node at the moment that matters.

use std::process::ExitCode;
use std::time::Duration;

use serde_json::Value;
use serde_json::json;

use crate::args::GlobalArgs;
use crate::args::infra::ProfilingCommand;
use crate::args::infra::SnapshotArgs;
use crate::commands::client::Client;
use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;
use crate::output;
use crate::table::Table;

/// Time for the answer itself, beyond that of the nodes.
const ANSWER_TIME: Duration = Duration::from_secs(30);

pub(crate) fn run(global: &GlobalArgs, command: &ProfilingCommand) -> Result<ExitCode, CliError> {
    match command {
        ProfilingCommand::PerfettoSnapshot(arguments) => snapshot(global, arguments),
    }
}

fn snapshot(global: &GlobalArgs, arguments: &SnapshotArgs) -> Result<ExitCode, CliError> {
    let asked = json!({
        "pod_label_filters": arguments.pod_labels,
        "pod_field_filters": arguments.pod_fields,
        "nodes": arguments.nodes,
        "trigger_name": arguments.trigger,
        "timeout_ms": u64::try_from(arguments.timeout.as_millis()).unwrap_or(u64::MAX),
    });
    let wait = arguments.timeout.saturating_add(ANSWER_TIME);
    let body = asked.to_string();
    let answer = Client::new(global)?.post_waiting(
        "/api/v1/fleet/snapshot",
        "application/json",
        body.as_bytes(),
        wait,
    )?;
    let answer: Value =
        serde_json::from_slice(&answer).or_exit(ExitStatus::Failed, "the server's answer")?;
    let results: Vec<&Value> = answer["results"].as_array().into_iter().flatten().collect();
    let failed = results.iter().filter(|it| it["status"] != "ok").count();
    if arguments.json {
        output::print_json(&answer)?;
    } else if !results.is_empty() {
        output::print_text(&as_text(&results))?;
    }
    let away = answer["away"].as_array().into_iter().flatten();
    let away: Vec<&str> = away.filter_map(Value::as_str).collect();
    if !away.is_empty() && !global.quiet {
        let names = away.join(", ");
        output::note(&format!("not connected, and so not asked: {names}"));
    }
    match (results.len(), failed) {
        (0, _) => Err(CliError::no_data(
            "no node that is meant is connected; `candela infra describe nodes` lists them",
        )),
        (_, 0) => Ok(ExitCode::SUCCESS),
        (all, failed) => Err(CliError::failed(format!(
            "{failed} of {all} nodes have no snapshot"
        ))),
    }
}

/// One line a node: where its snapshot is, or why there is none.
fn as_text(results: &[&Value]) -> String {
    let mut table = Table::new(&["node", "status", "object"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for result in results {
        let object = match result["object_key"].as_str() {
            Some(key) => key.to_owned(),
            None => text(&result["error"]),
        };
        table.push(vec![text(&result["node"]), text(&result["status"]), object]);
    }
    table.to_text()
}
