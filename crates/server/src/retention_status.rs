//! How long data is kept and what merging does, for `/metrics` and `/api/v1/status`.

use std::fmt::Write;
use std::time::Duration;

use candela_store::RetentionRule;
use candela_store::StoreOptions;
use candela_store::StoreStatus;
use candela_store::TierStatus;
use serde_json::Value;
use serde_json::json;

use crate::api::milliseconds;
use crate::metrics::head;

/// `storage.retention` of the status answer: what the configuration says, and what it made of it.
pub(crate) fn retention_json(options: &StoreOptions, status: &StoreStatus) -> Value {
    json!({
        "max_bytes": options.max_bytes,
        "max_volume_percent": options.max_volume_percent,
        "tiers": status.tiers.iter().map(tier).collect::<Vec<Value>>(),
        "rules": options.retention_rules.iter().map(rule).collect::<Vec<Value>>(),
        "deleted_blocks": status.deleted_blocks,
    })
}

/// `storage.compaction` of the status answer.
pub(crate) fn compaction_json(status: &StoreStatus) -> Value {
    let compaction = &status.compaction;
    json!({
        "jobs": compaction.jobs,
        "failed_jobs": compaction.failed_jobs,
        "blocks_read": compaction.blocks_read,
        "blocks_written": compaction.blocks_written,
        "samples": compaction.samples,
        "last_error": compaction.last_error,
    })
}

fn tier(tier: &TierStatus) -> Value {
    json!({
        "tier": tier.tier.name(),
        "max_age_seconds": tier.max_age.map(|age| age.as_secs()),
        "blocks": tier.blocks,
        "bytes": tier.bytes,
        "samples": tier.samples,
        "oldest_ms": tier.oldest_ns.map(milliseconds),
    })
}

fn rule(rule: &RetentionRule) -> Value {
    json!({
        "tenant": rule.tenant,
        "query": rule.selector.to_string(),
        "type": rule.profile_type,
        "max_age_seconds": rule.keep.as_secs(),
    })
}

/// A family with one row a tier: name, help, value.
type Family = (&'static str, &'static str, fn(&TierStatus) -> u64);

/// Families of tiers and of merging in the Prometheus text format.
pub(crate) fn write_retention_metrics(status: &StoreStatus, out: &mut String) {
    let families: [Family; 4] = [
        ("blocks", "Blocks of a tier.", |tier| tier.blocks),
        ("bytes", "Bytes of the blocks of a tier.", |tier| tier.bytes),
        ("samples", "Rows of samples of a tier.", |tier| tier.samples),
        (
            "retention_seconds",
            "How long a tier is kept; 0 is for ever.",
            |tier| tier.max_age.as_ref().map_or(0, Duration::as_secs),
        ),
    ];
    for (name, help, value) in families {
        let family = format!("candela_store_tier_{name}");
        head(out, &family, "gauge", help);
        for tier in &status.tiers {
            let _ = writeln!(
                out,
                "{family}{{tier=\"{}\"}} {}",
                tier.tier.name(),
                value(tier)
            );
        }
    }
    let compaction = &status.compaction;
    let counters = [
        ("jobs", "Merges of blocks.", compaction.jobs),
        (
            "failed_jobs",
            "Merges that failed and are tried again.",
            compaction.failed_jobs,
        ),
        (
            "blocks_read",
            "Blocks that were merged.",
            compaction.blocks_read,
        ),
        (
            "blocks_written",
            "Blocks that merges made.",
            compaction.blocks_written,
        ),
    ];
    for (name, help, value) in counters {
        let family = format!("candela_store_compaction_{name}_total");
        head(out, &family, "counter", help);
        let _ = writeln!(out, "{family} {value}");
    }
}
