//! What `deploy/` and the documentation grant is what the code needs, and systemd reads the units.

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use crate::support;
use candela_agent::CAPABILITIES;

/// The units that sample.
const SAMPLING: [&str; 2] = ["candela.service", "candela-agent.service"];

const SERVER: &str = "candela-server.service";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

fn text(path: &str) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn unit(name: &str) -> String {
    text(&format!("deploy/systemd/{name}"))
}

/// The value of a setting that a unit has once.
fn setting<'a>(unit: &'a str, key: &str) -> &'a str {
    let mut values = unit
        .lines()
        .filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    let value = values
        .next()
        .unwrap_or_else(|| panic!("no {key} in {unit}"));
    assert!(values.next().is_none(), "{key} twice in {unit}");
    value
}

/// As container engines have them: without the prefix.
fn short_names() -> Vec<&'static str> {
    let names = CAPABILITIES.iter();
    names.map(|it| it.name.trim_start_matches("CAP_")).collect()
}

#[test]
fn units_grant_exactly_the_capabilities_that_the_code_names() {
    let names: Vec<&str> = CAPABILITIES.iter().map(|it| it.name).collect();
    for name in SAMPLING {
        let unit = unit(name);
        for key in ["AmbientCapabilities", "CapabilityBoundingSet"] {
            let granted: Vec<&str> = setting(&unit, key).split_whitespace().collect();
            assert_eq!(granted, names, "{key} of {name}");
        }
        // By which the agent's precedence on an overloaded host needs no capability.
        assert_eq!(setting(&unit, "LimitNICE"), "-20", "{name}");
        for taking in [
            "ProtectKernelTunables",
            "ProtectKernelLogs",
            "PrivateUsers",
            "ProtectProc",
        ] {
            let is_set = unit.lines().any(|line| line.starts_with(taking));
            assert!(!is_set, "{taking} of {name} hides what the agent looks at");
        }
    }
    assert_eq!(setting(&unit(SERVER), "CapabilityBoundingSet"), "");
}

#[test]
fn units_keep_their_data_where_the_contract_says() {
    for name in SAMPLING.into_iter().chain([SERVER]) {
        let unit = unit(name);
        assert_eq!(setting(&unit, "StateDirectory"), "candela", "{name}");
        let data = "CANDELA_DATA_DIR=/var/lib/candela";
        assert_eq!(setting(&unit, "Environment"), data, "{name}");
        for (key, value) in [
            ("DynamicUser", "yes"),
            ("NoNewPrivileges", "yes"),
            ("ProtectSystem", "strict"),
        ] {
            assert_eq!(setting(&unit, key), value, "{key} of {name}");
        }
    }
}

#[test]
fn containers_are_granted_the_same() {
    let compose = text("deploy/container/compose.yaml");
    let (_, after) = compose.split_once("    cap_add:\n").unwrap();
    let added: Vec<&str> = after
        .lines()
        .map_while(|line| line.strip_prefix("      - "))
        .collect();
    assert_eq!(added, short_names());
    for line in ["    cap_drop: [ALL]", "    pid: host", "    cgroup: host"] {
        assert!(compose.lines().any(|it| it == line), "{line}: {compose}");
    }

    let docs = text("docs/deploy.md");
    let added: Vec<&str> = docs
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("--cap-add="))
        .collect();
    assert_eq!(added, short_names(), "docker run of docs/deploy.md");
    assert!(docs.contains("--cap-drop=ALL") && docs.contains("--pid=host"));
    let dockerfile = text("deploy/container/Dockerfile");
    assert!(dockerfile.contains("--no-default-features --features \"$FEATURES\""));
    assert!(dockerfile.contains("\nARG FEATURES=agent\n"));
    assert!(dockerfile.contains("+crt-static"));
    for line in dockerfile
        .lines()
        .filter(|line| line.starts_with("FROM rust:"))
    {
        let toolchain = text("Cargo.toml");
        let version = line
            .trim_start_matches("FROM rust:")
            .split('-')
            .next()
            .unwrap();
        assert!(
            toolchain.contains(&format!("rust-version = \"{version}\"")),
            "{line}"
        );
    }
}

#[test]
fn nodes_are_granted_the_same() {
    let manifest = text("deploy/kubernetes/candela-agent.yaml");
    let (_, after) = manifest.split_once("              add:\n").unwrap();
    let added: Vec<&str> = after
        .lines()
        .map_while(|line| line.strip_prefix("                - "))
        .collect();
    assert_eq!(added, short_names());
    for line in [
        "      hostPID: true",
        "      enableServiceLinks: false",
        "              drop: [ALL]",
        "            allowPrivilegeEscalation: false",
        "            readOnlyRootFilesystem: true",
    ] {
        assert!(manifest.lines().any(|it| it == line), "{line}: {manifest}");
    }
    for taken in ["privileged: true", "hostNetwork", "hostPath"] {
        assert!(!manifest.contains(taken), "{taken}: {manifest}");
    }
    // Read only, and pods only.
    let rules = manifest.split_once("\nrules:\n").unwrap().1;
    let rules = rules.split_once("\n---\n").unwrap().0;
    let wanted = "  - apiGroups: [\"\"]\n    resources: [pods]\n    verbs: [list, watch]";
    assert_eq!(rules, wanted);
}

#[test]
fn the_documentation_says_what_each_capability_is_for() {
    let docs = text("docs/deploy.md");
    let rows: Vec<&str> = docs
        .lines()
        .filter_map(|line| line.strip_prefix("| `CAP_")?.split('`').next())
        .collect();
    assert_eq!(rows, short_names(), "the table of docs/deploy.md");
}

mod host {
    use super::*;

    #[test]
    fn systemd_understands_every_setting_of_the_units() {
        let test = "systemd_understands_every_setting_of_the_units";
        if !support::has_tool(test, "systemd-analyze") {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        for name in SAMPLING.into_iter().chain([SERVER]) {
            // The program that is here: one that is missing would be the only finding.
            let unit = unit(name).replace("/usr/bin/candela", env!("CARGO_BIN_EXE_candela"));
            let command = setting(&unit, "ExecStart")
                .rsplit(' ')
                .next()
                .unwrap()
                .to_owned();
            let help = support::run(&[command.as_str(), "--help"]);
            support::expect_code(&help, 0);
            let path = folder.path().join(name);
            std::fs::write(&path, unit).unwrap();
            let output = Command::new("systemd-analyze")
                .args(["verify", "--man=no"])
                .arg(&path)
                .output()
                .unwrap();
            let findings = support::stderr(&output);
            let of_ours: Vec<&str> = findings.lines().filter(|it| it.contains(name)).collect();
            assert!(of_ours.is_empty(), "{findings}");
            assert!(output.status.success(), "{findings}");
        }
    }
}
