//! `candela config import`: configurations of Telegen become ones that `candela config check` accepts.
//! `UPDATE_GOLDEN=1` writes the expected files anew.

use crate::support;
use std::path::Path;
use std::path::PathBuf;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/imports")
}

/// A text is as its file says.
#[track_caller]
fn expect_text(name: &str, text: &str) {
    let path = folder().join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, expected, "{name}");
}

#[test]
fn each_form_becomes_a_valid_configuration() {
    for (input, name) in [
        ("documented.yaml", "documented"),
        ("read.yaml", "read"),
        ("variables.env", "variables"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let result = folder.path().join("candela.yaml");
        let output = support::candela()
            .args(["config", "import", input, "-o"])
            .arg(&result)
            .current_dir(self::folder())
            .output()
            .unwrap();
        support::expect_code(&output, 0);
        let converted = std::fs::read_to_string(&result).unwrap();
        expect_text(&format!("{name}.candela.yaml"), &converted);
        expect_text(&format!("{name}.notes"), &support::stderr(&output));
        let result = result.to_str().unwrap();
        support::expect_code(&support::run(&["config", "check", "--config", result]), 0);
    }
}

#[test]
fn variables_win_over_the_file() {
    let output = support::candela()
        .args(["config", "import", "-q", "documented.yaml"])
        .env("TELEGEN_AGENT_PROFILING_SAMPLE_RATE", "7")
        .current_dir(folder())
        .output()
        .unwrap();
    support::expect_code(&output, 0);
    assert!(
        support::stdout(&output).contains("  rate: 7\n"),
        "{output:?}"
    );
    assert_eq!(support::stderr(&output), "");
}

#[test]
fn what_is_no_configuration_of_telegen_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("input");
    for (text, part) in [
        ("server:\n  listen: x\n", "nothing of Telegen's is in it"),
        ("", "nothing of Telegen's is in it"),
        ("a: [", "no valid YAML"),
        ("- a\n", "neither sections nor variables"),
    ] {
        std::fs::write(&file, text).unwrap();
        let output = support::run(&["config", "import", file.to_str().unwrap()]);
        support::expect_code(&output, 2);
        assert!(support::stderr(&output).contains(part), "{output:?}");
        assert_eq!(support::stdout(&output), "");
    }
    let missing = support::run(&["config", "import", "/nonexistent.yaml"]);
    support::expect_code(&missing, 2);
}
