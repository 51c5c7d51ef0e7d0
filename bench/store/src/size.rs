//! S1: stored bytes per sample.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::path::Path;

use candela_store::Store;
use candela_store::TimeRange;
use parquet::file::reader::FileReader;
use parquet::file::reader::SerializedFileReader;

use crate::Row;
use crate::fill::options;

/// Targets: samples table, block without and with the readable stacks.
const TARGETS: [f64; 3] = [1.2, 2.3, 3.2];

pub(crate) fn measure(directory: &Path) -> Result<Row, Box<dyn Error>> {
    let store = Store::open(options(directory))?;
    let snapshot = store.snapshot("bench", TimeRange::ALL)?;
    let [block] = &snapshot.blocks[..] else {
        return Err("the profiles did not make one block".into());
    };
    let samples = block.meta().rows as f64;
    let mut details = vec![format!(
        "{samples} samples, {} profiles",
        block.meta().profiles
    )];
    let mut frames = 0;
    let mut samples_bytes = 0;
    for file in &block.meta().files {
        let bytes = file.bytes as f64;
        details.push(format!(
            "{:<12} {:>10} bytes  {:.3} a sample",
            file.table,
            bytes,
            bytes / samples
        ));
        let path = directory.join("blocks/v1").join(&file.path);
        for (column, bytes) in columns(&path)? {
            details.push(format!(
                "    {column:<32} {bytes:>10}  {:.3}",
                bytes as f64 / samples
            ));
            if column.starts_with("frames") {
                frames += bytes;
            }
        }
        if file.table == "samples" {
            samples_bytes = file.bytes;
        }
    }
    let all = block.meta().bytes;
    let figures = [samples_bytes, all - frames, all].map(|bytes| bytes as f64 / samples);
    Ok(Row {
        name: "S1",
        figure: format!(
            "{:.2} B samples table · {:.2} / {:.2} B whole block without / with frames",
            figures[0], figures[1], figures[2]
        ),
        is_met: figures
            .iter()
            .zip(TARGETS)
            .all(|(figure, target)| *figure <= target),
        details,
    })
}

/// Compressed bytes by column.
pub(crate) fn columns(path: &Path) -> Result<BTreeMap<String, u64>, Box<dyn Error>> {
    let reader = SerializedFileReader::new(File::open(path)?)?;
    let mut columns = BTreeMap::new();
    for group in reader.metadata().row_groups() {
        for column in group.columns() {
            let bytes = u64::try_from(column.compressed_size())?;
            *columns.entry(column.column_path().string()).or_default() += bytes;
        }
    }
    Ok(columns)
}
