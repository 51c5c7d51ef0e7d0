//! The server's own counters.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use axum::extract::MatchedPath;
use axum::extract::Request;
use axum::extract::State;
use axum::middleware::Next;
use axum::response::Response;
use candela_formats::Note;

use crate::app::SharedApp;
use crate::histogram::Histogram;

/// Everything the server counts.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    /// Queries that ended because their clients had gone.
    cancelled: u64,
    /// Answers that broke off.
    cut_answers: u64,
    requests: BTreeMap<(String, String, u16), u64>,
    latency: BTreeMap<String, Histogram>,
    /// By way and tenant.
    ingested: BTreeMap<(&'static str, String), Ingested>,
    /// By reason and tenant.
    refused: BTreeMap<(String, String), u64>,
    /// What readers changed, by its code and tenant.
    changes: BTreeMap<(&'static str, String), u64>,
}

/// What came in by one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ingested {
    /// Series of samples: one label set, type and window each.
    pub(crate) profiles: u64,
    pub(crate) samples: u64,
    /// As received, before decompression where the transport does not hide it.
    pub(crate) bytes: u64,
}

/// Profiles of a tenant that were refused, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) reason: String,
    pub(crate) tenant: String,
    pub(crate) count: u64,
}

/// Label value of requests that no route answers: their paths are unbounded.
const NO_ROUTE: &str = "none";

impl Metrics {
    pub(crate) fn count_ingested(&self, tenant: &str, way: &'static str, more: Ingested) {
        let mut counts = self.lock();
        let key = (way, tenant.to_owned());
        counts.ingested.entry(key).or_default().add(more);
    }

    /// Counts profiles (or requests that never became profiles) that were refused.
    pub(crate) fn count_refused(&self, tenant: &str, reason: &str, count: u64) {
        let key = (reason.to_owned(), tenant.to_owned());
        *self.lock().refused.entry(key).or_default() += count;
    }

    /// Counts what reading a profile cut, repaired or left out.
    pub(crate) fn count_changes(&self, tenant: &str, notes: &[Note]) {
        if notes.is_empty() {
            return;
        }
        let mut counts = self.lock();
        for note in notes {
            let key = (note.code, tenant.to_owned());
            *counts.changes.entry(key).or_default() += note.count;
        }
    }

    /// What came in by each way, of some tenants together.
    pub(crate) fn ingested(
        &self,
        is_wanted: impl Fn(&str) -> bool,
    ) -> BTreeMap<&'static str, Ingested> {
        let counts = self.lock();
        counts.ingested_by_way(is_wanted)
    }

    pub(crate) fn refused(&self) -> Vec<Refused> {
        let counts = self.lock();
        let refused = counts.refused.iter();
        let refused = refused.map(|((reason, tenant), count)| Refused {
            reason: reason.clone(),
            tenant: tenant.clone(),
            count: *count,
        });
        refused.collect()
    }

    /// What reading profiles changed, of some tenants together.
    pub(crate) fn changes(&self, is_wanted: impl Fn(&str) -> bool) -> BTreeMap<&'static str, u64> {
        let mut sums = BTreeMap::new();
        let counts = self.lock();
        let wanted = counts
            .changes
            .iter()
            .filter(|((_, tenant), _)| is_wanted(tenant));
        for ((code, _), count) in wanted {
            *sums.entry(*code).or_default() += count;
        }
        sums
    }

    /// Counts a query that was ended because its client had gone.
    pub(crate) fn count_cancelled(&self) {
        self.lock().cancelled += 1;
    }

    /// Counts an answer that broke off.
    pub(crate) fn count_cut_answer(&self) {
        self.lock().cut_answers += 1;
    }

    fn count_request(&self, method: &str, route: &str, code: u16, took: Duration) {
        let mut counts = self.lock();
        let key = (route.to_owned(), method.to_owned(), code);
        *counts.requests.entry(key).or_default() += 1;
        let latency = counts.latency.entry(route.to_owned()).or_default();
        latency.observe(took);
    }

    /// The Prometheus text format, version 0.0.4.
    pub(crate) fn write(&self, out: &mut String) {
        let counts = self.lock();
        head(
            out,
            "candela_http_requests_total",
            "counter",
            "Answered requests.",
        );
        for ((route, method, code), count) in &counts.requests {
            let labels = format!("route={route:?},method={method:?},code=\"{code}\"");
            let _ = writeln!(out, "candela_http_requests_total{{{labels}}} {count}");
        }
        let cancelled = "candela_queries_cancelled_total";
        head(
            out,
            cancelled,
            "counter",
            "Queries that ended because their clients had gone.",
        );
        let _ = writeln!(out, "{cancelled} {}", counts.cancelled);
        let cut = "candela_answers_cut_total";
        head(
            out,
            cut,
            "counter",
            "Answers that broke off: their clients read nothing for too long, or went away.",
        );
        let _ = writeln!(out, "{cut} {}", counts.cut_answers);
        let latency = "candela_http_request_duration_seconds";
        head(out, latency, "histogram", "Time until the answer's head.");
        for (route, histogram) in &counts.latency {
            histogram.write(latency, &format!("route={route:?}"), out);
        }
        write_ingested(
            &counts,
            "profiles",
            "Stored profiles.",
            |sum| sum.profiles,
            out,
        );
        write_ingested(
            &counts,
            "samples",
            "Stored samples.",
            |sum| sum.samples,
            out,
        );
        write_ingested(
            &counts,
            "bytes",
            "Received bytes of stored profiles.",
            |sum| sum.bytes,
            out,
        );
        let refused = "candela_ingest_refused_total";
        head(out, refused, "counter", "Refused profiles.");
        for ((reason, tenant), count) in &counts.refused {
            let labels = format!("reason={reason:?},tenant={tenant:?}");
            let _ = writeln!(out, "{refused}{{{labels}}} {count}");
        }
        let changes = "candela_ingest_changes_total";
        let help = "What reading profiles cut, repaired or left out.";
        head(out, changes, "counter", help);
        for ((change, tenant), count) in &counts.changes {
            let labels = format!("change={change:?},tenant={tenant:?}");
            let _ = writeln!(out, "{changes}{{{labels}}} {count}");
        }
    }

    /// Counters stay usable after a panic elsewhere: each update is complete in itself.
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn ingested_by_way(
        &self,
        is_wanted: impl Fn(&str) -> bool,
    ) -> BTreeMap<&'static str, Ingested> {
        let mut sums: BTreeMap<&'static str, Ingested> = BTreeMap::new();
        for ((way, tenant), sum) in &self.ingested {
            if is_wanted(tenant) {
                sums.entry(*way).or_default().add(*sum);
            }
        }
        sums
    }
}

impl Ingested {
    fn add(&mut self, more: Self) {
        self.profiles += more.profiles;
        self.samples += more.samples;
        self.bytes += more.bytes;
    }
}

fn write_ingested(
    counts: &Counts,
    what: &str,
    help: &str,
    value: fn(&Ingested) -> u64,
    out: &mut String,
) {
    let name = format!("candela_ingested_{what}_total");
    head(out, &name, "counter", help);
    for (way, sum) in counts.ingested_by_way(|_| true) {
        let _ = writeln!(out, "{name}{{way=\"{way}\"}} {}", value(&sum));
    }
}

/// The head of a metric family.
pub(crate) fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// Counts every request by route, method and code.
pub(crate) async fn count_requests(
    State(app): State<SharedApp>,
    request: Request,
    next: Next,
) -> Response {
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or(NO_ROUTE, MatchedPath::as_str).to_owned();
    // Clients may invent methods; those of HTTP are few.
    let method = match request.method().as_str() {
        known @ ("GET" | "HEAD" | "POST" | "PUT" | "DELETE" | "OPTIONS" | "PATCH") => {
            known.to_owned()
        }
        _ => "other".to_owned(),
    };
    let started = tokio::time::Instant::now();
    let response = next.run(request).await;
    let code = response.status().as_u16();
    app.metrics
        .count_request(&method, &route, code, started.elapsed());
    response
}
