//! Rows S1 and S3 of the targets.
//!
//! `candela-bench-store [S1] [S3] [--json] [--samples N]` appends the profiles of the generator to
//! a store in `TMPDIR`, flushes them to one block, and measures its bytes and the time to merge it
//! to a flame tree. S3 runs in a child that is bound to one processor by `taskset`, and in one that
//! is not. `fill DIRECTORY` only writes the block, for other engines to read.
#![expect(clippy::print_stdout, reason = "figures are what this program is for")]

mod generator;
mod merge;
mod size;

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use candela_store::ManualClock;
use candela_store::Store;
use candela_store::StoreOptions;
use candela_store::SyncMode;
use generator::Generator;

/// 00:00 of a day, so that all profiles are of one block.
const START_NS: i64 = 1_732_147_200_000_000_000;
const SAMPLES: u64 = 5_000_000;

/// One row as the table of the driver wants it.
#[derive(Debug)]
pub(crate) struct Row {
    name: &'static str,
    figure: String,
    is_met: bool,
    /// Lines with what the figure is made of.
    details: Vec<String>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [command, directory] = &arguments[..] {
        match command.as_str() {
            "merge" => return merge::child(Path::new(directory)),
            "fill" => return fill(Path::new(directory), SAMPLES),
            _ => {}
        }
    }
    let is_asked = |name: &str| {
        let names = arguments.iter().filter(|it| it.starts_with('S'));
        names.clone().count() == 0 || names.clone().any(|it| it == name)
    };
    let directory = tempfile::tempdir()?;
    fill(directory.path(), samples(&arguments)?)?;
    let mut rows = Vec::new();
    if is_asked("S1") {
        rows.push(size::measure(directory.path())?);
    }
    if is_asked("S3") {
        rows.push(merge::measure(directory.path())?);
    }
    for row in rows {
        if arguments.iter().any(|it| it == "--json") {
            let Row {
                name,
                figure,
                is_met,
                ..
            } = row;
            println!(
                "{}",
                serde_json::json!({"row": name, "figure": figure, "met": is_met})
            );
            continue;
        }
        println!(
            "{}  {}  {}",
            row.name,
            if row.is_met { "met" } else { "missed" },
            row.figure
        );
        for line in row.details {
            println!("    {line}");
        }
    }
    Ok(())
}

fn samples(arguments: &[String]) -> Result<u64, Box<dyn Error>> {
    let position = arguments.iter().position(|it| it == "--samples");
    let given = position.and_then(|position| arguments.get(position + 1));
    Ok(given.map_or(Ok(SAMPLES), |text| text.parse())?)
}

/// The options under which the block is written and read.
pub(crate) fn options(directory: &Path) -> StoreOptions {
    StoreOptions {
        sync: SyncMode::Os,
        readable_stacks: true,
        flush_bytes: u64::MAX,
        max_head_bytes: u64::MAX,
        max_age: None,
        max_bytes: None,
        max_volume_percent: None,
        cache_bytes: 1 << 30,
        clock: Arc::new(ManualClock::at(START_NS)),
        ..StoreOptions::new(directory)
    }
}

/// Appends profiles until there are as many samples, and writes them to one block.
fn fill(directory: &Path, samples: u64) -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().build()?;
    let store = Store::open(options(directory))?;
    let mut generator = Generator::new(START_NS);
    let mut count = 0;
    runtime.block_on(async {
        while count < samples {
            let profile = generator.profile();
            count += profile.sample_count() as u64;
            store.append("bench", profile).await?;
        }
        store.shutdown().await?;
        Ok(())
    })
}
