//! Stores with generated profiles.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use candela_store::ManualClock;
use candela_store::Store;
use candela_store::StoreOptions;
use candela_store::SyncMode;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::generator::Generator;
use crate::generator::Shape;

pub(crate) const TENANT: &str = "bench";
/// 00:00 of a day, so that profiles of a day are of one block.
pub(crate) const START_NS: i64 = 1_732_147_200_000_000_000;
pub(crate) const HOUR_NS: i64 = 3_600_000_000_000;
/// Appends at a time: enough that nobody waits for the log.
const APPENDS_AT_A_TIME: usize = 64;

/// The options under which a block is written and read.
pub(crate) fn options(directory: &Path) -> StoreOptions {
    StoreOptions {
        sync: SyncMode::Os,
        readable_stacks: true,
        flush_bytes: u64::MAX,
        max_head_bytes: u64::MAX,
        max_age: None,
        ten_minutes_max_age: None,
        hourly_max_age: None,
        max_bytes: None,
        max_volume_percent: None,
        // Only when asked: what runs by itself would run while something is measured.
        compaction_cpu_percent: 0,
        cache_bytes: 1 << 30,
        clock: Arc::new(ManualClock::at(START_NS)),
        ..StoreOptions::new(directory)
    }
}

/// Appends profiles of the fleet until there are as many samples, and writes them to one block.
pub(crate) fn fill(directory: &Path, samples: u64) -> Result<(), Box<dyn Error>> {
    let runtime = Runtime::new()?;
    let store = Store::open(options(directory))?;
    let mut generator = Generator::new(Shape::FLEET, START_NS);
    let mut count = 0;
    runtime.block_on(async {
        while count < samples {
            let profile = generator.profile();
            count += profile.sample_count() as u64;
            store.append(TENANT, profile).await?;
        }
        store.shutdown().await?;
        Ok(())
    })
}

/// Appends so many profiles, flushed every hour of their time as a server would at the latest, and
/// compacts them as far as it goes. How many samples there were.
pub(crate) fn fill_and_compact(
    store: &Store,
    shape: Shape,
    hours: i64,
) -> Result<u64, Box<dyn Error>> {
    let runtime = Runtime::new()?;
    let mut generator = Generator::new(shape, START_NS);
    let of_an_hour = HOUR_NS / shape.interval_ns * (shape.services * shape.pods) as i64;
    let mut samples = 0;
    for _ in 0..hours {
        runtime.block_on(async {
            let mut appends = JoinSet::new();
            for _ in 0..of_an_hour {
                let profile = generator.profile();
                samples += profile.sample_count() as u64;
                let store = store.clone();
                appends.spawn(async move { store.append(TENANT, profile).await });
                if appends.len() == APPENDS_AT_A_TIME {
                    appends.join_next().await.ok_or("an append runs")???;
                }
            }
            while let Some(appended) = appends.join_next().await {
                appended??;
            }
            store.flush().await?;
            Ok::<(), Box<dyn Error>>(())
        })?;
    }
    store.compact()?;
    Ok(samples)
}
