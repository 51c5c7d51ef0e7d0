//! What the agent is asked to do for a `perf_collector`.

use std::time::Duration;

use candela_agent::AgentOptions;
use candela_agent::Kind;
use candela_agent::KubernetesOptions;
use candela_agent::SampleFilters;
use candela_fleet::PerfCollector;

use crate::error::DaemonError;
use crate::perf_collector::filter::pod_label_keys;
use crate::perf_collector::filter::process_rule;

/// The longest window: what is in memory of a dump.
const LONGEST_WINDOW_SECONDS: u32 = 10;

/// `base` has the names and bounds of the node.
pub(crate) fn agent_options(
    collector: &PerfCollector,
    base: &AgentOptions,
) -> Result<AgentOptions, DaemonError> {
    let filter = collector.process_filter.clone().unwrap_or_default();
    let window = window_of(collector.dump_seconds());
    let mut pod_labels = base.kubernetes.pod_labels.clone();
    pod_labels.extend(pod_label_keys(&filter)?);
    pod_labels.sort();
    pod_labels.dedup();
    Ok(AgentOptions {
        rate_hz: collector.frequency_hz(),
        kinds: [Kind::Cpu].into(),
        events: Vec::new(),
        sampling: true,
        window,
        first_window: window,
        timestamps: true,
        cpus: true,
        spool: None,
        scrape: Vec::new(),
        kubernetes: KubernetesOptions {
            pod_labels,
            ..base.kubernetes.clone()
        },
        filters: SampleFilters {
            processes: process_rule(&filter),
            ..SampleFilters::default()
        },
        ..base.clone()
    })
}

/// The longest window of which a dump has a whole number.
fn window_of(dump_seconds: u32) -> Duration {
    let windows = dump_seconds.div_ceil(LONGEST_WINDOW_SECONDS).max(1);
    Duration::from_secs(dump_seconds.into()) / windows
}

#[cfg(test)]
mod tests {
    use candela_fleet::DaemonBody;
    use candela_fleet::FleetDocument;

    use super::*;

    fn plan(element: &str) -> Result<AgentOptions, DaemonError> {
        let text = format!(r#"{{"observability_daemons": [{element}]}}"#);
        let document = FleetDocument::read(&text).expect("a document").document;
        let element = &document.daemons()[0];
        let DaemonBody::PerfCollector(collector) = &element.body else {
            panic!("no perf_collector");
        };
        agent_options(collector, &AgentOptions::default())
    }

    #[test]
    fn windows_fit_in_dumps() {
        for seconds in [1, 7, 10, 11, 60, 61, 120, 86_400] {
            let window = window_of(seconds);
            assert!(window >= Duration::from_secs(1) && window <= Duration::from_secs(10));
            let windows = f64::from(seconds) / window.as_secs_f64();
            assert!(
                (windows - windows.round()).abs() < 1e-6,
                "{seconds}: {windows}"
            );
        }
    }

    #[test]
    fn the_document_decides() {
        let options = plan(
            r#"{"perf_collector": {"export_to": "s3://bucket", "perf_polling_frequency_hz": 49,
                "dump_duration_seconds": 5, "process_filter": {"pod_label": ["app=shop", "app=web"]}}}"#,
        );
        let options = options.expect("a plan");
        assert_eq!(options.rate_hz, 49);
        assert_eq!(options.window, Duration::from_secs(5));
        assert_eq!(options.kubernetes.pod_labels, ["app"]);
        assert!(options.timestamps && options.cpus && options.filters.processes.is_some());
        assert!(options.check().is_ok());
        let everything =
            plan(r#"{"perf_collector": {"export_to": "s3://bucket"}}"#).expect("a plan");
        assert!(everything.filters.processes.is_none());
        assert_eq!(everything.rate_hz, 99);
    }
}
