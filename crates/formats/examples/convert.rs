//! Converts standard input to a format: `convert svg < cpu.pb.gz > cpu.svg`.
#![expect(clippy::print_stderr, reason = "a command line program")]

use std::io::BufReader;
use std::io::Read;

use candela_formats::Format;
use candela_formats::ReadOptions;
use candela_formats::WriteOptions;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let target = std::env::args().nth(1).unwrap_or_default();
    let target = Format::from_name(&target).ok_or("usage: convert FORMAT < IN > OUT")?;
    let mut stdin = std::io::stdin().lock();
    let mut start = Vec::new();
    (&mut stdin).take(64 << 10).read_to_end(&mut start)?;
    let format = candela_formats::detect(&start).ok_or("the input is of no readable format")?;
    let input = BufReader::new(start.chain(stdin));
    let (profile, report) = candela_formats::read(format, input, &ReadOptions::default())?;
    let options = WriteOptions::default();
    let lost = candela_formats::write(target, &profile, std::io::stdout().lock(), &options)?;
    for note in report.notes.iter().chain(&lost.notes) {
        eprintln!("{note}");
    }
    Ok(())
}
