//! S5 and S6: seven days of one service of four, through rollups; and the same with ten times the
//! samples.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use candela_query::Engine;
use candela_query::Query;
use candela_store::ManualClock;
use candela_store::Store;
use candela_store::StoreOptions;
use candela_store::TimeRange;

use crate::Row;
use crate::fill::HOUR_NS;
use crate::fill::START_NS;
use crate::fill::TENANT;
use crate::fill::fill_and_compact;
use crate::fill::options;
use crate::generator::Shape;
use crate::timing::Cost;
use crate::timing::best;

const HOURS: i64 = 7 * 24;
const TARGET_MS: f64 = 100.0;
const TARGET_RATIO: f64 = 1.5;
const SERVICE: &str = "service-02";

/// A store with its week, and what a question over it costs.
struct Week {
    samples: u64,
    cost: Cost,
    /// Bytes and rows by level, as the details of a row.
    levels: Vec<String>,
}

pub(crate) fn measure() -> Result<[Row; 2], Box<dyn Error>> {
    let sparse = week(300)?;
    let dense = week(30)?;
    let milliseconds = dense.cost.milliseconds();
    // Of cores: what others do on the machine in one of the two would decide the ratio.
    let ratio = dense.cost.core_milliseconds() / sparse.cost.core_milliseconds();
    let times = dense.samples as f64 / sparse.samples as f64;
    let five = Row {
        name: "S5",
        figure: format!(
            "{milliseconds:.1} ms ({:.1} ms of cores) for 7 days of one service of four, {} samples in all; {} allocations",
            dense.cost.core_milliseconds(),
            dense.samples,
            dense.cost.allocations
        ),
        is_met: milliseconds <= TARGET_MS,
        details: dense.levels,
    };
    let six = Row {
        name: "S6",
        figure: format!(
            "{ratio:.2} times the time of cores for {times:.1} times the samples ({:.1} ms against {:.1} ms)",
            dense.cost.core_milliseconds(),
            sparse.cost.core_milliseconds()
        ),
        is_met: ratio <= TARGET_RATIO,
        details: sparse.levels,
    };
    Ok([five, six])
}

/// A week with a profile of each pod every so many seconds.
fn week(interval_seconds: i64) -> Result<Week, Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let store = Store::open(options_after_week(directory.path()))?;
    let shape = Shape {
        services: 4,
        pods: 1,
        interval_ns: interval_seconds * 1_000_000_000,
        draws: 700,
    };
    let samples = fill_and_compact(&store, shape, HOURS)?;
    let mut query = Query::new(TENANT);
    query.selector = format!("{{service_name=\"{SERVICE}\"}}").parse()?;
    query.range = TimeRange {
        from_ns: START_NS,
        to_ns: START_NS + HOURS * HOUR_NS,
    };
    let engine = Engine::new(store.clone());
    let cost = best(|| {
        let answer = engine.flame_tree(&query)?;
        if answer.value.root_total() > 0 {
            Ok(())
        } else {
            Err::<(), Box<dyn Error>>("the week is empty".into())
        }
    })?;
    Ok(Week {
        samples,
        cost,
        levels: levels(directory.path(), &store)?,
    })
}

/// The clock stands behind the week, so that its hours and days are over.
fn options_after_week(directory: &Path) -> StoreOptions {
    StoreOptions {
        clock: Arc::new(ManualClock::at(START_NS + (HOURS + 48) * HOUR_NS)),
        ..options(directory)
    }
}

fn levels(directory: &Path, store: &Store) -> Result<Vec<String>, Box<dyn Error>> {
    let mut lines = vec![format!("{} blocks in all", store.status().blocks)];
    let samples = directory.join("blocks/v1/samples");
    for level in candela_store::Level::ALL {
        let name = format!("level={}", level.number());
        let mut bytes = 0;
        for tenant in std::fs::read_dir(&samples)? {
            for date in std::fs::read_dir(tenant?.path())? {
                let folder = date?.path().join(&name);
                for file in std::fs::read_dir(folder).into_iter().flatten() {
                    bytes += file?.metadata()?.len();
                }
            }
        }
        lines.push(format!("{level:?}: {bytes} bytes of samples"));
    }
    Ok(lines)
}
