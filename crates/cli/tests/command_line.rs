//! The command line itself: usage, configuration, exit codes. No privileges needed.

use crate::support;
use crate::support::run;
use crate::support::stderr;
use crate::support::stdout;

#[test]
fn wrong_usage_exits_with_2_and_one_clear_line() {
    let cases: [(&[&str], &str); 9] = [
        (&["frobnicate"], "unrecognized subcommand"),
        (&["query", "top", "--from"], "a value is required"),
        (
            &["config", "check", "--config", "/nonexistent.yaml"],
            "there is no such file",
        ),
        (&["record", "-F", "5000", "-a"], "5000 is not in 1..=1000"),
        (
            &["query", "top", "--server", "localhost:4040"],
            "is no URL such as http://127.0.0.1:4040",
        ),
        (
            &["query", "top", "x.pb.gz", "--from", "now-5m"],
            "cannot be used with",
        ),
        (&["record", "-a", "-d", "soon"], "is no duration such as"),
        (&["record", "-a", "-e", "heap"], "did you mean alloc?"),
        (
            &["top", "--query", r#"{service_name="api"}"#],
            "add --server URL",
        ),
    ];
    for (arguments, part) in cases {
        let output = run(arguments);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments:?}: {}",
            stderr(&output)
        );
        assert!(
            stderr(&output).contains(part),
            "{arguments:?}: {}",
            stderr(&output)
        );
        assert_eq!(stdout(&output), "", "{arguments:?}");
    }
}

#[test]
fn an_absent_server_exits_with_7_and_says_how_to_start_one() {
    let output = run(&["query", "types", "--server", support::NOBODY]);
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("start one with `candela up`"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_data_directory_that_cannot_be_made_names_the_flag() {
    let directory = "/dev/null/data";
    let output = run(&["server", "--listen", "127.0.0.1:0", "--data-dir", directory]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let message = stderr(&output);
    for part in [directory, "choose another --data-dir"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn config_show_names_the_origin_of_each_value() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("candela.yaml");
    std::fs::write(&file, "agent:\n  rate: 49\n").unwrap();
    let output = support::candela()
        .args(["config", "show", "--json"])
        .env("CANDELA_CONFIG", &file)
        .env("CANDELA_STORE__SYNC", "os")
        .output()
        .unwrap();
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(shown["schema"], "candela/config/v1");
    let of = |key: &str| {
        let keys = shown["keys"].as_array().unwrap();
        let entry = keys.iter().find(|entry| entry["key"] == key).unwrap();
        (
            entry["value"].as_str().unwrap().to_owned(),
            entry["origin"].as_str().unwrap().to_owned(),
        )
    };
    assert_eq!(
        of("agent.rate"),
        ("49".to_owned(), format!("file {}", file.display()))
    );
    assert_eq!(
        of("store.sync"),
        (
            "os".to_owned(),
            "environment CANDELA_STORE__SYNC".to_owned()
        )
    );
    assert_eq!(of("server.listen").1, "default");
}

#[test]
fn what_config_show_prints_is_a_valid_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("candela.yaml");
    let shown = |file: Option<&std::path::Path>, json: bool| {
        let mut command = support::candela();
        command
            .args(["config", "show"])
            .args(json.then_some("--json"));
        match file {
            Some(file) => command.env("CANDELA_CONFIG", file),
            None => command
                .env("CANDELA_AGENT__LABELS", "zone=a: b,rack=007")
                .env("CANDELA_AGENT__SERVICE_RULES", r"api=^/srv/api\b.*#\d+")
                .env("CANDELA_SERVER__HTTP_PREFIX", "/a,/b")
                .env("CANDELA_SERVER__LISTEN", "[::1]:4040")
                .env("CANDELA_AGENT__TABLE_BUDGET", "1234567")
                .env("CANDELA_STORE__FLUSH_INTERVAL", "90s"),
        };
        stdout(&command.output().unwrap())
    };
    std::fs::write(&file, shown(None, false)).unwrap();
    let output = run(&["config", "check", "--config", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let values = |text: String| {
        let shown: serde_json::Value = serde_json::from_str(&text).unwrap();
        let keys = shown["keys"].as_array().unwrap().clone();
        let values = keys
            .into_iter()
            .map(|key| (key["key"].clone(), key["value"].clone()));
        values.collect::<Vec<_>>()
    };
    assert_eq!(
        values(shown(Some(&file), true)),
        values(shown(None, true)),
        "the file means what it was made from"
    );
}

#[test]
fn config_check_builds_what_the_commands_build() {
    let output = support::candela()
        .args(["config", "check"])
        .env("CANDELA_AGENT__SERVICE_RULES", "api=(")
        .env("CANDELA_AGENT__SERVER", "http://candela example")
        .env("CANDELA_SERVER__HTTP_PREFIX", "/a b")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    for part in [
        "agent.service_rules: service rule pattern \"(\"",
        "agent.server: server address",
        "server.http_prefix \"/a b\" is no path",
    ] {
        assert!(
            stderr(&output).contains(part),
            "{part}: {}",
            stderr(&output)
        );
    }
    for interval in ["500ms", "1h"] {
        let output = support::candela()
            .args(["config", "check"])
            .env("CANDELA_AGENT__INTERVAL", interval)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{interval}");
        assert!(
            stderr(&output).contains("is not between 1s and 10m"),
            "{}",
            stderr(&output)
        );
    }
}

#[test]
fn rows_that_a_table_leaves_out_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("many.folded");
    let stacks: String = (0..40).map(|row| format!("main;row{row} 1\n")).collect();
    std::fs::write(&file, stacks).unwrap();
    let file = file.to_str().unwrap();
    for (command, format) in [("top", "csv"), ("top", "markdown"), ("profile", "csv")] {
        let output = run(&["query", command, file, "--format", format]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        // The rows and `main`.
        assert_eq!(
            stderr(&output),
            "30 of 41 rows; --limit 0 prints all\n",
            "{command} {format}"
        );
        let quiet = run(&["query", command, file, "--format", format, "-q"]);
        assert_eq!(stderr(&quiet), "");
    }
    let all = run(&["query", "top", file, "--format", "csv", "--limit", "0"]);
    assert_eq!(stderr(&all), "");
}

#[test]
fn a_tree_is_written_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("some.folded");
    std::fs::write(&file, "main;read 3\nmain;write 4\n").unwrap();
    let output = run(&["query", "tree", file.to_str().unwrap(), "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["schema"], "candela/tree/v1");
    assert_eq!(answer["total"], 7);
    let main = &answer["tree"]["children"][0];
    assert_eq!(main["name"], "main");
    assert_eq!(main["children"][0]["name"], "write");
    assert_eq!(main["children"][0]["self"], 4);
}

#[test]
fn filters_of_a_file_are_applied_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("some.folded");
    std::fs::write(&path, "main;read;copy 3\nmain;write;copy 4\nidle 9\n").unwrap();
    let file = path.to_str().unwrap();
    let total = |filters: &[&str]| {
        let arguments = ["query", "tree", file, "--format", "json"];
        let output = run(&[&arguments, filters].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        (
            answer["total"].clone(),
            answer["tree"]["children"][0]["name"].clone(),
        )
    };
    assert_eq!(total(&["--ignore", "^idle$"]), (7.into(), "main".into()));
    assert_eq!(
        total(&["--focus", "read", "--hide", "main|read"]),
        (3.into(), "copy".into())
    );
    let nothing = run(&["query", "top", file, "--hide", "read", "--focus", "read"]);
    assert_eq!(nothing.status.code(), Some(5), "{}", stderr(&nothing));
    let wrong = run(&["query", "top", file, "--focus", "("]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        stderr(&wrong).contains("focus=(: unclosed group"),
        "{}",
        stderr(&wrong)
    );
}

#[test]
fn completions_and_manual_pages_are_made() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(
            stdout(&run(&["completions", shell])).contains("candela"),
            "{shell}"
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let output = run(&["man", folder.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let page = std::fs::read_to_string(folder.path().join("candela-query-top.1")).unwrap();
    assert!(page.contains("Functions by own cost"));
}

#[test]
fn version_tells_what_the_build_contains() {
    let output = run(&["version", "--json"]);
    let version: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(version["schema"], "candela/version/v1");
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
}

mod host {
    use super::*;

    /// Root in a mount namespace of its own sees the kernel's type information or does not.
    #[test]
    fn a_kernel_without_type_information_is_told() {
        let test = "a_kernel_without_type_information_is_told";
        if !support::is_root(test) || !support::has_tool(test, "unshare") {
            return;
        }
        let without_btf = |arguments: &str| {
            let script = format!(
                "mount -t tmpfs none /sys/kernel/btf && exec {} {arguments}",
                env!("CARGO_BIN_EXE_candela")
            );
            let mut command = std::process::Command::new("unshare");
            // As for every other program under test: no variable of whoever runs the tests decides them.
            command.env_clear();
            command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
            let output = command.args(["--mount", "sh", "-c", &script]).output();
            output.expect("unshare starts")
        };
        let recording = without_btf("record -a -d 1s");
        assert_eq!(recording.status.code(), Some(6), "{}", stderr(&recording));
        let told = "this kernel has no BTF (/sys/kernel/btf/vmlinux is missing); \
                    use a kernel built with CONFIG_DEBUG_INFO_BTF=y";
        assert!(stderr(&recording).contains(told), "{}", stderr(&recording));
        let doctor = without_btf("doctor");
        assert!(stdout(&doctor).contains("CONFIG_DEBUG_INFO_BTF=y"));
        let report = without_btf("doctor --json");
        assert_eq!(report.status.code(), Some(6), "{}", stderr(&report));
        let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
        let checks = report["checks"].as_array().unwrap();
        let btf = checks.iter().find(|check| check["name"] == "btf");
        assert_eq!(btf.unwrap()["ok"], false, "{report:#}");
    }

    #[test]
    fn doctor_reports_every_check_with_a_fix_for_what_fails() {
        let output = run(&["doctor", "--json"]);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["schema"], "candela/doctor/v1");
        let checks = report["checks"].as_array().unwrap();
        assert!(checks.len() >= 5, "{checks:?}");
        for check in checks {
            let is_ok = check["ok"].as_bool().unwrap();
            assert!(
                is_ok || !check["fix"].as_str().unwrap().is_empty(),
                "{check}"
            );
        }
    }

    #[test]
    fn the_doctor_looks_at_a_relative_data_directory_where_it_is() {
        // Root may write everywhere, so a folder that nobody can make files in takes the place of `.`.
        let output = support::candela()
            .args(["doctor", "--json"])
            .current_dir("/proc")
            .env("CANDELA_DATA_DIR", "data")
            .output()
            .unwrap();
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let check = report["checks"].as_array().unwrap().iter();
        let mut check = check.filter(|check| check["name"] == "data_directory");
        assert_eq!(check.next().unwrap()["ok"], false);
    }
}
