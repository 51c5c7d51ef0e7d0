//! How many samples a native snapshot has of a known program, and how many are whole, as another decoder finds them.

use std::time::Duration;

use crate::host::perfetto_decoded::Decoded;

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
    assert!(
        decoded.triggered_ns - decoded.first_ns > 3_000_000_000,
        "what came before the moment"
    );
    let of_worker = decoded.trace["comms"]["known-worker"].as_u64();
    assert!(of_worker.is_some_and(|count| count > 50));
    let slept = decoded.trace["states"]["1"].as_u64().unwrap_or_default();
    assert!(slept > 10, "{}", decoded.trace["states"]);
    let samples = decoded.samples();
    let (count, expected) = (samples.count, samples.expected);
    assert!(
        (f64::from(count) - expected).abs() < expected * 0.25 + 10.0,
        "{samples:?}"
    );
    assert!(
        count > 50 && samples.whole * 10 >= count * 9 && samples.in_known_work * 10 >= count * 8,
        "{samples:?}"
    );
    assert!(samples.on_the_cpu * 100 >= count * 95, "{samples:?}");
}
