//! Times our pprof decoder on a file: `pprof_speed FILE ROUNDS`; the peer is `benches/go-pprof`.
//! It prints the best and the median time of a decode in microseconds.
#![expect(clippy::print_stdout, reason = "a command line program")]

use std::hint::black_box;
use std::time::Instant;

use candela_formats::ReadOptions;
use candela_formats::read_pprof;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("usage: pprof_speed FILE ROUNDS")?;
    let rounds: usize = arguments
        .next()
        .ok_or("usage: pprof_speed FILE ROUNDS")?
        .parse()?;
    let data = std::fs::read(file)?;
    let options = ReadOptions::default();
    let mut times = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let start = Instant::now();
        black_box(read_pprof(black_box(&data[..]), &options)?);
        times.push(start.elapsed().as_micros());
    }
    times.sort_unstable();
    println!("{} {}", times[0], times[times.len() / 2]);
    Ok(())
}
