//! What a push takes, and what the server needs to take them.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use crate::Figure;
use crate::host::Bench;
use crate::latency::Latencies;
use crate::latency::Quantiles;
use crate::latency::milliseconds;
use crate::load::Load;
use crate::load::profile;
use crate::process::Program;
use crate::process::measure_for;
use crate::soak::ServerSoak;

const PER_SECOND: u64 = 200;
/// Pushes and raw writes take turns, so that both meet the same disk.
const TURNS: usize = 12;
const TURN: Duration = Duration::from_secs(5);
const MAX_DIFFERENCE_MS: f64 = 3.0;
const MAX_MIB: f64 = 300.0;

/// I1: p99 of a push that is durable when it is answered, and of a plain `fdatasync` of as many bytes.
pub(crate) fn push(bench: &Bench) -> Result<Figure, String> {
    let folder = bench.folder("i1")?;
    let mut command = Command::new(bench.binary("candela")?);
    command
        .args(["server", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(folder.join("data"));
    let (mut server, url) = Program::start_candela(&mut command)?;
    // What a server does once: connections, the first segment, the allocator's arenas.
    push_for(&url, TURN)?;
    let mut pushes = Vec::new();
    let syncs = Latencies::default();
    for _ in 0..TURNS {
        pushes.extend(push_for(&url, TURN)?);
        sync_for(&folder.join("raw"), TURN, &syncs)?;
    }
    server.still_runs()?;
    let (pushes, syncs) = (Quantiles::of(pushes), Quantiles::of(syncs.take()));
    let [push, sync] = [pushes.p99, syncs.p99].map(milliseconds);
    Ok(Figure {
        text: format!(
            "p99 {push:.2} ms of {} pushes, raw fdatasync {sync:.2} ms of {} (p50 {:.2} and {:.2})",
            pushes.count,
            syncs.count,
            milliseconds(pushes.p50),
            milliseconds(syncs.p50)
        ),
        is_met: Some(push <= sync + MAX_DIFFERENCE_MS),
    })
}

fn push_for(url: &str, duration: Duration) -> Result<Vec<Duration>, String> {
    let load = Load::new(url, PER_SECOND).prepared_for(duration);
    std::thread::scope(|scope| {
        scope.spawn(|| load.run());
        measure_for(duration);
        load.is_over.store(true, Ordering::SeqCst);
    });
    match load.refused.load(Ordering::SeqCst) {
        0 => Ok(load.pushes.take()),
        refused => Err(format!("{refused} pushes were refused")),
    }
}

/// Writes into an allocated file what a push would put into the log, and syncs it.
fn sync_for(path: &Path, duration: Duration, syncs: &Latencies) -> Result<(), String> {
    const FILE_BYTES: usize = 64 << 20;
    let context = |error: std::io::Error| format!("{}: {error}", path.display());
    let record = profile(0).1;
    let file = File::create(path).map_err(context)?;
    file.write_all_at(&vec![0; FILE_BYTES], 0)
        .map_err(context)?;
    file.sync_all().map_err(context)?;
    let start = Instant::now();
    let pause = Duration::from_secs(1) / PER_SECOND as u32;
    for number in 0_u32.. {
        if start.elapsed() >= duration {
            break;
        }
        measure_for((pause * number).saturating_sub(start.elapsed()));
        let offset = number as usize * record.len() % (FILE_BYTES - record.len());
        let begun = Instant::now();
        file.write_all_at(&record, offset as u64).map_err(context)?;
        file.sync_data().map_err(context)?;
        syncs.add(begun.elapsed());
    }
    Ok(())
}

/// I3: ten minutes of 100 profiles a second of 1 000 series, queries beside them.
pub(crate) fn memory(bench: &Bench) -> Result<Figure, String> {
    const MINUTES: u64 = 10;
    let soak = ServerSoak::run(bench, MINUTES, &mut |_| {})?;
    Ok(Figure {
        text: soak.summary(),
        is_met: Some(soak.most_mib() <= MAX_MIB && soak.is_well()),
    })
}
