//! The server under load for long: whether its memory is flat, and what pushes and queries take.

use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use crate::host::Bench;
use crate::latency::Latencies;
use crate::latency::Quantiles;
use crate::latency::milliseconds;
use crate::load::Load;
use crate::load::SERIES;
use crate::process::Program;

const PER_SECOND: u64 = 100;
const MIB: f64 = 1024.0 * 1024.0;
const BETWEEN_QUERIES: Duration = Duration::from_millis(500);
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);
/// More growth from the second third of the time to the last is not flat.
const MOST_GROWTH: f64 = 1.05;
/// Of the pushes of a minute: with fewer the machine did not keep up, and the figures say little.
const LEAST_SHARE: f64 = 0.95;
/// What a person with a window open asks, and a dashboard.
const QUESTIONS: [&str; 8] = [
    "/api/v1/flamegraph?type=cpu&from=now-15m&format=columns",
    "/api/v1/top?type=cpu&from=now-5m&query=%7Bservice_name%3D%22service-07%22%7D",
    "/api/v1/series?type=cpu&from=now-1h&group_by=service_name",
    "/api/v1/services?type=cpu&from=now-15m",
    "/api/v1/label-values?label=pod&from=now-15m",
    "/api/v1/flamegraph?type=cpu&from=now-1h&format=json&query=%7Bpod%3D~%22pod-1.%22%7D",
    "/api/v1/types?from=now-1h",
    "/api/v1/status",
];

/// What was seen, a line for each minute.
#[derive(Debug, Default)]
pub(crate) struct ServerSoak {
    minutes: Vec<Minute>,
    refused: u64,
    failed_queries: u64,
}

/// One minute of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Minute {
    /// Mean of the resident memory.
    mib: f64,
    most_mib: f64,
    pushes: Quantiles,
    queries: Quantiles,
}

impl Minute {
    pub(crate) fn line(&self, number: usize) -> String {
        format!(
            "| {number} | {:.1} | {:.1} | {} | {:.2} | {:.2} | {} | {:.1} | {:.1} |",
            self.mib,
            self.most_mib,
            self.pushes.count,
            milliseconds(self.pushes.p50),
            milliseconds(self.pushes.p99),
            self.queries.count,
            milliseconds(self.queries.p50),
            milliseconds(self.queries.p99),
        )
    }
}

impl ServerSoak {
    pub(crate) const HEAD: &str = "| minute | MiB | most MiB | pushes | p50 ms | p99 ms | queries | p50 ms | p99 ms |\n|---|---|---|---|---|---|---|---|---|";

    /// Runs it; `tell` gets each minute when it is over.
    pub(crate) fn run(
        bench: &Bench,
        minutes: u64,
        tell: &mut dyn FnMut(&Minute),
    ) -> Result<Self, String> {
        let folder = bench.folder("soak")?;
        let mut command = Command::new(bench.binary("candela")?);
        command
            .args(["server", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(&folder);
        let (mut server, url) = Program::start_candela(&mut command)?;
        let load = Load::new(&url, PER_SECOND);
        let queries = Latencies::default();
        let mut soak = Self::default();
        let failed = std::thread::scope(|scope| {
            scope.spawn(|| load.run());
            let asking = scope.spawn(|| ask_until_over(&url, &load, &queries));
            let mut outcome = Ok(());
            for _ in 0..minutes {
                match look_for_a_minute(&mut server) {
                    Ok((mib, most_mib)) => {
                        let minute = Minute {
                            mib,
                            most_mib,
                            pushes: Quantiles::of(load.pushes.take()),
                            queries: Quantiles::of(queries.take()),
                        };
                        tell(&minute);
                        soak.minutes.push(minute);
                    }
                    Err(error) => {
                        outcome = Err(error);
                        break;
                    }
                }
            }
            load.is_over.store(true, Ordering::SeqCst);
            let failed = asking.join().map_err(|_| "the queries panicked".to_owned());
            outcome.and(failed)
        })?;
        soak.failed_queries = failed;
        soak.refused = load.refused.load(Ordering::SeqCst);
        Ok(soak)
    }

    pub(crate) fn most_mib(&self) -> f64 {
        let most = self.minutes.iter().map(|minute| minute.most_mib);
        most.fold(0.0, f64::max)
    }

    /// From the second third on: in the first, tables of symbols and caches fill.
    fn growth(&self) -> f64 {
        let third = self.minutes.len() / 3;
        let mean = |minutes: &[Minute]| {
            let sum: f64 = minutes.iter().map(|minute| minute.mib).sum();
            sum / minutes.len().max(1) as f64
        };
        let (middle, last) = self.minutes[third..].split_at(third);
        mean(last) / mean(middle)
    }

    /// Whether memory was flat, nothing failed, and it was the load that was meant.
    pub(crate) fn is_well(&self) -> bool {
        let wanted = LEAST_SHARE * (PER_SECOND * 60) as f64;
        let kept_up = |minute: &Minute| minute.pushes.count as f64 >= wanted;
        self.growth() <= MOST_GROWTH
            && self.refused == 0
            && self.failed_queries == 0
            && self.minutes.iter().all(kept_up)
    }

    pub(crate) fn summary(&self) -> String {
        let worst = |of: fn(&Minute) -> Quantiles| {
            let quantiles = self.minutes.iter().map(of);
            quantiles.max_by_key(|it| it.p99).unwrap_or_default()
        };
        let median = |of: fn(&Minute) -> Quantiles| {
            let mut quantiles: Vec<Duration> = self.minutes.iter().map(|it| of(it).p50).collect();
            quantiles.sort_unstable();
            milliseconds(
                quantiles
                    .get(quantiles.len() / 2)
                    .copied()
                    .unwrap_or_default(),
            )
        };
        format!(
            "most {:.0} MiB, {} pushes, last third {:+.1} % over the middle one, {} min of {PER_SECOND} profiles/s of {SERIES} series; \
             p50 and worst minute's p99: push {:.1} and {:.1} ms, query {:.0} and {:.0} ms; {} refused, {} queries failed",
            self.most_mib(),
            self.minutes
                .iter()
                .map(|minute| minute.pushes.count)
                .sum::<usize>(),
            (self.growth() - 1.0) * 100.0,
            self.minutes.len(),
            median(|it| it.pushes),
            milliseconds(worst(|it| it.pushes).p99),
            median(|it| it.queries),
            milliseconds(worst(|it| it.queries).p99),
            self.refused,
            self.failed_queries,
        )
    }
}

/// Mean and highest resident memory of a minute, MiB.
fn look_for_a_minute(server: &mut Program) -> Result<(f64, f64), String> {
    let start = Instant::now();
    let (mut sum, mut most, mut looks) = (0.0, 0.0_f64, 0.0);
    while start.elapsed() < Duration::from_secs(60) {
        std::thread::park_timeout(BETWEEN_LOOKS);
        server.still_runs()?;
        let mib = server.resident_bytes()? as f64 / MIB;
        (sum, most, looks) = (sum + mib, most.max(mib), looks + 1.0);
    }
    Ok((sum / looks, most))
}

/// One question after another; how many were not answered well.
fn ask_until_over(url: &str, load: &Load, queries: &Latencies) -> u64 {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_secs(30)))
        .build()
        .into();
    let mut failed = 0;
    for question in QUESTIONS.iter().cycle() {
        if load.is_over.load(Ordering::SeqCst) {
            break;
        }
        let begun = Instant::now();
        let answer = agent.get(format!("{url}{question}")).call();
        let is_well = answer.is_ok_and(|mut answer| {
            let body = answer.body_mut().with_config().limit(1 << 30).read_to_vec();
            answer.status().as_u16() == 200 && body.is_ok()
        });
        queries.add(begun.elapsed());
        failed += u64::from(!is_well);
        std::thread::park_timeout(BETWEEN_QUERIES);
    }
    failed
}
