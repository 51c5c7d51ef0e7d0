//! What naming addresses costs, beside blazesym, on any ELF file: `symbolize_cost FILE [ADDRESSES]
//! [ROUNDS]`.
//!
//! Cold is a new symbolizer, from opening the file to the last of ADDRESSES names (spread evenly
//! over the file's code); warm is the same addresses again, per address. Rounds of both libraries
//! alternate and medians are compared, so that a noisy machine hurts both alike. Run it with
//! `--release`.

#![expect(clippy::print_stdout, reason = "printing figures is what it is for")]

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Input, Symbolizer as BlazeSymbolizer};
use candela_symbols::{ObjectFile, SymbolCache, SymbolCacheOptions, SymbolSource};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Times of one round, and how many addresses got a name.
struct Round {
    first: Duration,
    all: Duration,
    warm_per_address: Duration,
    named: usize,
    anonymous_memory_kib: u64,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(file) = arguments.next().map(PathBuf::from) else {
        println!("usage: symbolize_cost FILE [ADDRESSES] [ROUNDS]");
        return;
    };
    let mut number = |default| {
        arguments
            .next()
            .and_then(|text| text.parse().ok())
            .unwrap_or(default)
    };
    let (count, rounds) = (number(1000), number(7));
    let addresses = code_addresses(&file, count);
    println!(
        "{}: {} addresses, {rounds} rounds",
        file.display(),
        addresses.len()
    );

    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        ours.push(candela_round(&file, &addresses));
        theirs.push(blazesym_round(&file, &addresses));
    }
    println!(
        "{:<28}{:>14}{:>14}{:>8}",
        "", "candela", "blazesym", "ratio"
    );
    print_row("cold, first address (µs)", &ours, &theirs, |round| {
        round.first.as_secs_f64() * 1e6
    });
    print_row("cold, all addresses (µs)", &ours, &theirs, |round| {
        round.all.as_secs_f64() * 1e6
    });
    print_row("warm, per address (ns)", &ours, &theirs, |round| {
        round.warm_per_address.as_secs_f64() * 1e9
    });
    print_row("anonymous memory (KiB)", &ours, &theirs, |round| {
        round.anonymous_memory_kib as f64
    });
    print_row("named", &ours, &theirs, |round| round.named as f64);
}

/// Addresses spread evenly over the executable segments, as a sampler would not have them: the
/// worst case for caches.
fn code_addresses(file: &Path, count: u64) -> Vec<u64> {
    let object = ObjectFile::open(file).expect("the file is a readable ELF file");
    let code: Vec<_> = object
        .segments()
        .iter()
        .filter(|segment| segment.executable)
        .collect();
    let total: u64 = code.iter().map(|segment| segment.file_size).sum();
    let mut addresses = Vec::new();
    for segment in code {
        let share = (count * segment.file_size / total.max(1)).max(1);
        let step = (segment.file_size / share).max(1);
        addresses.extend((0..share).map(|index| segment.address + index * step + step / 2));
    }
    addresses
}

fn candela_round(file: &Path, addresses: &[u64]) -> Round {
    let memory = anonymous_memory_kib();
    let start = Instant::now();
    let options = SymbolCacheOptions {
        max_symbol_bytes: usize::MAX,
        ..SymbolCacheOptions::default()
    };
    let cache = SymbolCache::new(options);
    let object = cache
        .open_path(file, Path::new("/"))
        .expect("it was opened before");
    let resolve = |address| cache.resolve(&object, address);
    black_box(resolve(addresses[0]));
    let first = start.elapsed();
    let named = addresses
        .iter()
        .filter(|address| resolve(**address).source != SymbolSource::None)
        .count();
    let all = start.elapsed();
    let anonymous_memory_kib = anonymous_memory_kib().saturating_sub(memory);
    let start = Instant::now();
    for address in addresses {
        black_box(resolve(*address));
    }
    let warm_per_address = start.elapsed() / addresses.len() as u32;
    println!(
        "  estimate of heap: {} KiB of {anonymous_memory_kib} KiB",
        cache.stats().symbol_bytes / 1024
    );
    Round {
        first,
        all,
        warm_per_address,
        named,
        anonymous_memory_kib,
    }
}

fn blazesym_round(file: &Path, addresses: &[u64]) -> Round {
    let memory = anonymous_memory_kib();
    let start = Instant::now();
    let symbolizer = BlazeSymbolizer::new();
    let source = Source::Elf(Elf::new(file));
    let resolve = |address| {
        symbolizer
            .symbolize_single(&source, Input::VirtOffset(address))
            .expect("the file is readable")
    };
    black_box(resolve(addresses[0]));
    let first = start.elapsed();
    let named = addresses
        .iter()
        .filter(|address| resolve(**address).as_sym().is_some())
        .count();
    let all = start.elapsed();
    let anonymous_memory_kib = anonymous_memory_kib().saturating_sub(memory);
    let start = Instant::now();
    for address in addresses {
        black_box(resolve(*address));
    }
    let warm_per_address = start.elapsed() / addresses.len() as u32;
    Round {
        first,
        all,
        warm_per_address,
        named,
        anonymous_memory_kib,
    }
}

fn anonymous_memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .expect("Linux has it since 4.5")
}

fn print_row(name: &str, ours: &[Round], theirs: &[Round], figure: impl Fn(&Round) -> f64) {
    let (ours, theirs) = (
        median(ours.iter().map(&figure)),
        median(theirs.iter().map(&figure)),
    );
    println!("{name:<28}{ours:>14.1}{theirs:>14.1}{:>8.2}", ours / theirs);
}

fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<_> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
