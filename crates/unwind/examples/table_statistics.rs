//! Builds the tables of the given objects and prints their size and the time it took.
//!
//! ```text
//! cargo run --release -p candela-unwind --example table_statistics -- /lib/x86_64-linux-gnu/libc.so.6
//! ```
#![expect(clippy::print_stdout, reason = "an example prints what it shows")]

use candela_unwind::{RuleSet, Table};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut rules = RuleSet::new();
    for path in std::env::args().skip(1) {
        let bytes = std::fs::read(&path)?;
        let start = Instant::now();
        let table = Table::build(&bytes, &mut rules);
        let elapsed = start.elapsed();
        match table {
            Ok(table) => println!(
                "{path}: {elapsed:?}, {:?}, {} rules",
                table.statistics(),
                rules.len()
            ),
            Err(error) => println!("{path}: {elapsed:?}, {error}"),
        }
    }
    Ok(())
}
