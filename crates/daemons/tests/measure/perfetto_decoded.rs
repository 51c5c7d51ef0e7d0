//! How many samples a native snapshot has of a known program, and how many are whole, as another decoder finds them.

use std::time::Duration;

use crate::host::perfetto_decoded::Decoded;
use candela_testing::expect_within;
use candela_testing::more_than;

#[test]
fn another_decoder_finds_all_samples() {
    // A good three seconds of the clock, of which it sleeps a seventh.
    let Some(decoded) = Decoded::after(Duration::from_millis(3_000)) else {
        return;
    };
    assert_eq!(
        (&decoded.trace["lost"], &decoded.trace["has_gap"]),
        (&0.into(), &false.into())
    );
    let before_s = (decoded.triggered_ns - decoded.first_ns) as f64 / 1e9;
    expect_within("seconds before the trigger", before_s, more_than(3.0), "");
    let of_worker = decoded.trace["comms"]["known-worker"].as_f64();
    let of_worker = of_worker.unwrap_or_default();
    expect_within("switches of the program", of_worker, more_than(50.0), "");
    let states = &decoded.trace["states"];
    let slept = states["1"].as_f64().unwrap_or_default();
    expect_within("switches to sleep", slept, more_than(10.0), states);
    let samples = decoded.samples();
    let (count, expected) = (samples.count, samples.expected);
    let details = format_args!("{samples:?}");
    let count = f64::from(count);
    let off_by = (count - expected).abs();
    let tolerance = expected * 0.25 + 10.0;
    expect_within(
        "samples that are missing or too many",
        off_by,
        ..tolerance,
        details,
    );
    expect_within("samples", count, more_than(50.0), details);
    let share = |part: u32| f64::from(part) / count;
    expect_within(
        "share with the whole stack",
        share(samples.whole),
        0.9..,
        details,
    );
    let known = share(samples.in_known_work);
    expect_within("share where the program works", known, 0.8.., details);
    let on_the_cpu = share(samples.on_the_cpu);
    expect_within(
        "share on the CPU that runs the program",
        on_the_cpu,
        0.95..,
        details,
    );
}
