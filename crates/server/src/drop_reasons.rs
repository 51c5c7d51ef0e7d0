//! What the counts of the drop ledger count, which of them are losses, and what helps against them.

use candela_model::drop_remedy;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

/// What one of a reason is, and whether it is missing from what is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Meaning {
    unit: &'static str,
    is_loss: bool,
}

/// The prefix of the reasons for which this server refuses profiles.
pub(crate) const REFUSED: &str = "refused: ";

/// The reasons of agents and of the store.
const REASONS: &[(&str, &str, bool)] = &[
    ("sample_ring_full", "samples", true),
    ("sample_lost", "samples", true),
    ("record_undecodable", "records", true),
    // Samples are missing, and how many nobody knows.
    ("sampling_throttled", "pauses", true),
    // Which of them would have been samples nobody knows.
    ("program_recursion", "events", true),
    ("life_ring_full", "events", false),
    ("sideband_lost", "events", false),
    // These samples are there, with a shorter stack.
    ("stack_copy_limited", "samples", false),
    ("off_cpu_user_stack_missed", "samples", false),
    ("off_cpu_arrival_missed", "samples", false),
    ("waker_stack_lost", "samples", false),
    ("pending_full", "samples", false),
    ("process_gone", "samples", false),
    ("kernel_stack_failed", "samples", false),
    ("user_stack_32_bit", "samples", false),
    ("object_unreadable", "files", false),
    ("too_many_objects", "files", false),
    ("unwind_table_failed", "tables", false),
    ("unwind_table_evicted", "tables", false),
    ("unwind_table_refused", "tables", false),
    ("unwind_table_rules_full", "tables", false),
    ("mappings_refused", "processes", false),
    ("targets_full", "processes", true),
    // Left out on purpose.
    ("excluded_by_rule", "samples", false),
    ("below_min_samples", "samples", false),
    ("short_wait", "waits", false),
    ("short_wait_ns", "nanoseconds", false),
    ("container_unnamed", "containers", false),
    ("context_unread", "samples", false),
    ("labels_cut", "samples", false),
    ("contexts_full", "samples", false),
    // What they allocated is counted; that it is in use may be told for too long, or not.
    ("alloc_frees_lost", "allocations", false),
    ("alloc_not_followed", "allocations", false),
    ("alloc_implausible", "allocations", true),
    ("alloc_library_refused", "files", true),
    // There is nothing that could be missing.
    ("go_heap_off", "processes", false),
    ("go_heap_unread", "processes", true),
    ("go_heap_gone", "processes", true),
    ("window_full", "samples", true),
    ("symbolizer_behind", "samples", true),
    ("symbolizer_failed", "samples", true),
    ("frame_unnamed", "frames", false),
    ("scrape_failed", "scrapes", true),
    ("exporter_behind", "samples", true),
    ("export_rejected", "profiles", true),
    ("spool_full", "profiles", true),
    ("spool_corrupt", "profiles", true),
    ("spool_write_failed", "profiles", true),
    // What is left of these is there.
    ("stacks_cut", "stacks", false),
    ("strings_cut", "names", false),
    ("strings_repaired", "names", false),
    ("labels_reserved", "labels", false),
    ("labels_escaped", "labels", false),
    ("negative_values", "samples", true),
    ("labels_without_value", "labels", false),
    ("lines_without_count", "lines", true),
    ("lines_without_function", "frames", false),
    ("log record damaged on disk", "records", true),
    ("block unreadable", "blocks", true),
    // Logs that are only logs; nothing of a profile is missing.
    ("refused: not_a_profile_event", "records", false),
    ("refused: unknown_event_type", "records", true),
];

/// What helps against the reasons of this server; those of agents are [`drop_remedy`]'s.
const SERVER_REMEDIES: &[(&str, &str)] = &[
    (
        "stacks_cut",
        "raise server.limits.stack_depth where the whole stack matters",
    ),
    (
        "strings_cut",
        "raise server.limits.string_length where the whole name matters",
    ),
    (
        "negative_values",
        "send what was sampled: a difference of two profiles is not a sum of events",
    ),
    (
        "labels_reserved",
        "give these labels names, and names that do not begin and end with two underscores",
    ),
    (
        "log record damaged on disk",
        "look at the disk of the data directory; a power cut may be the cause",
    ),
    (
        "block unreadable",
        "run candela store verify, which names the files; restore them, or delete them",
    ),
    (
        "refused: rate_limited",
        "raise server.limits.ingest_rate, or send less often",
    ),
    (
        "refused: series_limit",
        "raise server.limits.series, or send fewer different labels",
    ),
    (
        "refused: profile_too_large",
        "raise server.limits.profile_size, or send profiles of a shorter time",
    ),
    (
        "refused: too_large",
        "raise server.limits.profile_size or body_size, or send profiles of a shorter time",
    ),
    (
        "refused: too_many_samples",
        "raise server.limits.samples_per_profile, or send profiles of a shorter time",
    ),
    (
        "refused: too_many_labels",
        "raise server.limits.labels_per_series, or send fewer labels",
    ),
    (
        "refused: label_name_too_long",
        "raise server.limits.label_name_length, or send shorter names",
    ),
    (
        "refused: label_value_too_long",
        "raise server.limits.label_value_length, or send shorter values",
    ),
    (
        "refused: too_old",
        "raise store.retention: what is older than that would vanish at once",
    ),
    ("refused: in_the_future", "check the clock of the sender"),
    (
        "refused: negative_value",
        "send what was sampled: a difference of two profiles is no sum of events",
    ),
    (
        "refused: overloaded",
        "send less often: the disk of the data directory does not keep up",
    ),
    (
        "refused: disk_full",
        "make room on the volume of the data directory, or lower store.max_size so that old data goes earlier",
    ),
    (
        "refused: not_a_profile_event",
        "nothing to do: these are logs that are no profiles",
    ),
];

/// Whether a change that a reader made to a profile takes something away from it, so that it belongs
/// into the ledger. The others repair what makes no sense.
pub(crate) fn is_lessening(change: &str) -> bool {
    REASONS.iter().any(|(name, _, _)| *name == change)
}

/// `drop_reasons` of the status answer: the meaning of each of some reasons.
pub(crate) fn drop_reasons<'a>(reasons: impl Iterator<Item = &'a str>) -> Value {
    let meanings = reasons.map(|reason| {
        let Meaning { unit, is_loss } = meaning(reason);
        let meaning = json!({"unit": unit, "is_loss": is_loss, "remedy": remedy(reason)});
        (reason.to_owned(), meaning)
    });
    Value::Object(meanings.collect::<Map<String, Value>>())
}

fn remedy(reason: &str) -> Option<&'static str> {
    let ours = SERVER_REMEDIES.iter().find(|(name, _)| *name == reason);
    ours.map(|(_, remedy)| *remedy)
        .or_else(|| drop_remedy(reason))
}

/// A reason that only a later agent knows is taken for a loss: nothing is lost silently.
fn meaning(reason: &str) -> Meaning {
    let known = REASONS.iter().find(|(name, _, _)| *name == reason);
    if let Some(&(_, unit, is_loss)) = known {
        return Meaning { unit, is_loss };
    }
    Meaning {
        unit: if reason.starts_with(REFUSED) {
            "profiles"
        } else {
            "events"
        },
        is_loss: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_of_the_agent_has_a_meaning() {
        let ledger = include_str!("../../agent/src/ledger.rs");
        let names: Vec<&str> = ledger
            .lines()
            .filter_map(|line| {
                let name = line.split_once(" => \"")?.1;
                name.strip_suffix("\",")
            })
            .collect();
        assert!(names.contains(&"sample_ring_full"), "{names:?}");
        for name in names {
            let is_known = REASONS.iter().any(|(known, _, _)| *known == name);
            assert!(is_known, "{name} has no meaning in REASONS");
        }
    }

    #[test]
    fn what_nobody_knows_is_a_loss() {
        let reasons = ["refused: of_tomorrow", "of_the_future", "frame_unnamed"];
        assert_eq!(
            drop_reasons(reasons.into_iter()),
            json!({
                "refused: of_tomorrow": {"unit": "profiles", "is_loss": true, "remedy": null},
                "of_the_future": {"unit": "events", "is_loss": true, "remedy": null},
                "frame_unnamed": {
                    "unit": "frames",
                    "is_loss": false,
                    "remedy": drop_remedy("frame_unnamed"),
                },
            })
        );
    }

    #[test]
    fn remedies_are_of_reasons_that_can_occur() {
        for (name, _) in SERVER_REMEDIES {
            let is_known = REASONS.iter().any(|(known, _, _)| known == name);
            assert!(is_known || name.starts_with(REFUSED), "{name}");
        }
    }
}
