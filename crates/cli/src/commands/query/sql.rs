//! SQL over what a server has stored, or over profile files.

use std::io::Read;
use std::process::ExitCode;

use serde_json::Value;

use super::remarks::tell_partial;
use crate::args::GlobalArgs;
use crate::args::query::SqlArgs;
use crate::args::query::SqlFormat;
use crate::commands::client::Client;
#[cfg(feature = "server")]
use crate::commands::files::serving;
use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;
use crate::output;
use crate::table::Table;

const ROUTE: &str = "/api/v1/sql";

pub(crate) fn sql(global: &GlobalArgs, arguments: &SqlArgs) -> Result<ExitCode, CliError> {
    let statement = statement(&arguments.statement)?;
    let body = match arguments.files.is_empty() {
        true => ask(&Client::new(global)?, &statement)?,
        false => ask_files(global, arguments, &statement)?,
    };
    let answer: Value =
        serde_json::from_slice(&body).or_exit(ExitStatus::Failed, "answer of the server")?;
    tell_partial(&answer);
    let mut table = table_of(&answer);
    match arguments.format {
        SqlFormat::Json => output::print_json(&answer)?,
        // A statement has a LIMIT of its own: what programs read is never cut.
        SqlFormat::Csv => output::print_text(&table.to_csv())?,
        SqlFormat::Text => {
            let found = table.truncate(global.limit);
            output::print_text(&table.to_text())?;
            if found > table.len() {
                let shown = table.len();
                output::note(&format!("{shown} of {found} rows; --limit 0 prints all"));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn ask(client: &Client, statement: &str) -> Result<Vec<u8>, CliError> {
    client.post(ROUTE, "text/plain", statement.as_bytes())
}

/// The answer of a server that has the files and nothing else.
#[cfg(feature = "server")]
fn ask_files(
    global: &GlobalArgs,
    arguments: &SqlArgs,
    statement: &str,
) -> Result<Vec<u8>, CliError> {
    if !cfg!(feature = "sql") {
        return Err(CliError::failed(
            "this build has no SQL: it needs one with the feature sql",
        ));
    }
    let files = serving::read(global, &arguments.reading, &arguments.files)?;
    let (answered, answer) = std::sync::mpsc::channel();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let until = async {
        // A sender that is gone asks nothing more, either.
        let _ = stopped.await;
    };
    serving::serve(files, None, until, |address| {
        let client = Client::local(address);
        let statement = statement.to_owned();
        tokio::task::spawn_blocking(move || {
            let answer = ask(&client, &statement);
            // Who waits for the answer ends with the server.
            let _ = answered.send(answer);
            drop(stop);
        });
    })?;
    let answer = answer.try_recv();
    answer.map_err(|_| CliError::new(ExitStatus::Interrupted, "interrupted before the answer"))?
}

#[cfg(not(feature = "server"))]
fn ask_files(_: &GlobalArgs, _: &SqlArgs, _: &str) -> Result<Vec<u8>, CliError> {
    Err(CliError::failed(
        "this build has no store to ask files with SQL: use one with the features server and sql",
    ))
}

/// The statement itself; `-` is standard input.
fn statement(argument: &str) -> Result<String, CliError> {
    if argument != "-" {
        return Ok(argument.to_owned());
    }
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .or_exit(ExitStatus::Failed, "standard input")?;
    Ok(text)
}

/// The rows under the names that the statement gives them.
fn table_of(answer: &Value) -> Table {
    let columns = answer["columns"].as_array().into_iter().flatten();
    let names = columns.map(|column| column["name"].as_str().unwrap_or_default().to_owned());
    let mut table = Table::with_names(names.collect());
    for row in answer["rows"].as_array().into_iter().flatten() {
        let cells = row.as_array().into_iter().flatten();
        table.push(cells.map(cell).collect());
    }
    table
}

/// Texts as they are, lists and maps as JSON, null as nothing.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rows_stand_under_the_names_of_the_statement() {
        let answer = json!({
            "columns": [{"name": "function_name"}, {"name": "Sum"}],
            "rows": [["main", 5], [null, 1.5], [["a", "b"], true]],
        });
        assert_eq!(
            table_of(&answer).to_text(),
            "function_name  Sum\nmain           5\n               1.5\n[\"a\",\"b\"]      true\n"
        );
    }
}
