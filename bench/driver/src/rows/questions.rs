//! R1: what each question of `querier.v1` takes, on the last hour and on a day.

use std::process::Command;
use std::time::Duration;
use std::time::Instant;

use serde_json::Value;
use serde_json::json;

use crate::Figure;
use crate::host::Bench;
use crate::latency::Quantiles;
use crate::latency::milliseconds;
use crate::load::SERVICES;
use crate::load::now_ns;
use crate::load::profile_at;
use crate::process::Program;

const TYPE: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
const MINUTE_NS: i64 = 60_000_000_000;
const MINUTES: i64 = 24 * 60;
/// Calls of each question, after one that is not counted.
const CALLS: usize = 20;
const PUSHERS: i64 = 4;

/// The row.
pub(crate) fn latencies(bench: &Bench) -> Result<Figure, String> {
    let folder = bench.folder("r1")?;
    let start = || {
        let mut command = Command::new(bench.binary("candela")?);
        command
            .args(["server", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(folder.join("data"));
        Program::start_candela(&mut command)
    };
    let now_ns = now_ns();
    let (mut program, url) = start()?;
    fill(&url, now_ns)?;
    // A server that has run for a day has blocks, and its newest profiles in memory.
    program.end(Duration::from_secs(120))?;
    let (mut program, url) = start()?;
    fill_minutes(&url, now_ns, 0, 1)?;
    let mut texts = Vec::new();
    for (method, question) in questions() {
        let mut medians = Vec::new();
        for hours in [1, 24] {
            let question = with_range(question.clone(), now_ns, hours);
            let took = ask(&url, method, &question)?;
            medians.push(format!(
                "{:.1}/{:.1}",
                milliseconds(took.p50),
                milliseconds(took.p99)
            ));
        }
        println!(
            "R1 {method}: {} ms on 1 h, {} on 24 h (p50/p99)",
            medians[0], medians[1]
        );
        texts.push(format!("{method} {}", medians.join(" · ")));
    }
    program.still_runs()?;
    Ok(Figure {
        text: format!("ms, p50/p99 on 1 h · 24 h: {}", texts.join("; ")),
        is_met: None,
    })
}

/// A profile of each service for each minute of the day, most of it by two connections.
fn fill(url: &str, now_ns: i64) -> Result<(), String> {
    let share = MINUTES / PUSHERS;
    std::thread::scope(|scope| {
        let pushers = (0..PUSHERS)
            .map(|pusher| {
                let first = 1 + pusher * share;
                scope.spawn(move || fill_minutes(url, now_ns, first, first + share))
            })
            .collect::<Vec<_>>();
        pushers
            .into_iter()
            .try_for_each(|pusher| pusher.join().map_err(|_| "a pusher panicked")?)
    })
}

/// Profiles that began so many minutes ago.
fn fill_minutes(url: &str, now_ns: i64, first: i64, end: i64) -> Result<(), String> {
    let agent = ureq::Agent::new_with_defaults();
    for minutes_ago in (first..end).rev() {
        for service in 0..SERVICES {
            let number = minutes_ago as u64 * SERVICES + service;
            let (series, body) = profile_at(number, now_ns - minutes_ago * MINUTE_NS);
            let service = series % SERVICES;
            let url = format!("{url}/api/v1/ingest?service=service-{service:02}");
            let answer = agent.post(&url).send(&body[..]);
            let answer = answer.and_then(|mut it| it.body_mut().read_to_vec());
            answer.map_err(|error| format!("{url}: {error}"))?;
        }
    }
    Ok(())
}

fn questions() -> Vec<(&'static str, Value)> {
    let of_service = "{service_name=\"service-07\"}";
    let stacks = json!({"profileTypeID": TYPE, "labelSelector": of_service});
    vec![
        ("ProfileTypes", json!({})),
        ("LabelNames", json!({"matchers": [of_service]})),
        (
            "LabelValues",
            json!({"name": "service_name", "matchers": ["{}"]}),
        ),
        (
            "Series",
            json!({"matchers": [], "labelNames": ["service_name", "__profile_type__"]}),
        ),
        ("SelectMergeStacktraces", stacks.clone()),
        ("SelectMergeProfile", stacks.clone()),
        ("SelectMergeSpanProfile", {
            let mut question = stacks.clone();
            question["spanSelector"] = json!(["00f067aa0ba902b7"]);
            question
        }),
        ("SelectSeries", {
            let mut question = stacks.clone();
            question["step"] = json!(15);
            question["groupBy"] = json!(["service_name"]);
            question
        }),
        ("SelectHeatmap", {
            let mut question = stacks.clone();
            question["step"] = json!(60);
            question
        }),
        ("Diff", json!({"left": stacks.clone(), "right": stacks})),
        ("GetProfileStats", json!({})),
        (
            "AnalyzeQuery",
            json!({"query": format!("{TYPE}{of_service}")}),
        ),
    ]
}

fn with_range(mut question: Value, now_ns: i64, hours: i64) -> Value {
    let end = now_ns / 1_000_000;
    let start = end - hours * 3_600_000;
    let sides: &[&str] = if question.get("left").is_some() {
        &["/left", "/right"]
    } else {
        &[""]
    };
    for side in sides {
        if let Some(question) = question.pointer_mut(side) {
            question["start"] = json!(start);
            question["end"] = json!(end);
        }
    }
    question
}

fn ask(url: &str, method: &str, question: &Value) -> Result<Quantiles, String> {
    let agent = ureq::Agent::new_with_defaults();
    let url = format!("{url}/querier.v1.QuerierService/{method}");
    let body = question.to_string();
    let mut took = Vec::new();
    for call in 0..=CALLS {
        let begun = Instant::now();
        let request = agent.post(&url).content_type("application/json");
        let answer = request.send(&body);
        let answer =
            answer.and_then(|mut it| it.body_mut().with_config().limit(1 << 30).read_to_vec());
        answer.map_err(|error| format!("{url}: {error}"))?;
        if call > 0 {
            took.push(begun.elapsed());
        }
    }
    Ok(Quantiles::of(took))
}
