//! `candela symbols list`

use std::process::ExitCode;

use bytesize::ByteSize;
use serde_json::Value;

use crate::args::GlobalArgs;
use crate::args::symbols::ListArgs;
use crate::commands::client::Client;
use crate::commands::listed_rows::print_table;
use crate::errors::CliError;
use crate::output;
use crate::table::Table;

/// What the server keeps, or what it misses.
pub(super) fn list(global: &GlobalArgs, arguments: ListArgs) -> Result<ExitCode, CliError> {
    let answer = Client::new(global)?.get_json("/api/v1/symbols", &[])?;
    if arguments.json {
        output::print_json(&answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let table = match arguments.wanted {
        true => wanted(&answer),
        false => files(&answer),
    };
    print_table(table, global)?;
    let missing = entries(&answer, "wanted").count();
    if missing > 0 && !arguments.wanted && !global.quiet {
        output::note(&format!(
            "{missing} binaries have addresses without names: candela symbols list --wanted"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn files(answer: &Value) -> Table {
    let mut table = Table::new(&["build id", "size", "uploaded", "contents", "name"]);
    for file in entries(answer, "files") {
        let contents = file["contents"].as_array().into_iter().flatten();
        let contents: Vec<String> = contents.map(text).collect();
        table.push(vec![
            text(&file["build_id"]),
            ByteSize::b(file["bytes"].as_u64().unwrap_or_default()).to_string(),
            crate::commands::query::rfc3339(file["uploaded_ms"].as_i64().unwrap_or_default()),
            contents.join(" "),
            text(&file["name"]),
        ]);
    }
    table
}

fn wanted(answer: &Value) -> Table {
    let mut table = Table::new(&["build id", "samples", "addresses", "mapping"]);
    for binary in entries(answer, "wanted") {
        let cells = ["build_id", "samples", "addresses", "mapping"];
        table.push(cells.map(|cell| text(&binary[cell])).to_vec());
    }
    table
}

fn entries<'a>(answer: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    answer[name].as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
