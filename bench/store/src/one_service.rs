//! S4: one service of twenty in the block of S1.

use std::error::Error;
use std::path::Path;

use candela_query::Engine;
use candela_query::Query;
use candela_store::Store;
use candela_store::TimeRange;

use crate::Row;
use crate::fill::TENANT;
use crate::fill::options;
use crate::timing::best;

const TARGET_MS: f64 = 5.0;
const SERVICE: &str = "service-07";

pub(crate) fn measure(directory: &Path) -> Result<Row, Box<dyn Error>> {
    let store = Store::open(options(directory))?;
    let snapshot = store.snapshot(TENANT, TimeRange::ALL)?;
    let block = snapshot.blocks.first().ok_or("no block")?;
    let services = block.meta().services.iter();
    let of_service = services.filter(|it| it.service == SERVICE);
    let (rows, total) = of_service.fold((0, 0), |sum, it| (sum.0 + it.rows, sum.1 + it.total));
    let mut query = Query::new(TENANT);
    query.selector = format!("{{service_name=\"{SERVICE}\"}}").parse()?;
    // Without the cache of sums, which would answer every run but the first.
    let engine = Engine::new(store.clone());
    let mut nodes = 0;
    let cost = best(|| {
        let answer = engine.flame_tree(&query)?;
        nodes = answer.value.len();
        if answer.value.root_total() == total {
            Ok(())
        } else {
            Err::<(), Box<dyn Error>>("the tree's total is not that of the service".into())
        }
    })?;
    let milliseconds = cost.milliseconds();
    Ok(Row {
        name: "S4",
        figure: format!(
            "{milliseconds:.1} ms ({:.1} ms of cores): {rows} of {} rows read, {} allocations",
            cost.core_milliseconds(),
            block.meta().rows,
            cost.allocations
        ),
        is_met: milliseconds <= TARGET_MS,
        details: vec![
            format!(
                "{:.1} ns a row of the service",
                milliseconds * 1e6 / rows as f64
            ),
            format!("{nodes} nodes in the tree"),
        ],
    })
}
