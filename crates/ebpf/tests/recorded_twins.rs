//! The walk that runs in the kernel, compiled for user space, on stacks of real programs that were recorded: the
//! frames are those of the walk in Rust, and nothing of it needs rights.

use crate::recorded;
use crate::recorded::{Recorded, Replay};
use crate::support::twin::{self, TwinCase, TwinRegion};

fn twin_of<'a>(replay: &'a Replay<'a>) -> TwinCase<'a> {
    let Recorded {
        registers,
        regions,
        words,
        ..
    } = replay.recorded;
    let regions = regions.iter().map(|region| TwinRegion {
        range: region.start..region.end,
        bias: region.bias,
        table: region.table,
    });
    let words = words.iter();
    TwinCase {
        rules: replay.rules.rules(),
        tables: replay.tables.iter().map(|table| (table, true)).collect(),
        regions: regions.collect(),
        registers: *registers,
        memory: words
            .map(|(address, value)| (*address, value.to_le_bytes().to_vec()))
            .collect(),
    }
}

#[test]
fn the_walk_of_the_kernel_finds_the_same_frames() {
    let recorded = recorded::all();
    let replays: Vec<Replay<'_>> = recorded.values().map(Replay::of).collect();
    let Some(walked) = twin::walk_in_c(replays.iter().map(twin_of)) else {
        return;
    };
    assert_eq!(walked.len(), recorded.len());
    for ((name, stack), (result, frames)) in recorded.iter().zip(walked) {
        assert_eq!(result.name(), stack.result, "{name}");
        assert_eq!(frames, stack.addresses(), "{name}");
        assert!(frames.len() > 3, "{name}: {} frames", frames.len());
    }
}
