//! Samples this host for some seconds and prints what the agent says of itself, and what ran.
//!
//! `cargo run -p candela-agent --example host -- 10 99`: seconds and rate.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

use candela_agent::Agent;
use candela_agent::AgentError;
use candela_agent::AgentOptions;
use candela_agent::InProcess;

fn main() -> Result<(), AgentError> {
    let mut arguments = std::env::args().skip(1).map_while(|text| text.parse().ok());
    let seconds = arguments.next().unwrap_or(10);
    let rate_hz = arguments.next().unwrap_or(99) as u32;
    let totals = Arc::new(Mutex::new(BTreeMap::<String, i64>::new()));
    let shared = Arc::clone(&totals);
    let exporter = InProcess::new(move |profile| {
        let mut totals = shared.lock().expect("nobody panics with it");
        for series in &profile.series {
            let service = series.labels.get("service_name").unwrap_or_default();
            *totals.entry(service.to_owned()).or_default() += series.total() / 1_000_000;
        }
        Ok(())
    });
    let options = AgentOptions {
        rate_hz,
        ..AgentOptions::default()
    };
    let agent = Agent::start(options, Box::new(exporter))?;
    let (_keep, never) = channel::<()>();
    let _ = never.recv_timeout(Duration::from_secs(seconds));
    let status = agent.stop()?;
    println!("{status:#?}");
    for (service, milliseconds) in totals.lock().expect("nobody panics with it").iter() {
        println!("{milliseconds:8} ms  {service}");
    }
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks: u64 = stat
        .rsplit(')')
        .next()
        .map(|rest| {
            rest.split(' ')
                .skip(12)
                .take(2)
                .filter_map(|field| field.parse::<u64>().ok())
                .sum()
        })
        .unwrap_or(0);
    println!("agent: {} ms of CPU in {seconds} s", ticks * 10);
    Ok(())
}
