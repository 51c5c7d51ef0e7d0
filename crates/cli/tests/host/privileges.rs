//! What each capability is for, found by taking it away: `candela` runs as a user of its own, and what it records
//! as another user, from a folder that only this one may enter.

use std::os::unix::fs::chown;
use std::process::Command;

use crate::support;
use crate::support::Program;
use crate::support::Running;
use crate::users::OTHER;
use crate::users::Place;
use crate::users::RECORDER;
use crate::users::burn;
use crate::users::candela;
use crate::users::cannot_run;
use crate::users::run;
use crate::users::started;
use candela_agent::CAPABILITIES;

/// The functions of the recorded program.
const FUNCTIONS: [&str; 3] = ["burn_fifty", "burn_thirty", "burn_twenty"];

fn all() -> Vec<&'static str> {
    CAPABILITIES.iter().map(|it| it.short_name).collect()
}

fn all_but(name: &str) -> Vec<&'static str> {
    let all = all();
    assert!(all.contains(&name), "{name}");
    all.into_iter().filter(|it| *it != name).collect()
}

/// Folded stacks of a process, half a second of them.
fn record(capabilities: &[&str], pid: u32) -> String {
    let pid = pid.to_string();
    let arguments = [
        "record", "-p", &pid, "-d", "500ms", "-F", "499", "--to", "folded",
    ];
    let output = run(capabilities, &arguments);
    support::expect_code(&output, 0);
    support::stdout(&output)
}

#[test]
fn another_users_program_is_recorded_without_root() {
    let test = "another_users_program_is_recorded_without_root";
    if cannot_run(test) {
        return;
    }
    let place = Place::new();
    let program = place.shares_of_other();
    let burner = burn(&program, OTHER);
    let folded = record(&all(), burner.pid());
    for name in FUNCTIONS {
        assert!(folded.contains(name), "{folded}");
    }

    let folded = record(&all_but("cap_dac_read_search"), burner.pid());
    assert!(is_nameless(&folded), "{folded}");
    // A deleted binary has no path: the kernel gives it to those who may read the process's mappings.
    std::fs::remove_file(&program).unwrap();
    assert!(record(&all(), burner.pid()).contains("burn_fifty"));
    for name in [
        "cap_sys_ptrace",
        "cap_dac_read_search",
        "cap_checkpoint_restore",
    ] {
        let folded = record(&all_but(name), burner.pid());
        assert!(is_nameless(&folded), "without {name}: {folded}");
    }
}

/// A file system of a container is not ours: its binaries are found by way of the process.
#[test]
fn a_program_of_another_mount_namespace_is_recorded_without_root() {
    let test = "a_program_of_another_mount_namespace_is_recorded_without_root";
    if cannot_run(test) {
        return;
    }
    let place = Place::new();
    let program = support::compile_shares(place.folder.path());
    let inside = place.private().join("inside");
    let mut command = support::in_clean_environment("unshare");
    let script = r#"
        mount -t tmpfs -o mode=755 none "$(dirname "$1")" && cp "$0" "$1" &&
        exec setpriv --reuid "$2" --regid "$2" --clear-groups --inh-caps=-all --bounding-set=-all "$1" 100000"#;
    command.args(["--mount", "--propagation", "private", "sh", "-c", script]);
    command.arg(&program).arg(&inside).arg(OTHER.to_string());
    let burner = started(&mut command, &inside);
    assert!(!inside.try_exists().unwrap(), "it is there alone");
    assert!(record(&all(), burner.pid()).contains("burn_fifty"));
    let folded = record(&all_but("cap_sys_ptrace"), burner.pid());
    assert!(is_nameless(&folded), "{folded}");
}

/// There are samples, and none has a function of the program.
fn is_nameless(folded: &str) -> bool {
    !folded.is_empty() && !folded.contains("burn_")
}

#[test]
fn what_bpf_needs_is_named_when_it_is_missing() {
    let test = "what_bpf_needs_is_named_when_it_is_missing";
    if cannot_run(test) {
        return;
    }
    for capability in CAPABILITIES.iter().filter(|it| it.is_required) {
        let output = run(
            &all_but(capability.short_name),
            &["record", "-a", "-d", "1s"],
        );
        support::expect_code(&output, 6);
        let told = format!("capability {} is missing", capability.name);
        let stderr = support::stderr(&output);
        assert!(stderr.contains(&told), "{stderr}");
        assert!(stderr.contains(&all().join(",")), "what to grant: {stderr}");
    }
}

#[test]
fn the_doctor_names_each_missing_capability_and_what_mends_it() {
    let test = "the_doctor_names_each_missing_capability_and_what_mends_it";
    if cannot_run(test) {
        return;
    }
    let checks = |capabilities: &[&str]| {
        let output = run(capabilities, &["doctor", "--json"]);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let checks = report["checks"].as_array().unwrap().clone();
        let failing = checks.into_iter().filter(|check| check["ok"] == false);
        failing.collect::<Vec<_>>()
    };
    let names = |checks: &[serde_json::Value]| {
        let names = checks
            .iter()
            .map(|it| it["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    let of_host = names(&checks(&all()));
    for capability in CAPABILITIES {
        assert!(
            !of_host.contains(&capability.short_name.to_owned()),
            "{of_host:?}"
        );
        let failing = checks(&all_but(capability.short_name));
        let check = failing
            .iter()
            .find(|it| it["name"] == capability.short_name);
        let check = check.unwrap_or_else(|| panic!("{}: {failing:?}", capability.name));
        let fix = check["fix"].as_str().unwrap();
        let program = std::fs::canonicalize(env!("CARGO_BIN_EXE_candela")).unwrap();
        let command = format!("=ep {}", program.display());
        assert!(fix.ends_with(&command), "{fix}");
        assert!(fix.contains(capability.short_name), "{check}");
        let shows_in = match capability.short_name {
            "cap_bpf" => "bpf_programs",
            "cap_perfmon" => "side_band",
            "cap_syslog" => "kernel_symbols",
            "cap_checkpoint_restore" => "map_files",
            _ => continue,
        };
        assert!(
            names(&failing).contains(&shows_in.to_owned()),
            "{failing:?}"
        );
    }
    let failing = checks(&[]);
    for kind in ["kind:cpu", "kind:off-cpu", "kind:uprobe"] {
        let check = failing.iter().find(|it| it["name"] == kind);
        let check = check.unwrap_or_else(|| panic!("{kind}: {failing:?}"));
        assert!(
            check["fix"].as_str().unwrap().contains("cap_bpf"),
            "{check}"
        );
    }
}

/// The level bounds who has no capability, and nobody else.
#[test]
fn the_doctor_tells_the_level_of_perf_events_to_those_whom_it_bounds() {
    let test = "the_doctor_tells_the_level_of_perf_events_to_those_whom_it_bounds";
    if cannot_run(test) {
        return;
    }
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    let level: i32 = level.trim().parse().unwrap();
    for (capabilities, is_ok) in [(all(), true), (Vec::new(), level <= 1)] {
        let output = run(&capabilities, &["doctor", "--json"]);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let mut checks = report["checks"].as_array().unwrap().iter();
        let check = checks
            .find(|it| it["name"] == "perf_event_paranoid")
            .unwrap();
        assert_eq!(check["ok"], is_ok, "{check}");
        let detail = check["detail"].as_str().unwrap();
        assert!(detail.contains(&format!("= {level},")), "{check}");
        let fix = check["fix"].as_str().unwrap();
        assert_eq!(fix.contains("perf_event_paranoid=1"), !is_ok, "{check}");
    }
}

#[test]
fn kernel_functions_have_names_with_one_capability() {
    let test = "kernel_functions_have_names_with_one_capability";
    if cannot_run(test) {
        return;
    }
    let mut reader = Command::new("dd");
    reader.args(["if=/dev/zero", "of=/dev/null", "bs=1"]);
    let reader = Program::start(&mut reader);
    let named = |folded: &str| folded.contains("read_zero") || folded.contains("ksys_read");
    assert!(named(&record(&all(), reader.pid())));
    let folded = record(&all_but("cap_syslog"), reader.pid());
    assert!(!folded.is_empty() && !named(&folded), "{folded}");
}

#[test]
fn all_kinds_of_the_agent_are_recorded_with_exactly_these_capabilities() {
    let test = "all_kinds_of_the_agent_are_recorded_with_exactly_these_capabilities";
    if cannot_run(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    chown(folder.path(), Some(RECORDER), Some(RECORDER)).unwrap();
    let file = folder.path().join("all.pb.gz");
    let record = |kinds: &str| {
        let arguments = [
            "record",
            "-F",
            "499",
            "-e",
            kinds,
            "-o",
            file.to_str().unwrap(),
        ];
        let mut command = candela(&all(), &arguments);
        command.args([
            "--",
            "sh",
            "-c",
            "sleep 0.1; seq 200000 | sort -R >/dev/null",
        ]);
        command.env("TMPDIR", folder.path()).output().unwrap()
    };
    let output =
        record("cpu,off-cpu,lock,runq,fault,growth,io,kernel-lock,tracepoint:sched:sched_switch");
    support::expect_code(&output, 0);
    let stderr = support::stderr(&output);
    assert!(
        !stderr.contains("without BPF") && !stderr.contains("CAP_"),
        "{stderr}"
    );
    let types = support::stdout(&support::run(&["query", "types", file.to_str().unwrap()]));
    for expected in [
        "process_cpu",
        "off_cpu",
        "page_faults",
        "memory_growth",
        "sched_switch",
    ] {
        assert!(types.contains(expected), "{expected}: {types}");
    }

    // Recordings that watch functions by perf events need root, and say so beside what works.
    let output = record("cpu,alloc,uprobe:/proc/self/exe:main");
    support::expect_code(&output, 0);
    let stderr = support::stderr(&output);
    for told in ["without uprobe:", "CAP_SYS_ADMIN is missing"] {
        assert!(stderr.contains(told), "{stderr}");
    }
    if allocations_need_root() {
        assert!(stderr.contains("without alloc: "), "{stderr}");
        support::expect_code(&record("alloc"), 6);
    } else {
        assert!(!stderr.contains("without alloc: "), "{stderr}");
        support::expect_code(&record("alloc"), 0);
        let types = support::stdout(&support::run(&["query", "types", file.to_str().unwrap()]));
        assert!(types.contains("memory:alloc_space"), "{types}");
    }
    support::expect_code(&record("uprobe:/proc/self/exe:main"), 6);
}

/// Before Linux 6.6.
fn allocations_need_root() -> bool {
    let checks = candela_agent::capabilities();
    let probes = checks.iter().find(|check| check.name == "probes").unwrap();
    probes.detail.contains("the kind alloc")
}

#[test]
fn the_agent_tells_allocations_of_another_users_service_without_root() {
    let test = "the_agent_tells_allocations_of_another_users_service_without_root";
    if cannot_run(test) || allocations_need_root() {
        return;
    }
    let place = Place::new();
    let folder = place.folder.path();
    let printed = support::run(&["preload", folder.to_str().unwrap()]);
    support::expect_code(&printed, 0);
    let variable = support::stdout(&printed);
    let (name, library) = variable.trim_end().split_once('=').unwrap();
    assert_eq!(name, "LD_PRELOAD");

    let (source, program) = (folder.join("hoard.c"), folder.join("hoard"));
    let text = "#include <stdlib.h>
        #include <unistd.h>
        __attribute__((noinline)) void hoard(void) { void *volatile more = malloc(100000); (void)more; }
        int main(void) { for (;;) { hoard(); usleep(2000); } }";
    std::fs::write(&source, text).unwrap();
    let mut compiler = Command::new("gcc");
    compiler.args(["-O2", "-o"]).args([&program, &source]);
    assert!(compiler.status().unwrap().success());
    let mut service = support::in_clean_environment("setpriv");
    let user = OTHER.to_string();
    service.args(["--reuid", &user, "--regid", &user, "--clear-groups"]);
    service.args(["--inh-caps=-all", "--bounding-set=-all"]);
    let _service = started(service.arg(&program).env(name, library), &program);

    let data = folder.join("server");
    let data = data.to_str().unwrap();
    let server = Running::start(&["server", "--listen", "127.0.0.1:0", "--data-dir", data]);
    let own_data = folder.join("agent");
    std::fs::create_dir(&own_data).unwrap();
    chown(&own_data, Some(RECORDER), Some(RECORDER)).unwrap();
    let url = server.url("");
    let mut agent = candela(&all(), &["agent", "--server", &url, "--data-dir"]);
    agent.arg(&own_data).env("CANDELA_AGENT__KINDS", "alloc");
    let _agent = Program::start(&mut agent);
    for profile_type in ["memory:alloc_space", "memory:inuse_space"] {
        support::eventually("allocations arrive", || {
            let query = "/api/v1/top?query=%7Bservice_name%3D%22hoard%22%7D&from=now-5m";
            let url = server.url(&format!("{query}&type={profile_type}"));
            let (status, body) = support::try_get(&url)?;
            let body = String::from_utf8_lossy(&body).into_owned();
            (status == 200 && body.contains("\"hoard\"")).then_some(())
        });
    }
}

#[test]
fn the_agent_sends_another_users_functions_without_root() {
    let test = "the_agent_sends_another_users_functions_without_root";
    if cannot_run(test) {
        return;
    }
    let place = Place::new();
    let program = place.shares_of_other();
    let _burner = burn(&program, OTHER);
    let data = place.folder.path().join("server");
    let server = Running::start(&[
        "server",
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        data.to_str().unwrap(),
    ]);
    let own_data = place.folder.path().join("agent");
    std::fs::create_dir(&own_data).unwrap();
    chown(&own_data, Some(RECORDER), Some(RECORDER)).unwrap();
    let url = server.url("");
    let arguments = ["agent", "--server", &url, "--listen", "127.0.0.1:0"];
    let mut agent = candela(&all(), &arguments);
    agent.arg("--data-dir").arg(&own_data);
    agent.env("CANDELA_AGENT__INTERVAL", "1s");
    agent.env("CANDELA_AGENT__KINDS", "cpu,off-cpu,lock,fault");
    let agent = Running::launch_agent(&mut agent).unwrap();
    let listen = agent.on_demand_address().unwrap();
    support::eventually("named functions arrive", || {
        let url = server.url("/api/v1/top?query=%7Bservice_name%3D%22shares%22%7D&from=now-5m");
        let (status, body) = support::try_get(&url)?;
        let body = String::from_utf8_lossy(&body).into_owned();
        (status == 200 && body.contains("burn_fifty")).then_some(())
    });
    // It has no server beside it, so it tells itself what it costs, and what it may not know.
    let metrics = support::eventually("run times are found to be another right's", || {
        let (status, body) = support::try_get(&format!("http://{listen}/metrics"))?;
        let body = String::from_utf8_lossy(&body).into_owned();
        let is_told = body.contains("\ncandela_agent_bpf_measured 0\n");
        (status == 200 && is_told).then_some(body)
    });
    for name in [
        "candela_agent_cpu_seconds_total{thread=\"candela-sampler\"}",
        "candela_agent_events_total{kind=\"cpu\"}",
        "candela_agent_drops_total{reason=\"spool_full\"}",
    ] {
        assert!(metrics.contains(&format!("\n{name} ")), "{name}: {metrics}");
    }
    support::eventually("the server hears of it, too", || {
        let told = support::run(&["doctor", "--agent", "--server", &url]);
        support::expect_code(&told, 0);
        let told = support::stdout(&told);
        told.contains("not measured: needs CAP_SYS_ADMIN")
            .then_some(())
    });
}

/// Where the kernel does not measure it, all that runs often has a price, and its budget is kept by that.
#[test]
fn what_is_not_measured_is_counted_by_the_agent() {
    let test = "what_is_not_measured_is_counted_by_the_agent";
    if cannot_run(test) {
        return;
    }
    let place = Place::new();
    let own_data = place.folder.path().join("agent");
    std::fs::create_dir(&own_data).unwrap();
    chown(&own_data, Some(RECORDER), Some(RECORDER)).unwrap();
    // Nobody is there: what it costs does not depend on it.
    let server = support::NOBODY;
    let arguments = ["agent", "--server", server, "--listen", "127.0.0.1:0"];
    let mut agent = candela(&all(), &arguments);
    agent.arg("--data-dir").arg(&own_data);
    agent.env("CANDELA_AGENT__INTERVAL", "1s");
    agent.env("CANDELA_AGENT__KINDS", "cpu,off-cpu,fault,growth");
    let switches_before = switches_of_host();
    let agent = Running::launch_agent(&mut agent).unwrap();
    let listen = agent.on_demand_address().unwrap();
    let metrics = || {
        let (status, body) = support::try_get(&format!("http://{listen}/metrics"))?;
        let is_told = |body: &String| body.contains("\ncandela_agent_bpf_measured 0\n");
        let body = String::from_utf8_lossy(&body).into_owned();
        Some(body).filter(|body| status == 200 && is_told(body))
    };
    let value = |metrics: &str, name: &str, program: &str| {
        let name = format!("candela_agent_bpf_{name}{{program=\"{program}\"}} ");
        let line = metrics.lines().find_map(|line| line.strip_prefix(&name));
        // Before the end of the first window there are none.
        line.map_or(0.0, |value| value.parse::<f64>().unwrap())
    };
    let first = support::eventually("run times are assumed", metrics);
    let runs_before = value(&first, "runs_total", "off_cpu_switch");
    let own_switches = ping_pong(5_000);
    let others = ["fault_in_user", "growth_begin", "growth_end", "sample_cpu"];
    let last = support::eventually("its switches are counted, and what programs do", || {
        // Each program faults and maps.
        let program = Command::new("true").status();
        assert!(program.unwrap().success());
        let metrics = metrics()?;
        let runs = value(&metrics, "runs_total", "off_cpu_switch");
        let mut runs_of_others = others.iter().map(|it| value(&metrics, "runs_total", it));
        let is_counted = runs - runs_before >= own_switches && runs_of_others.all(|it| it > 0.0);
        is_counted.then_some(metrics)
    });
    let runs = value(&last, "runs_total", "off_cpu_switch");
    let all_switches = switches_of_host() - switches_before;
    assert!(runs <= all_switches, "{runs} of {all_switches} switches");
    let seconds = value(&last, "seconds_total", "off_cpu_switch");
    assert!(seconds >= runs * 110e-9, "{seconds} s for {runs} runs");
    for program in others {
        assert!(
            value(&last, "seconds_total", program) > 0.0,
            "{program}: {last}"
        );
    }
}

/// Two threads that wait for each other in turns, so often; how often they left their CPUs for it.
fn ping_pong(rounds: u32) -> f64 {
    use std::io::Read;
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    let (mut near, mut far) = UnixStream::pair().unwrap();
    let echo = std::thread::spawn(move || {
        let mut byte = [0];
        while far.read(&mut byte).unwrap() == 1 {
            far.write_all(&byte).unwrap();
        }
        own_waits()
    });
    let before = own_waits();
    let mut byte = [0];
    for _ in 0..rounds {
        near.write_all(&byte).unwrap();
        near.read_exact(&mut byte).unwrap();
    }
    drop(near);
    let waits = own_waits() - before + echo.join().unwrap();
    assert!(waits > 1_000.0, "{waits} switches of {rounds} rounds");
    waits
}

/// How often the calling thread has waited.
fn own_waits() -> f64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let mut lines = status.lines();
    let count = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count.unwrap().trim().parse().unwrap()
}

/// How often any CPU has changed between threads since the host started.
fn switches_of_host() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let count = stat.lines().find_map(|line| line.strip_prefix("ctxt "));
    count.unwrap().parse().unwrap()
}
