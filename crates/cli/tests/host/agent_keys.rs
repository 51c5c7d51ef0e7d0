//! Keys of the configuration that change what the agent does: two run side by side, one as it comes and one with all
//! of these keys, and each key has its effect.

use std::net::TcpListener;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::support;
use crate::support::Program;
use crate::support::Running;
use serde_json::Value;
use serde_json::json;

/// How long two windows may take: without a cache all debug information of the host's programs is read for each anew.
const TWO_WINDOWS: Duration = Duration::from_secs(300);

/// A key, what it is set to, and what is looked at.
struct Effect {
    variable: &'static str,
    value: &'static str,
    of: fn(&Seen) -> Value,
    /// Without the key, and with it.
    expected: [Value; 2],
}

/// One of the two, as it can be seen from outside.
struct Seen {
    status: Value,
    functions: String,
    has_thread_names: bool,
    answers_on_demand: bool,
}

fn start(folder: &Path, name: &str, listen: &str, variables: &[(&str, &str)]) -> Running {
    let mut command = support::candela();
    command.args(["up", "--listen", "127.0.0.1:0", "--data-dir"]);
    command.arg(folder.join(name));
    command.env("CANDELA_AGENT__ON_DEMAND__LISTEN", listen);
    command.env("CANDELA_AGENT__RATE", "199");
    command.env("CANDELA_AGENT__INTERVAL", "2s");
    command.envs(variables.iter().copied());
    Running::launch(&mut command).unwrap_or_else(|messages| panic!("{messages}"))
}

/// What it says once its second window is there: symbols are in the cache by then.
fn look(running: &Running) -> Seen {
    let top = |query: &str| {
        let path = format!("/api/v1/top?type=cpu&from=now-5m&limit=1000&query={query}");
        support::get_json(&running.url(&path))
    };
    let (status, functions) = support::within(TWO_WINDOWS, "two windows have names", || {
        let status = support::get_json(&running.url("/api/v1/status"));
        let profiles = status["agent"]["delivery"]["profiles"].as_u64()?;
        let functions = top("%7Bservice_name%3D%22shares%22%7D")["functions"].to_string();
        // What takes most and what takes least, so that each function between was there to be seen.
        let has_burner = functions.contains("burn_fifty") && functions.contains("burn_twenty");
        (profiles >= 2 && has_burner).then_some((status, functions))
    });
    let named = top("%7Bthread_name%3D%22shares%22%7D");
    Seen {
        status,
        functions,
        has_thread_names: named["total"].as_u64().is_some_and(|total| total > 0),
        answers_on_demand: running
            .on_demand_address()
            .is_some_and(|address| TcpStream::connect(address).is_ok()),
    }
}

#[test]
fn each_key_of_the_agent_has_its_effect() {
    let test = "each_key_of_the_agent_has_its_effect";
    if !support::is_root(test) {
        return;
    }
    let effects = [
        Effect {
            variable: "CANDELA_AGENT__CPU_BUDGET",
            value: "7%",
            of: |seen| seen.status["agents"][0]["cost"]["budget_ppm"].clone(),
            expected: [json!(5_000), json!(70_000)],
        },
        Effect {
            variable: "CANDELA_AGENT__TIMESTAMPS",
            value: "true",
            of: |seen| json!(seen.has_thread_names),
            expected: [json!(false), json!(true)],
        },
        Effect {
            variable: "CANDELA_AGENT__HIDE",
            value: r#"["fn:^burn_thirty$"]"#,
            of: |seen| json!(["burn_fifty", "burn_thirty"].map(|it| seen.functions.contains(it))),
            expected: [json!([true, true]), json!([true, false])],
        },
        Effect {
            variable: "CANDELA_AGENT__ON_DEMAND__ENABLED",
            value: "false",
            of: |seen| json!(seen.answers_on_demand),
            expected: [json!(true), json!(false)],
        },
    ];
    let folder = tempfile::tempdir().unwrap();
    let program = support::compile_shares(folder.path());
    let _burner = Program::start(Command::new(&program).arg("100000"));
    // Who wanted this port would not start: it is ours.
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap().to_string();
    let mut variables: Vec<(&str, &str)> =
        effects.iter().map(|it| (it.variable, it.value)).collect();
    variables.push(("CANDELA_AGENT__SYMBOL_CACHE", "1KiB"));
    let usual = start(folder.path(), "usual", "127.0.0.1:0", &[]);
    let changed = start(folder.path(), "changed", &taken, &variables);
    let seen = [&usual, &changed].map(look);
    for effect in effects {
        let found = seen.each_ref().map(effect.of);
        assert_eq!(found, effect.expected, "{}", effect.variable);
    }
    // Names of the kernel are in both; those of programs are kept in one of them. In the other the table that was
    // asked last is there for a while, so one look may come too early.
    let cache_bytes = |running: &Running| {
        let status = support::get_json(&running.url("/api/v1/status"));
        status["agent"]["symbols"]["cache_bytes"].as_u64().unwrap()
    };
    support::within(TWO_WINDOWS, "a small cache keeps less", || {
        (cache_bytes(&changed) < cache_bytes(&usual)).then_some(())
    });
}
