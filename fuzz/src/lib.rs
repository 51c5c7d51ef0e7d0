//! Readers that must survive any bytes, each with what must hold of the bytes that it accepts.
//!
//! The same targets run in two ways: under libFuzzer, which is led by coverage and finds new
//! inputs (`cargo xtask fuzz`), and in `cargo test`, with so many mutations of the seeds and with
//! every input that ever made one fail (`fuzz/regressions`).
#![forbid(unsafe_code)]

mod formats;
pub mod mutate;
mod queries;
mod store;

/// A reader and what to feed it.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// What it is called on the command line.
    pub name: &'static str,
    /// Takes any bytes.
    ///
    /// # Panics
    /// When the reader breaks a promise; that is what is looked for.
    pub run: fn(&[u8]),
    /// Sound inputs to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target {
        name: "log",
        run: store::log,
        seeds: store::log_seeds,
    },
    Target {
        name: "payload",
        run: store::payload,
        seeds: store::payload_seeds,
    },
    Target {
        name: "block",
        run: store::block,
        seeds: store::block_seeds,
    },
    Target {
        name: "selector",
        run: queries::selector,
        seeds: queries::selector_seeds,
    },
    Target {
        name: "filter",
        run: queries::filter,
        seeds: queries::filter_seeds,
    },
    Target {
        name: "pprof",
        run: formats::pprof,
        seeds: formats::pprof_seeds,
    },
    Target {
        name: "otlp",
        run: formats::otlp,
        seeds: formats::otlp_seeds,
    },
    Target {
        name: "folded",
        run: formats::folded,
        seeds: formats::folded_seeds,
    },
];

/// The target of this name.
#[must_use]
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
