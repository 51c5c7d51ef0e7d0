//! Times our reader of recordings on a file: `jfr_speed FILE ROUNDS`; the peer is `jfr print`.
//! It prints the best and the median time of a read in microseconds, and the megabytes a second of
//! the best one, of the file as it is inflated.
#![expect(clippy::print_stdout, reason = "a command line program")]

use std::hint::black_box;
use std::time::Instant;

use candela_formats::JfrOptions;
use candela_formats::ReadOptions;
use candela_formats::inflate;
use candela_formats::read_jfr;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("usage: jfr_speed FILE ROUNDS")?;
    let rounds: usize = arguments
        .next()
        .ok_or("usage: jfr_speed FILE ROUNDS")?
        .parse()?;
    let file = std::fs::read(file)?;
    let data = inflate(&file, usize::MAX)?;
    let options = JfrOptions::default();
    let mut times = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let start = Instant::now();
        black_box(read_jfr(
            black_box(&data[..]),
            &options,
            &ReadOptions::default(),
        )?);
        times.push(start.elapsed().as_micros());
    }
    times.sort_unstable();
    let rate = data.len() as f64 / times[0].max(1) as f64;
    println!("{} {} {rate:.0} MB/s", times[0], times[times.len() / 2]);
    Ok(())
}
