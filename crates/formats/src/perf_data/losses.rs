//! What was lost, by the kernel or here.

use crate::report::Report;

/// Counts by reason.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    pub(crate) lost_samples: u64,
    pub(crate) throttled: u64,
    pub(crate) damaged_records: u64,
    pub(crate) samples_of_unknown_events: u64,
    pub(crate) samples_without_value: u64,
    pub(crate) late_records: u64,
    pub(crate) stacks_not_walked: u64,
    pub(crate) stacks_walked_in_part: u64,
    pub(crate) left_out_mappings: u64,
    pub(crate) files_not_found: u64,
    pub(crate) is_cut: bool,
    pub(crate) is_unfinished: bool,
    pub(crate) has_broken_compression: bool,
    pub(crate) has_broken_features: bool,
    pub(crate) bytes_not_read: u64,
}

impl Losses {
    /// Counts what a record says was lost.
    pub(crate) fn lose_samples(&mut self, count: Option<u64>) -> Option<()> {
        self.lost_samples = self.lost_samples.saturating_add(count?);
        Some(())
    }

    pub(crate) fn note(&self, report: &mut Report) {
        let counted = [
            (
                "samples_lost",
                "records were lost while recording, as perf was too slow to write them",
                self.lost_samples,
            ),
            (
                "throttled",
                "the kernel paused the event because it came too often",
                self.throttled,
            ),
            (
                "recording_unfinished",
                "the recording was not finished; all that was written was read",
                u64::from(self.is_unfinished),
            ),
            (
                "recording_cut",
                "the recording breaks off; what stands before the break was read",
                u64::from(self.is_cut),
            ),
            (
                "bytes_not_read",
                "bytes behind a broken record were left out",
                self.bytes_not_read,
            ),
            (
                "compression_broken",
                "compressed records behind a damaged one were left out",
                u64::from(self.has_broken_compression),
            ),
            (
                "features_cut",
                "what stands behind the data is incomplete: build ids and names may be missing",
                u64::from(self.has_broken_features),
            ),
            (
                "records_damaged",
                "records that are too short for what they should hold were left out",
                self.damaged_records,
            ),
            (
                "samples_of_unknown_events",
                "samples of events that the recording does not describe were left out",
                self.samples_of_unknown_events,
            ),
            (
                "samples_without_value",
                "samples with a period of 0 were left out",
                self.samples_without_value,
            ),
            (
                "records_late",
                "records that came after later ones: what they say was taken in the order of coming",
                self.late_records,
            ),
            (
                "stacks_not_walked",
                "copied stacks (DWARF) were not walked, as that takes the binaries; their samples have the innermost function only",
                self.stacks_not_walked,
            ),
            (
                "stacks_walked_in_part",
                "copied stacks (DWARF) whose outermost function was not reached",
                self.stacks_walked_in_part,
            ),
            (
                "mappings_left_out",
                "mappings of processes beyond the limit were left out",
                self.left_out_mappings,
            ),
            (
                "files_not_found",
                "binaries that are not here, or were another build: their functions have no names",
                self.files_not_found,
            ),
        ];
        for (code, text, count) in counted {
            report.note_many(code, text, count);
        }
    }
}
