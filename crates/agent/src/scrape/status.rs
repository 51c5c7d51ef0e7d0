//! How scraping is doing.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;

/// Endpoints and problems that are listed; all are counted.
pub(crate) const MOST_LISTED: usize = 100;

/// The state of scraping; nothing without jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ScrapeStatus {
    /// By the name of the job.
    pub jobs: BTreeMap<String, ScrapeJobStatus>,
    /// Endpoints of which the last scrape failed; a hundred at most.
    pub failing: Vec<FailingEndpoint>,
    /// Endpoints whose profiles stay empty, and why; a hundred at most.
    pub empty: Vec<EmptyEndpoint>,
}

/// The state of one job. Counts are totals since the start unless they say otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ScrapeJobStatus {
    /// Targets known now, after rules.
    pub targets: u64,
    /// Targets that rules drop now.
    pub dropped_targets: u64,
    /// Profiles asked for now, of all targets.
    pub endpoints: u64,
    /// Those of which the last scrape failed.
    pub failing: u64,
    /// Scrapes that ended, well or not.
    pub scrapes: u64,
    /// Scrapes that gave nothing, by reason.
    pub failures: BTreeMap<String, u64>,
    /// Scrapes of totals before which there was none to subtract.
    pub first_scrapes: u64,
    /// Scrapes of totals that showed a restart of the program.
    pub restarts: u64,
    /// Samples handed over.
    pub samples: u64,
    /// Bytes of all answers.
    pub bytes: u64,
    /// What readers repaired or cut, by kind.
    pub notes: BTreeMap<String, u64>,
    /// What is wrong with targets and their files now; a hundred at most.
    pub problems: Vec<String>,
}

/// An endpoint whose last scrape failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FailingEndpoint {
    /// Its job.
    pub job: String,
    /// What is asked.
    pub url: String,
    /// The reason by which it is counted.
    pub reason: String,
    /// What there is to know of it.
    pub detail: String,
    /// Failures in a row.
    pub failures: u32,
}

/// An endpoint that answers, each time with nothing since the program's start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EmptyEndpoint {
    /// Its job.
    pub job: String,
    /// What is asked.
    pub url: String,
    /// What is usually the cause, and what helps.
    pub hint: String,
}

/// One number of a job.
type Count = fn(&ScrapeJobStatus) -> u64;

// === impl ScrapeStatus ===

impl ScrapeStatus {
    /// Appends the counts in the Prometheus text format.
    pub(crate) fn write_metrics(&self, out: &mut String) {
        if self.jobs.is_empty() {
            return;
        }
        let counts: [(&str, &str, &str, Count); 8] = [
            ("targets", "gauge", "Targets after rules.", |job| {
                job.targets
            }),
            ("endpoints", "gauge", "Profiles asked for.", |job| {
                job.endpoints
            }),
            (
                "failing",
                "gauge",
                "Profiles of which the last scrape failed.",
                |job| job.failing,
            ),
            ("scrapes_total", "counter", "Scrapes that ended.", |job| {
                job.scrapes
            }),
            (
                "first_scrapes_total",
                "counter",
                "Scrapes of totals without one before.",
                |job| job.first_scrapes,
            ),
            (
                "restarts_total",
                "counter",
                "Scrapes that showed a restart of the program.",
                |job| job.restarts,
            ),
            ("samples_total", "counter", "Samples handed over.", |job| {
                job.samples
            }),
            ("bytes_total", "counter", "Bytes of answers.", |job| {
                job.bytes
            }),
        ];
        for (name, kind, help, count) in counts {
            let name = format!("candela_agent_scrape_{name}");
            family(out, &name, kind, help);
            for (job, status) in &self.jobs {
                line(out, &name, &[("job", job)], count(status));
            }
        }
        let name = "candela_agent_scrape_failures_total";
        family(
            out,
            name,
            "counter",
            "Scrapes that gave nothing, by reason.",
        );
        for (job, status) in &self.jobs {
            for (reason, count) in &status.failures {
                line(out, name, &[("job", job), ("reason", reason)], *count);
            }
        }
    }
}

fn family(out: &mut String, name: &str, kind: &str, help: &str) {
    let written = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    written.expect("writing to a string cannot fail");
}

fn line(out: &mut String, name: &str, labels: &[(&str, &str)], value: u64) {
    let labels: Vec<String> = labels
        .iter()
        .map(|(label, text)| format!("{label}=\"{}\"", escaped(text)))
        .collect();
    let written = writeln!(out, "{name}{{{}}} {value}", labels.join(","));
    written.expect("writing to a string cannot fail");
}

/// The name of a job is anything that somebody wrote.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_by_job_and_reason() {
        let job = ScrapeJobStatus {
            targets: 3,
            failures: BTreeMap::from([("timeout".to_owned(), 2)]),
            ..ScrapeJobStatus::default()
        };
        let status = ScrapeStatus {
            jobs: BTreeMap::from([("a \"b\"".to_owned(), job)]),
            ..ScrapeStatus::default()
        };
        let mut text = String::new();
        status.write_metrics(&mut text);
        let expected = r#"candela_agent_scrape_targets{job="a \"b\""} 3"#;
        assert!(text.contains(expected), "{text}");
        let expected = r#"failures_total{job="a \"b\"",reason="timeout"} 2"#;
        assert!(text.contains(expected), "{text}");
        let mut nothing = String::new();
        ScrapeStatus::default().write_metrics(&mut nothing);
        assert_eq!(nothing, "");
    }
}
