//! What the fleet counts, for Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::hub::Fleet;
use crate::metrics::head;

/// Totals since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FleetCounts {
    pub(super) changes: u64,
    /// Changes that were refused since somebody else had changed the document.
    pub(super) conflicts: u64,
    pub(super) reports: u64,
    pub(super) streams: u64,
    /// Streams that ended since their node began another.
    pub(super) replaced: u64,
    /// Streams and reports of nodes beyond the limit.
    pub(super) refused: u64,
    /// Streams and reports of agents whose name another agent has.
    pub(super) namesakes: u64,
    /// Results of orders, by status.
    pub(super) snapshots: BTreeMap<&'static str, u64>,
}

pub(crate) fn write_fleet_metrics(fleet: &Fleet, out: &mut String) {
    let (now, counts) = fleet.counts();
    let rows = [
        (
            "candela_fleet_nodes",
            "gauge",
            "Nodes that have listened or reported.",
            now.nodes as u64,
        ),
        (
            "candela_fleet_streams",
            "gauge",
            "Nodes that listen.",
            now.streams as u64,
        ),
        (
            "candela_fleet_streams_total",
            "counter",
            "Streams of nodes that began.",
            counts.streams,
        ),
        (
            "candela_fleet_streams_replaced_total",
            "counter",
            "Streams that ended since their node began another.",
            counts.replaced,
        ),
        (
            "candela_fleet_refused_total",
            "counter",
            "Streams and reports of nodes beyond the limit.",
            counts.refused,
        ),
        (
            "candela_fleet_namesakes_total",
            "counter",
            "Streams and reports of agents whose name another agent has.",
            counts.namesakes,
        ),
        (
            "candela_fleet_reports_total",
            "counter",
            "Reports of nodes.",
            counts.reports,
        ),
        (
            "candela_fleet_changes_total",
            "counter",
            "Changes of the fleet's document.",
            counts.changes,
        ),
        (
            "candela_fleet_conflicts_total",
            "counter",
            "Changes that were refused since somebody else had changed the document.",
            counts.conflicts,
        ),
    ];
    for (name, kind, help, value) in rows {
        head(out, name, kind, help);
        let _ = writeln!(out, "{name} {value}");
    }
    let snapshots = "candela_fleet_snapshots_total";
    head(
        out,
        snapshots,
        "counter",
        "Results of snapshots of nodes, by status.",
    );
    for (status, count) in &counts.snapshots {
        let _ = writeln!(out, "{snapshots}{{status=\"{status}\"}} {count}");
    }
}
