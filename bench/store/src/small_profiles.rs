//! S2: stored bytes per sample of small profiles, as an agent in the kernel makes them: ten stacks
//! of a container each ten seconds, for a day.

use std::collections::BTreeMap;
use std::error::Error;

use candela_store::Level;
use candela_store::Store;
use candela_store::TimeRange;

use crate::Row;
use crate::fill::TENANT;
use crate::fill::fill_and_compact;
use crate::fill::options;
use crate::generator::Shape;
use crate::size::columns;

const TARGET: f64 = 3.0;
const HOURS: i64 = 24;
const SHAPE: Shape = Shape {
    services: 20,
    pods: 5,
    interval_ns: 10_000_000_000,
    draws: 11,
};

pub(crate) fn measure() -> Result<Row, Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let store = Store::open(options(directory.path()))?;
    let samples = fill_and_compact(&store, SHAPE, HOURS)?;
    let snapshot = store.snapshot(TENANT, TimeRange::ALL)?;
    let is_of_day = |level: u32| level == Level::Day.number();
    let days = snapshot.blocks.iter().map(|block| block.meta());
    let days: Vec<_> = days.filter(|meta| is_of_day(meta.level)).collect();
    if days.iter().map(|meta| meta.rows).sum::<u64>() != samples {
        return Err("not all samples came to the block of the day".into());
    }
    let profiles: u64 = days.iter().map(|meta| meta.profiles).sum();
    let per_sample = |bytes: u64| bytes as f64 / samples as f64;
    let mut tables: BTreeMap<&str, u64> = BTreeMap::new();
    let mut by_column: BTreeMap<String, u64> = BTreeMap::new();
    for file in days.iter().flat_map(|meta| &meta.files) {
        *tables.entry(&file.table).or_default() += file.bytes;
        let path = directory.path().join("blocks/v1").join(&file.path);
        for (column, bytes) in columns(&path)? {
            *by_column
                .entry(format!("{}.{column}", file.table))
                .or_default() += bytes;
        }
    }
    let mut details = vec![format!("{samples} samples of {profiles} profiles")];
    let by_column = by_column.into_iter();
    details.extend(by_column.map(|(column, bytes)| format!("{column}  {:.3}", per_sample(bytes))));
    let tables = tables.iter();
    let tables: Vec<String> = tables
        .map(|(table, bytes)| format!("{table} {:.2}", per_sample(*bytes)))
        .collect();
    let all = per_sample(days.iter().map(|meta| meta.bytes).sum());
    Ok(Row {
        name: "S2",
        figure: format!("{all:.2} B a sample after a day ({})", tables.join(", ")),
        is_met: all <= TARGET,
        details,
    })
}
