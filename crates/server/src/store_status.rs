//! The store's figures for `/metrics` and `/api/v1/status`.

use std::fmt::Write;

use candela_store::Snapshot;
use candela_store::Store;
use candela_store::StoreStatus;
use candela_store::TimeRange;
use serde_json::Value;
use serde_json::json;

use crate::auth::TenantName;
use crate::metrics::head;

/// Families of the store in the Prometheus text format.
pub(crate) fn write_store_metrics(status: &StoreStatus, out: &mut String) {
    let quarantined = status.quarantined.len() as u64;
    let gauges = [
        ("blocks", "Blocks that answer queries.", status.blocks),
        ("block_bytes", "Bytes of their files.", status.block_bytes),
        (
            "block_samples",
            "Rows of their samples.",
            status.block_samples,
        ),
        ("head_samples", "Samples in memory.", status.head_samples),
        (
            "head_bytes",
            "Bytes of the head, estimated.",
            status.head_bytes,
        ),
        (
            "cache_bytes",
            "Bytes of decoded block tables.",
            status.cache_bytes,
        ),
        (
            "copied_bytes",
            "Bytes on disk that are copies of blocks in a bucket.",
            status.copied_bytes,
        ),
        ("wal_bytes", "Bytes of the log.", status.wal_bytes),
        (
            "quarantined_blocks",
            "Blocks that cannot be read.",
            quarantined,
        ),
        (
            "quarantined_bytes",
            "Bytes of the files of blocks that cannot be read.",
            status.quarantined_bytes,
        ),
    ];
    for (name, help, value) in gauges {
        write_one(out, &format!("candela_store_{name}"), "gauge", help, value);
    }
    let counters = [
        ("wal_batches", "Writes of the log.", status.wal_batches),
        (
            "appended",
            "Batches of profiles acknowledged.",
            status.appended,
        ),
        ("refused", "Batches of profiles refused.", status.refused),
        (
            "duplicates",
            "Batches of profiles that came again and were not stored twice.",
            status.duplicates,
        ),
        (
            "replayed",
            "Log records read back at the start.",
            status.replayed,
        ),
        (
            "torn_tails",
            "Log segments that ended inside a record.",
            status.torn_tails,
        ),
        (
            "damaged_records",
            "Log records that the disk lost.",
            status.damaged_records,
        ),
        ("flushes", "Flushes that made blocks.", status.flushes),
        (
            "failed_flushes",
            "Flushes that failed.",
            status.failed_flushes,
        ),
        (
            "deleted_blocks",
            "Blocks deleted by retention.",
            status.deleted_blocks,
        ),
    ];
    for (name, help, value) in counters {
        write_one(
            out,
            &format!("candela_store_{name}_total"),
            "counter",
            help,
            value,
        );
    }
}

fn write_one(out: &mut String, name: &str, kind: &str, help: &str, value: u64) {
    head(out, name, kind, help);
    let _ = writeln!(out, "{name} {value}");
}

/// What the store has of some tenants. Of its log, its memory and its work it keeps no figures by
/// tenant; they are 0.
pub(crate) fn status_of_tenants(store: &Store, tenants: &[TenantName]) -> StoreStatus {
    let mut status = StoreStatus::default();
    for tenant in tenants {
        // A snapshot of memory: nothing is read, and so nothing can fail.
        let Ok(snapshot) = store.snapshot(tenant, TimeRange::ALL) else {
            continue;
        };
        add_snapshot(&mut status, snapshot);
    }
    status
}

fn add_snapshot(status: &mut StoreStatus, snapshot: Snapshot) {
    for block in snapshot.blocks.iter().chain(&snapshot.rollups) {
        let meta = block.meta();
        status.blocks += 1;
        status.block_bytes += meta.bytes;
        status.block_samples += meta.rows;
        let oldest_ns = status.oldest_ns.unwrap_or(i64::MAX);
        status.oldest_ns = Some(oldest_ns.min(meta.min_time_ns));
    }
    let profiles = snapshot.heads.iter().flat_map(|head| &head.profiles);
    status.head_samples += profiles.map(|profile| profile.len() as u64).sum::<u64>();
    status.quarantined.extend(snapshot.quarantined);
}

/// `storage` of the status answer.
pub(crate) fn storage_json(status: &StoreStatus) -> Value {
    let quarantined = status.quarantined.iter();
    let quarantined =
        quarantined.map(|block| json!({"block": block.block_id, "reason": block.reason}));
    json!({
        "appended": status.appended,
        "duplicates": status.duplicates,
        "blocks": status.blocks,
        "bytes": status.block_bytes,
        "samples": status.block_samples,
        "oldest_ms": status.oldest_ns.map(|time| time.div_euclid(1_000_000)),
        "head_samples": status.head_samples,
        "head_bytes": status.head_bytes,
        "wal_bytes": status.wal_bytes,
        "torn_tails": status.torn_tails,
        "damaged_records": status.damaged_records,
        "last_flush_error": status.last_flush_error,
        "last_retention_error": status.last_retention_error,
        "quarantined": quarantined.collect::<Vec<Value>>(),
    })
}

/// What the store lost, by reason. A torn tail is no loss: it was never acknowledged.
pub(crate) fn store_drops(status: &StoreStatus) -> Vec<(String, u64)> {
    let reasons = [
        ("log record damaged on disk", status.damaged_records),
        ("block unreadable", status.quarantined.len() as u64),
    ];
    let lost = reasons.into_iter().filter(|(_, count)| *count != 0);
    lost.map(|(reason, count)| (reason.to_owned(), count))
        .collect()
}
