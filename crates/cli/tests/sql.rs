//! `candela query sql` against the real program.
#![cfg_attr(
    feature = "sql",
    expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")
)]

mod support;

use support::Running;

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
    use std::io::Write;
    use std::process::Output;
    use std::process::Stdio;

    use super::Running;
    use super::support;

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
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
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
}
