//! The text of `perf script`, of chosen processes alone.

use std::io;
use std::io::BufRead;
use std::io::Read;
use std::io::Write;

use crate::perf_tool::processes::Verdicts;

/// What is longer is cut: anybody's program may have a symbol of megabytes, which stands in the line of each sample.
const MOST_LINE_BYTES: u64 = 8192;

/// Copies what is kept, and says how many samples that were. A line that is no header belongs to the sample before it.
pub(super) fn copy(
    mut text: impl BufRead,
    mut output: impl Write,
    verdicts: &Verdicts,
) -> io::Result<u64> {
    let (mut line, mut is_kept, mut samples) = (Vec::new(), true, 0);
    loop {
        if !read_line(&mut text, &mut line)? {
            return Ok(samples);
        }
        if line.starts_with(b"#") {
            output.write_all(&line)?;
            continue;
        }
        if let Some((thread_name, pid)) = header(&line) {
            is_kept = verdicts.keeps_all() || verdicts.keeps(pid, &thread_name);
            samples += u64::from(is_kept);
        }
        if is_kept {
            output.write_all(&line)?;
        }
    }
}

/// The next line, cut where it is too long; false at the end.
fn read_line(text: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let mut piece = text.by_ref().take(MOST_LINE_BYTES);
    piece.read_until(b'\n', line)?;
    if line.is_empty() || line.ends_with(b"\n") {
        return Ok(!line.is_empty());
    }
    line.push(b'\n');
    text.skip_until(b'\n')?;
    Ok(true)
}

/// Thread name and process of a header: `name  PID/TID [CPU]  TIME: …`. The name may be anything, with spaces.
fn header(line: &[u8]) -> Option<(String, u32)> {
    let text = String::from_utf8_lossy(line);
    let mut before = 0;
    let mut words = text.split(' ').map(|word| {
        let start = before;
        before += word.len() + 1;
        (start, word)
    });
    let words: Vec<(usize, &str)> = words
        .by_ref()
        .filter(|(_, word)| !word.is_empty())
        .collect();
    words.windows(3).find_map(|three| {
        let [(start, process), (_, cpu), (_, time)] = three else {
            return None;
        };
        let (pid, tid) = process.split_once('/')?;
        let cpu = cpu.strip_prefix('[')?.strip_suffix(']')?;
        let (seconds, fraction) = time.strip_suffix(':')?.split_once('.')?;
        let is_number =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if ![tid, cpu, seconds, fraction].into_iter().all(is_number) {
            return None;
        }
        Some((text[..*start].trim().to_owned(), pid.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use candela_fleet::ProcessFilter;

    use super::*;
    use crate::perf_tool::processes::Processes;

    #[test]
    fn samples_of_others_go_with_their_frames() {
        let text = "# ========\n#\n\
            rustc  4294967294/4 [000]  1879.251128:   10101010 cpu-clock:I: \n\t  59f1366 f (/bin/rustc)\n\n\
            opt cgu.01  4294967295/7 [001]  1879.251229:   10101010 cpu-clock:I: \n\t  8978777 g (/bin/x)\n\n";
        let filter = ProcessFilter {
            comm: Some(vec!["opt cgu*".to_owned()]),
            ..ProcessFilter::default()
        };
        let verdicts = Processes::new(filter).verdicts();
        let mut kept = Vec::new();
        assert_eq!(
            copy(text.as_bytes(), &mut kept, &verdicts).expect("it is read"),
            1
        );
        let kept = String::from_utf8(kept).expect("text");
        assert!(
            kept.starts_with("# ========\n#\nopt cgu.01 ") && !kept.contains("59f1366"),
            "{kept}"
        );
        let all = Processes::new(ProcessFilter::default()).verdicts();
        let mut same = Vec::new();
        assert_eq!(
            copy(text.as_bytes(), &mut same, &all).expect("it is read"),
            2
        );
        assert_eq!(same, text.as_bytes());
    }

    #[test]
    fn long_lines_are_cut() {
        let long = "f".repeat(5_000_000);
        let text = format!("a 1/2 [000] 5.1: 1 cpu-clock:I:\n\t 1 {long} (x)\n\nb");
        let all = Processes::new(ProcessFilter::default()).verdicts();
        let mut kept = Vec::new();
        let samples = copy(text.as_bytes(), &mut kept, &all).expect("it is read");
        assert_eq!(samples, 1);
        assert!(kept.len() < 9000, "{}", kept.len());
        assert!(kept.ends_with(b"f\n\nb\n"));
    }

    #[test]
    fn any_name_may_stand_before_the_numbers() {
        let line = b"   a 1/2 [b] c  12/34 [002]  5.000001:  10101010 cpu-clock:I:  7f f (x)\n";
        assert_eq!(header(line), Some(("a 1/2 [b] c".to_owned(), 12)));
        assert_eq!(header(b"\t  59f1366 f (/bin/rustc)\n"), None);
    }
}
