//! `candela query sql` over files. In a build without SQL the same command says so.

use std::fs;

use crate::support::expect_code;
use crate::support::run;
use crate::support::stderr;
use crate::support::stdout;

const STATEMENT: &str = "SELECT service_name, sum(total_value) AS total FROM profiles GROUP BY 1";

#[test]
fn files_answer_statements_without_a_server() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let files = ["one.folded", "two.folded"].map(|name| folder.path().join(name));
    for file in &files {
        fs::write(file, "main;work 30\nmain;rest 12\n").expect("the folder is there");
    }
    let files = files.iter().map(|file| file.to_str().expect("a text"));
    let mut arguments = vec!["query", "sql", STATEMENT];
    arguments.extend(files);
    arguments.extend(["--format", "csv"]);
    let output = run(&arguments);
    if cfg!(feature = "sql") {
        expect_code(&output, 0);
        let mut rows: Vec<String> = stdout(&output).lines().map(str::to_owned).collect();
        rows[1..].sort();
        assert_eq!(
            rows,
            ["service_name,total", "one.folded,42", "two.folded,42"]
        );
    } else {
        expect_code(&output, 1);
        assert!(
            stderr(&output).contains("this build has no SQL"),
            "{}",
            stderr(&output)
        );
    }
}
