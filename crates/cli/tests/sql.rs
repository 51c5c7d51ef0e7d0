//! `candela query sql` against the real program.

use crate::support;
use crate::support::Running;

#[cfg(not(feature = "sql"))]
#[test]
fn a_server_without_sql_is_told_apart_from_a_wrong_query() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().to_str().unwrap();
    let running = Running::start(&["server", "--listen", "127.0.0.1:0", "--data-dir", data_dir]);
    let server = running.url("");
    let output = support::run(&["query", "sql", "SELECT 1", "--server", &server]);
    assert_eq!(output.status.code(), Some(1));
    let message = support::stderr(&output);
    assert!(message.contains("this build has no SQL"), "{message}");
}

#[cfg(feature = "sql")]
mod with_sql {
    use std::collections::BTreeMap;
    use std::io::Write;
    use std::path::Path;
    use std::process::Command;
    use std::process::Output;
    use std::process::Stdio;

    use serde_json::Value;
    use serde_json::json;

    use super::Running;
    use super::support;

    const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
    const WALL: &str = "wall:wall:nanoseconds:wall:nanoseconds";

    /// What the window offers to copy has so many rows at most.
    const COPIED_ROWS: usize = 100;

    /// A server that has two stacks.
    fn server(folder: &tempfile::TempDir) -> Running {
        let data_dir = folder.path().to_str().unwrap();
        let running =
            Running::start(&["server", "--listen", "127.0.0.1:0", "--data-dir", data_dir]);
        let url = running.url("/api/v1/ingest?service=demo");
        let stacks = b"main;read;parse 3\nmain;write 4\n";
        assert_eq!(support::try_post(&url, stacks).unwrap().0, 200);
        running
    }

    const HOT: &str = "SELECT function_name, sum(value) AS own FROM samples
        JOIN stack_nodes USING (block_id, stack_id) JOIN locations USING (block_id, location_id)
        GROUP BY function_name ORDER BY own DESC";

    fn ask(running: &Running, arguments: &[&str]) -> Output {
        let server = running.url("");
        let all = ["query", "sql", "--server", &server];
        support::run(&[&all, arguments].concat())
    }

    #[test]
    fn a_statement_prints_a_table() {
        let folder = tempfile::tempdir().unwrap();
        let running = server(&folder);
        let output = ask(&running, &[HOT]);
        assert!(output.status.success(), "{}", support::stderr(&output));
        let table = "function_name  own\nwrite          4\nparse          3\n";
        assert_eq!(support::stdout(&output), table);

        let output = ask(&running, &[HOT, "--format", "csv"]);
        assert_eq!(
            support::stdout(&output),
            "function_name,own\nwrite,4\nparse,3\n"
        );

        let output = ask(&running, &[HOT, "--format", "json"]);
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(json["schema"], "candela/sql/v1");
        assert_eq!(json["rows"][0], serde_json::json!(["write", 4]));

        let output = ask(&running, &[HOT, "--limit", "1"]);
        assert_eq!(
            support::stdout(&output),
            "function_name  own\nwrite          4\n"
        );
        assert!(support::stderr(&output).contains("1 of 2 rows"));
    }

    #[test]
    fn a_statement_may_come_from_standard_input() {
        let folder = tempfile::tempdir().unwrap();
        let running = server(&folder);
        let server = running.url("");
        let mut child = support::candela()
            .args(["query", "sql", "-", "--format", "csv", "--server", &server])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin
            .write_all(b"SELECT count(*) AS n\nFROM samples\n")
            .unwrap();
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        assert_eq!(support::stdout(&output), "n\n2\n");
    }

    #[test]
    fn a_wrong_statement_is_a_usage_error() {
        let folder = tempfile::tempdir().unwrap();
        let running = server(&folder);
        let output = ask(&running, &["SELECT nothing FROM samples"]);
        assert_eq!(output.status.code(), Some(2));
        let message = support::stderr(&output);
        assert!(
            message.contains("nothing") && message.lines().count() == 1,
            "{message}"
        );
        let output = ask(&running, &["DROP TABLE samples"]);
        assert_eq!(output.status.code(), Some(2));
        assert!(support::stderr(&output).contains("DROP is not allowed"));
    }

    /// What the window copies for each of these selections.
    fn statements_of_the_window(selections: &[Value]) -> Vec<String> {
        let ui = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui");
        let output = Command::new("node")
            .arg("e2e/sql-statement.mjs")
            .args(selections.iter().map(Value::to_string))
            .current_dir(ui)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", support::stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// What each function spent itself, by the answer of a route.
    fn own_values(running: &Running, selection: &Value) -> BTreeMap<String, i64> {
        let percent_encoded =
            |text: &str| -> String { text.bytes().map(|byte| format!("%{byte:02X}")).collect() };
        let query = percent_encoded(selection["query"].as_str().unwrap());
        let profile_type = percent_encoded(selection["typeId"].as_str().unwrap());
        let [from, to] = ["from", "to"].map(|end| selection["range"][end].as_i64().unwrap());
        let path =
            format!("/api/v1/top?limit=0&query={query}&type={profile_type}&from={from}&to={to}");
        let answer = support::get_json(&running.url(&path));
        let mut values = BTreeMap::new();
        for row in answer["functions"].as_array().unwrap() {
            let name = row["name"].as_str().unwrap().to_owned();
            *values.entry(name).or_default() += row["self"].as_i64().unwrap();
        }
        values.retain(|_, value| *value > 0);
        values
    }

    #[test]
    fn what_the_window_copies_answers_as_the_window_does() {
        if !support::has_tool("what_the_window_copies_answers_as_the_window_does", "node") {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let data_dir = folder.path().to_str().unwrap();
        let listening = ["--listen", "127.0.0.1:0"];
        let running = Running::start(&[&["demo", "--data-dir", data_dir][..], &listening].concat());
        let services = support::get_json(&running.url("/api/v1/services?from=now-2h"));
        let end = services["end_ms"].as_i64().unwrap();
        let range = json!({"from": end - 600_000, "to": end});
        let selections = [
            (r#"{service_name="checkout"}"#, CPU),
            (
                r#"{service_name=~"c.*", version!="v2", region=~"eu.*|us.*"}"#,
                CPU,
            ),
            (r#"{service_name!~"cart|search", region!~"eu.*"}"#, CPU),
            (r#"{service_name="payments"}"#, WALL),
            ("{}", "off_cpu:off_cpu:nanoseconds:off_cpu:nanoseconds"),
        ];
        let selections =
            selections.map(|(query, id)| json!({"query": query, "typeId": id, "range": range}));
        let statements = statements_of_the_window(&selections);
        assert_eq!(statements.len(), selections.len());
        for (selection, statement) in selections.iter().zip(&statements) {
            let output = ask(&running, &[statement.as_str(), "--format", "json"]);
            assert!(
                output.status.success(),
                "{statement}\n{}",
                support::stderr(&output)
            );
            let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
            let rows = answer["rows"].as_array().unwrap();
            let expected = own_values(&running, selection);
            assert!(!expected.is_empty(), "{selection} finds nothing");
            assert_eq!(rows.len(), expected.len().min(COPIED_ROWS), "{selection}");
            for row in rows {
                let name = row[0].as_str().unwrap();
                assert_eq!(
                    row[1].as_i64(),
                    expected.get(name).copied(),
                    "{name} of {selection}"
                );
            }
        }
    }
}
