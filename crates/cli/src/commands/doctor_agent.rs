//! `candela doctor --agent`: what running agents cost, what they sampled, and what they lost and why.

use std::process::ExitCode;

use bytesize::ByteSize;
use candela_model::drop_remedy;
use serde_json::Value;
use serde_json::json;

use super::client::Client;
use super::client::DEFAULT_SERVER;
use crate::args::GlobalArgs;
use crate::commands::credentials::without_user;
use crate::errors::CliError;
use crate::output;
use crate::table::Table;

/// The result code of stacks that have no user part, which are as complete as they can be.
const KERNEL_ONLY: &str = "kernel_only";

pub(crate) fn run(global: &GlobalArgs, json: bool) -> Result<ExitCode, CliError> {
    let status = Client::new(global)?.get_json("/api/v1/status", &[])?;
    let server = without_user(global.server.as_deref().unwrap_or(DEFAULT_SERVER));
    let report = report_of(&server, &status);
    if items(&report["agents"]).is_empty() {
        return Err(CliError::no_data(format!(
            "no agent has sent anything to {server}; start one with `candela agent --server {server}`"
        )));
    }
    if json {
        output::print_json(&report)?;
    } else {
        output::print_text(&as_text(&report))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What of the server's status is about agents.
fn report_of(server: &str, status: &Value) -> Value {
    let drops: Vec<Value> = items(&status["drops"])
        .iter()
        .filter_map(|drop| {
            let reason = drop["reason"].as_str()?;
            let meaning = &status["drop_reasons"][reason];
            Some(json!({
                "reason": reason,
                "count": drop["count"],
                "unit": meaning["unit"],
                "is_loss": meaning["is_loss"],
                "remedy": drop_remedy(reason)?,
            }))
        })
        .collect();
    let local = &status["agent"];
    json!({
        "schema": "candela/doctor-agent/v1",
        "server": server,
        "agents": items(&status["agents"]),
        "quality": status["quality"],
        "complete_share": complete_share(&status["quality"]),
        "drops": drops,
        // Of the agent in the server's own process; those elsewhere have theirs among `agents`, but for threads.
        "host": local["host"].as_str().unwrap_or_default(),
        "threads": local["cost"]["threads"],
        "programs": local["cost"]["programs"],
        "events": local["events"],
        "empty_profiles": items(&local["scrape"]["empty"]),
        "failure": local["failure"].as_str().unwrap_or_default(),
    })
}

/// The share of user stacks that reach the thread's entry; null when there are none.
fn complete_share(quality: &Value) -> Option<f64> {
    let count = |name: &str| quality[name].as_u64().unwrap_or_default();
    let user_stacks = count("samples").saturating_sub(count(KERNEL_ONLY));
    (user_stacks > 0).then(|| count("complete") as f64 / user_stacks as f64)
}

fn as_text(report: &Value) -> String {
    let mut sections = vec![("agents", agents_table(&report["agents"]))];
    sections.push(("where the time goes", time_table(report)));
    sections.push(("what came from the kernel", events_table(report)));
    sections.push(("how stacks ended", results_table(&report["quality"])));
    let mut text = String::new();
    for (title, table) in sections.into_iter().filter(|(_, table)| table.len() > 0) {
        text.push_str(&format!("{title}\n{}\n", table.to_text()));
    }
    if let Some(share) = report["complete_share"].as_f64() {
        let percent = share * 100.0;
        text.push_str(&format!("{percent:.2} % of user stacks are complete\n"));
    }
    text.push_str(&unmeasured_text(&report["agents"]));
    text.push_str(&missing_text(&report["agents"]));
    text.push_str(&drops_text(&report["drops"]));
    text.push_str(&empty_text(&report["empty_profiles"]));
    if let Some(failure) = report["failure"].as_str().filter(|text| !text.is_empty()) {
        text.push_str(&format!(
            "the agent of the server's host has failed: {failure}\n"
        ));
    }
    text
}

fn agents_table(agents: &Value) -> Table {
    let mut table = Table::new(&[
        "host",
        "agent",
        "state",
        "cpu",
        "budget",
        "memory",
        "bpf maps",
        "rate",
        "names known",
    ]);
    for agent in items(agents) {
        let text = |name: &str| agent[name].as_str().unwrap_or_default();
        let state = match agent["is_stale"].as_bool() {
            Some(true) => "silent",
            _ => "sends",
        };
        let mut row = vec![
            text("host").to_owned(),
            format!("{} {}", text("name"), text("version")),
            state.to_owned(),
        ];
        row.extend(cost_cells(&agent["cost"]));
        table.push(row);
    }
    table
}

/// Of agents of others nothing is known.
fn cost_cells(cost: &Value) -> [String; 6] {
    let figure = |name: &str| cost[name].as_u64().filter(|figure| *figure > 0);
    let unknown = || "-".to_owned();
    let percent = |name| {
        let millionths = figure(name)?;
        Some(format!("{:.2} % of a core", millionths as f64 / 10_000.0))
    };
    let size = |name| Some(ByteSize(figure(name)?).display().iec().to_string());
    let hertz = |millihertz: u64| format!("{}", millihertz as f64 / 1000.0);
    let rate = || {
        let (rate, configured) = (
            figure("rate_millihertz")?,
            figure("configured_rate_millihertz")?,
        );
        Some(match rate == configured {
            true => format!("{} Hz", hertz(rate)),
            false => format!("{} of {} Hz", hertz(rate), hertz(configured)),
        })
    };
    let hits = || {
        let count = |name: &str| cost[name].as_u64().unwrap_or_default();
        let hits = count("symbol_cache_hits");
        let all = hits.saturating_add(count("symbol_cache_misses"));
        (all > 0).then(|| format!("{:.1} %", hits as f64 * 100.0 / all as f64))
    };
    [
        percent("cpu_ppm").unwrap_or_else(unknown),
        percent("budget_ppm").unwrap_or_else(|| match figure("cpu_ns") {
            Some(_) => "off".to_owned(),
            None => unknown(),
        }),
        size("resident_bytes").unwrap_or_else(unknown),
        size("map_bytes").unwrap_or_else(unknown),
        rate().unwrap_or_else(unknown),
        hits().unwrap_or_else(unknown),
    ]
}

/// Threads of the server's agent, and programs in the kernel of all of them.
fn time_table(report: &Value) -> Table {
    let mut table = Table::new(&["host", "where", "what", "cpu time", "runs", "refused"]);
    let seconds = |nanoseconds: &Value| {
        let nanoseconds = nanoseconds.as_u64().unwrap_or_default();
        format!("{:.3} s", nanoseconds as f64 / 1e9)
    };
    for (name, time_ns) in entries(&report["threads"]) {
        let none = String::new();
        table.push(vec![
            local_host(report),
            "thread".to_owned(),
            name.clone(),
            seconds(time_ns),
            none.clone(),
            none,
        ]);
    }
    for (host, name, program) in figures(report, "programs") {
        let count = |name: &str| program[name].as_u64().unwrap_or_default();
        if count("estimated_runs") + count("recursion_misses") == 0 {
            continue;
        }
        table.push(vec![
            host,
            "kernel, estimated".to_owned(),
            name.clone(),
            seconds(&program["estimated_run_time_ns"]),
            count("estimated_runs").to_string(),
            count("recursion_misses").to_string(),
        ]);
    }
    table
}

fn events_table(report: &Value) -> Table {
    let mut table = Table::new(&["host", "event", "count"]);
    for (host, name, count) in figures(report, "events") {
        let count = count.as_u64().unwrap_or_default();
        if count > 0 {
            table.push(vec![host, name.clone(), count.to_string()]);
        }
    }
    table
}

/// Figures of the server's agent and of those elsewhere: host, name, figure.
fn figures<'a>(
    report: &'a Value,
    group: &'static str,
) -> impl Iterator<Item = (String, &'a String, &'a Value)> {
    let local =
        entries(&report[group]).map(move |(name, figure)| (local_host(report), name, figure));
    let others = items(&report["agents"]).iter().flat_map(move |agent| {
        let host = agent["host"].as_str().unwrap_or_default();
        entries(&agent[group]).map(move |(name, figure)| (host.to_owned(), name, figure))
    });
    local.chain(others)
}

fn local_host(report: &Value) -> String {
    report["host"].as_str().unwrap_or_default().to_owned()
}

/// What was asked of agents and cannot be had on their hosts.
fn missing_text(agents: &Value) -> String {
    let mut table = Table::new(&["host", "without", "why"]);
    for agent in items(agents) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        for missing in items(&agent["missing"]) {
            table.push(vec![
                text(&agent["host"]),
                text(&missing["what"]),
                text(&missing["reason"]),
            ]);
        }
    }
    match table.len() {
        0 => String::new(),
        _ => format!("\nwhat hosts do not give\n{}\n", table.to_text()),
    }
}

/// Of which agents the time in the kernel is a guess.
fn unmeasured_text(agents: &Value) -> String {
    let unmeasured = items(agents)
        .iter()
        .filter(|agent| agent["cost"]["programs_unmeasured"].as_u64() == Some(1));
    let lines = unmeasured.map(|agent| {
        let host = agent["host"].as_str().unwrap_or_default();
        format!(
            "run time in the kernel on {host} is not measured: needs CAP_SYS_ADMIN; it is assumed, by counts of samples and runs\n"
        )
    });
    lines.collect()
}

/// Scraped profiles that programs do not fill.
fn empty_text(profiles: &Value) -> String {
    let lines = items(profiles).iter().map(|profile| {
        let text = |name: &str| profile[name].as_str().unwrap_or_default();
        format!("{} stays empty: {}\n", text("url"), text("hint"))
    });
    lines.collect()
}

fn results_table(quality: &Value) -> Table {
    let results = entries(quality).filter(|(name, _)| *name != "samples");
    let results = results.map(|(name, count)| (name.clone(), count.clone()));
    counts_table("result", "samples", &Value::Object(results.collect()))
}

/// What is not there is left out.
fn counts_table(name: &'static str, value: &'static str, counts: &Value) -> Table {
    let mut table = Table::new(&[name, value]);
    for (name, count) in entries(counts) {
        let count = count.as_u64().unwrap_or_default();
        if count > 0 {
            table.push(vec![name.clone(), count.to_string()]);
        }
    }
    table
}

fn drops_text(drops: &Value) -> String {
    let mut table = Table::new(&["reason", "count", "lost", "what helps"]);
    for drop in items(drops) {
        let text = |name: &str| drop[name].as_str().unwrap_or_default();
        table.push(vec![
            text("reason").to_owned(),
            format!("{} {}", drop["count"], text("unit")),
            match drop["is_loss"].as_bool() {
                Some(true) => "yes".to_owned(),
                _ => "no".to_owned(),
            },
            text("remedy").to_owned(),
        ]);
    }
    match table.len() {
        0 => "nothing was lost\n".to_owned(),
        _ => format!(
            "\nwhat was lost, or is less than it could be\n{}",
            table.to_text()
        ),
    }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "agent")]
    #[test]
    fn there_is_a_word_on_every_reason() {
        for reason in candela_agent::DropReason::ALL {
            let name = reason.name();
            assert!(drop_remedy(name).is_some(), "{name} has no remedy");
        }
    }

    fn status() -> Value {
        json!({
            "agents": [
                {"host": "far", "name": "candela", "version": "9", "is_stale": false, "cost": {
                    "cpu_ns": 1_000_000_000, "cpu_ppm": 3_100, "budget_ppm": 5_000,
                    "rate_millihertz": 9_500, "configured_rate_millihertz": 19_000,
                    "resident_bytes": 64 << 20, "map_bytes": 12 << 20,
                    "programs_unmeasured": 1, "symbol_cache_hits": 99, "symbol_cache_misses": 1,
                },
                "programs": {"sample_cpu": {"estimated_run_time_ns": 1_500_000_000, "estimated_runs": 70}},
                "events": {"exec": 31},
                "missing": [{"what": "io", "reason": "this kernel has no tracepoint block_io_start"}]},
                {"host": "other", "name": "alloy", "version": "1", "is_stale": true},
            ],
            "quality": {"samples": 110, "complete": 99, "truncated": 1, "kernel_only": 10},
            "drops": [
                {"reason": "spool_full", "count": 2},
                {"reason": "refused: too_old", "count": 7},
            ],
            "drop_reasons": {
                "spool_full": {"unit": "profiles", "is_loss": true},
                "refused: too_old": {"unit": "profiles", "is_loss": true},
            },
        })
    }

    #[test]
    fn costs_losses_and_what_helps_are_told() {
        let report = report_of("http://server", &status());
        assert_eq!(report["schema"], "candela/doctor-agent/v1");
        assert_eq!(report["complete_share"], 0.99);
        assert_eq!(
            items(&report["drops"]).len(),
            1,
            "the server's are no agent's"
        );
        let text = as_text(&report);
        for part in [
            "0.31 % of a core",
            "0.50 % of a core",
            "9.5 of 19 Hz",
            "64.0 MiB",
            "99.0 %",
            "99.00 % of user stacks are complete",
            "raise agent.spool_size",
            "silent",
            "on far is not measured: needs CAP_SYS_ADMIN",
            "sample_cpu",
            "1.500 s",
            "exec",
            "what hosts do not give",
            "this kernel has no tracepoint block_io_start",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let guesses = text.matches("is not measured").count();
        assert_eq!(guesses, 1, "of others nothing is known");
    }

    #[test]
    fn profiles_that_stay_empty_are_told_with_their_cause() {
        let mut status = status();
        let url = "http://127.0.0.1:6060/debug/pprof/mutex";
        let empty = json!({"job": "go", "url": url, "hint": "call it"});
        status["agent"] = json!({"scrape": {"empty": [empty]}});
        let text = as_text(&report_of("http://server", &status));
        let line = format!("{url} stays empty: call it\n");
        assert!(text.ends_with(&line), "{text}");
    }

    #[test]
    fn a_cache_without_hits_has_a_rate() {
        let hit_rate = |cost: Value| cost_cells(&cost)[5].clone();
        assert_eq!(hit_rate(json!({"symbol_cache_misses": 3})), "0.0 %");
        let all = json!({"symbol_cache_hits": 3, "symbol_cache_misses": 0});
        assert_eq!(hit_rate(all), "100.0 %");
        assert_eq!(hit_rate(json!({"symbol_cache_misses": 0})), "-");
        assert_eq!(hit_rate(json!(null)), "-");
    }

    #[test]
    fn a_healthy_agent_has_lost_nothing() {
        let mut status = status();
        status["drops"] = json!([]);
        let text = as_text(&report_of("http://server", &status));
        assert!(text.ends_with("nothing was lost\n"), "{text}");
    }
}
