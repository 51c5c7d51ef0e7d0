//! A trace as a profile.

use std::io::BufRead;

use candela_model::Labels;
use candela_model::Profile;

use crate::error::ReadError;
use crate::inflate::read_inflated;
use crate::named_stacks::NamedStacks;
use crate::options::ReadOptions;
use crate::perfetto::facts::Facts;
use crate::perfetto::packets::for_each_packet;
use crate::perfetto::packets::invalid;
use crate::perfetto::samples::SampleReader;
use crate::report::Report;
use crate::timed_samples::Window;

/// Reads the samples of a trace: `perf_sample`, `stack_sample`, `streaming_profile_packet` and the heap
/// profiles of heapprofd; all else in a trace is stepped over. Addresses are of the object file.
/// Processes, threads and heaps are labels of samples. Times are those since the Unix epoch where a
/// clock snapshot relates them; without one only the length of the window is known.
///
/// Heap profiles count from the start of the recording, so that of several the last one is taken.
///
/// # Errors
/// When the input cannot be read, exceeds a limit, is the text form of a trace, or has no sample.
/// Packets that are broken or refer to lost ones are left out and noted.
pub fn read_perfetto(
    input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let limits = &options.limits;
    let bytes = read_inflated(input, limits.inflated_bytes())?;
    if bytes.trim_ascii_start().starts_with(b"packet") || bytes.starts_with(b"#") {
        return Err(invalid(
            "this is the text form of a trace; make it binary with `protoc --encode=perfetto.protos.Trace`",
        ));
    }
    let mut stacks = NamedStacks::new(limits);
    let mut facts = Facts::new(limits);
    // Names and clocks may come behind the samples that they are for.
    let damage = for_each_packet(&bytes, limits.inflated_bytes(), &mut |data, packet| {
        // What is broken here is counted when samples are read.
        let _ = facts.take(data, packet, &mut stacks);
        facts.budget.check()
    })?;
    facts.clocks.sort();
    let report = &mut stacks.report;
    report.note_many(
        "packets_broken",
        "packets that are damaged were left out",
        damage.broken,
    );
    let text = "bytes behind the last whole packet were ignored";
    report.note_many("trailing_bytes", text, damage.cut);
    report.inner_bytes = damage.inner_bytes;
    let mut reader = SampleReader::new(&facts, stacks, limits);
    for_each_packet(&bytes, limits.inflated_bytes(), &mut |data, packet| {
        reader.packet(data, packet)
    })?;
    let times = reader.times;
    let is_own = reader.is_own;
    let (mut stacks, mut samples) = reader.finish()?;
    if samples.is_empty() {
        return Err(invalid(
            "the trace has no stack sample and no heap profile: record with `linux.perf` or `android.heapprofd`",
        ));
    }
    let real = [times.real, facts.clocks.real()];
    let first = real.iter().flatten().map(|(first, _)| *first).min();
    let last = real.iter().flatten().map(|(_, last)| *last).max();
    let window = match (first, last) {
        (Some(first), Some(last)) => Window::between(first, last),
        _ => {
            let length = times
                .other
                .map_or(0, |(first, last)| last.saturating_sub(first));
            let start = options.now_ns.max(0);
            Window::between(start, start.saturating_add(length.max(0)))
        }
    };
    if is_own {
        // Where we know the window only, we write its start.
        for time in samples.times_mut().filter(|time| **time == window.start_ns) {
            *time = 0;
        }
    }
    samples.finish(&mut stacks.profile, window, Labels::default(), options);
    Ok((stacks.profile, stacks.report))
}
