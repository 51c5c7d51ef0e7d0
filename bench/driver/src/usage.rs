//! What programs that run to their end take, as GNU time prints it.

use std::path::Path;
use std::process::Command;
use std::process::Stdio;
use std::time::Instant;

/// What one run took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// From start to end.
    pub(crate) seconds: f64,
    /// Resident memory at its peak, bytes.
    pub(crate) peak_bytes: u64,
}

/// Runs programs in turns, so that they meet the same machine; the least time of each, which is what is
/// left when nothing else runs, and the greatest peak. Each of `programs` has its arguments behind it.
pub(crate) fn least_of_turns(
    turns: usize,
    folder: &Path,
    programs: &[Vec<String>],
) -> Result<Vec<Usage>, String> {
    let mut least: Vec<Option<Usage>> = vec![None; programs.len()];
    for _ in 0..turns {
        for (program, least) in programs.iter().zip(&mut least) {
            let used = run(folder, program)?;
            *least = Some(least.map_or(used, |before| Usage {
                seconds: before.seconds.min(used.seconds),
                peak_bytes: before.peak_bytes.max(used.peak_bytes),
            }));
        }
    }
    least
        .into_iter()
        .map(|usage| usage.ok_or_else(|| "no turns".to_owned()))
        .collect()
}

fn run(folder: &Path, arguments: &[String]) -> Result<Usage, String> {
    let told = folder.join("time");
    let mut command = Command::new("time");
    command
        .args(["--quiet", "--format", "%M", "--output"])
        .arg(&told)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let begun = Instant::now();
    let ended = command
        .output()
        .map_err(|error| format!("GNU time: {error}"))?;
    let seconds = begun.elapsed().as_secs_f64();
    if !ended.status.success() {
        let reason = String::from_utf8_lossy(&ended.stderr);
        let reason = reason.lines().last().unwrap_or_default().to_owned();
        return Err(format!(
            "{}: {}: {reason}",
            arguments.join(" "),
            ended.status
        ));
    }
    let told = std::fs::read_to_string(&told).map_err(|error| error.to_string())?;
    let kib: u64 = told
        .trim()
        .parse()
        .map_err(|_| format!("GNU time says {told:?}"))?;
    Ok(Usage {
        seconds,
        peak_bytes: kib << 10,
    })
}
