//! CPU profiles of gperftools, and of runtimes that write the same: words of the machine that was
//! profiled, as gperftools' `docs/cpuprofile-fileformat` describes them.
//!
//! Behind a header come records of a count, a number of frames and the frames' addresses, then a
//! trailer, and then text: mapped files, or of a JVM the names of its frames.

use std::io::BufRead;
use std::ops::Range;

use candela_model::FrameKind;
use candela_model::LabelSetId;
use candela_model::Profile;
use hashbrown::HashMap;

use crate::error::ReadError;
use crate::inflate::read_inflated;
use crate::legacy::CPU_NAME;
use crate::legacy::address_stacks::AddressStacks;
use crate::legacy::address_stacks::Whole;
use crate::legacy::java_symbols;
use crate::legacy::lines::Lines;
use crate::legacy::lines::corrupt;
use crate::legacy::lines::repaired;
use crate::legacy::memory_map::MemoryMap;
use crate::naming;
use crate::options::ReadOptions;
use crate::report::Report;

/// How the words of a file are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Words {
    bytes: usize,
    is_big_endian: bool,
}

/// What the header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    words: Words,
    /// Of a JVM: addresses are numbers of frames that the text behind names.
    is_java: bool,
    /// Microseconds between samples.
    period: u64,
}

/// The samples in the order of the file.
#[derive(Debug, Default)]
struct Records {
    frames: Vec<u64>,
    /// Of each record its frames and its count.
    records: Vec<(Range<usize>, i64)>,
    /// Where the text begins.
    end: usize,
    is_cut: bool,
}

/// All that a word can be.
const ENCODINGS: [Words; 4] = [
    Words::new(4, false),
    Words::new(4, true),
    Words::new(8, false),
    Words::new(8, true),
];

const HEADER_WORDS: usize = 5;

/// Reads a CPU profile of gperftools (also Go before 1.9 and Google's JVM agent), of any word size and
/// byte order. Callers are return addresses, so that their address is that of the byte before.
///
/// As Go's pprof does, frames that the profiler's own signal handler left second in all stacks are
/// taken out, and leaves that stand there twice. Both are noted.
///
/// # Errors
/// When the input cannot be read, exceeds a limit, or has another header. A file that breaks off is
/// read as far as it goes, when it has samples.
pub fn read_gperftools_cpu(
    input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let mut bytes = read_inflated(input, options.limits.inflated_bytes())?;
    let Some(header) = Header::parse(&bytes) else {
        let problem = "the header is not 0, 3, 0, period, 0 in words of 4 or 8 bytes";
        return Err(corrupt(CPU_NAME, problem, 0));
    };
    let mut records = Records::read(&bytes, header.words);
    if records.is_cut && records.records.is_empty() {
        let problem = "the input breaks off before the end of the first sample";
        return Err(corrupt(CPU_NAME, problem, records.end));
    }
    let kind = if header.is_java {
        FrameKind::Jvm
    } else {
        FrameKind::Native
    };
    let mut stacks = AddressStacks::new(&options.limits, kind, 2);
    if records.is_cut {
        stacks.report.note(
            "cut_off",
            "the input breaks off: samples behind that are missing",
        );
    }
    if !header.is_java {
        records.take_out_signal_frames(&mut stacks.report);
    }
    let period_ns = i64::try_from(header.period.saturating_mul(1_000)).unwrap_or(i64::MAX);
    for (frames, count) in &records.records {
        let values = [*count, count.saturating_mul(period_ns)];
        let leaf_first = &records.frames[frames.clone()];
        stacks.add(leaf_first, LabelSetId(0), &values)?;
    }
    let text = repaired(bytes.split_off(records.end), &mut stacks.report);
    let memory_map = if header.is_java {
        java_symbols::read(Lines::new(&text), &mut stacks);
        MemoryMap::default()
    } else {
        MemoryMap::read(&text, &options.limits, &mut stacks.report)
    };
    let cpu = ("cpu", "nanoseconds");
    let whole = Whole {
        types: vec![
            naming::profile_type(("samples", "count"), cpu, None),
            naming::profile_type(cpu, cpu, None),
        ],
        period: period_ns,
        duration_ns: 0,
        memory_map,
        addresses_are_ids: header.is_java,
    };
    stacks.finish(CPU_NAME, whole, options)
}

/// Whether some input begins with the header of a profile.
pub(crate) fn looks_like_gperftools_cpu(prefix: &[u8]) -> bool {
    Header::parse(prefix).is_some()
}

impl Words {
    const fn new(bytes: usize, is_big_endian: bool) -> Self {
        Self {
            bytes,
            is_big_endian,
        }
    }

    /// The word at a byte.
    fn get(self, data: &[u8], offset: usize) -> Option<u64> {
        let word = data.get(offset..)?.get(..self.bytes)?;
        let push = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        Some(if self.is_big_endian {
            word.iter().fold(0, push)
        } else {
            word.iter().rev().fold(0, push)
        })
    }
}

impl Header {
    fn parse(data: &[u8]) -> Option<Self> {
        ENCODINGS.iter().find_map(|words| {
            let word = |number: usize| words.get(data, number * words.bytes);
            let (zero, slots, version) = (word(0)?, word(1)?, word(2)?);
            let (period, padding) = (word(3)?, word(4)?);
            let is_header = zero == 0 && slots == 3 && version <= 1 && period > 0 && padding == 0;
            is_header.then_some(Self {
                words: *words,
                is_java: version == 1,
                period,
            })
        })
    }
}

impl Records {
    fn read(data: &[u8], words: Words) -> Self {
        let mut records = Self {
            end: HEADER_WORDS * words.bytes,
            ..Self::default()
        };
        while records.end < data.len() {
            if records.read_record(data, words).is_none() {
                records.is_cut = true;
                return records;
            }
            let is_trailer = records.records.last().is_some_and(|(frames, count)| {
                *count == 0 && frames.len() == 1 && records.frames[frames.start] == 0
            });
            if is_trailer {
                records.records.pop();
                return records;
            }
        }
        records.is_cut = true;
        records
    }

    /// `None` where the record does not end inside of the data.
    fn read_record(&mut self, data: &[u8], words: Words) -> Option<()> {
        let count = words.get(data, self.end)?;
        let depth = words.get(data, self.end + words.bytes)?;
        let first = self.end + 2 * words.bytes;
        let depth = usize::try_from(depth).ok()?;
        let end = first.checked_add(depth.checked_mul(words.bytes)?)?;
        if end > data.len() {
            return None;
        }
        let start = self.frames.len();
        for number in 0..depth {
            self.frames
                .push(words.get(data, first + number * words.bytes)?);
        }
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.records.push((start..self.frames.len(), count));
        self.end = end;
        Some(())
    }

    /// Turns return addresses into those of calls, and takes out what the act of sampling left.
    fn take_out_signal_frames(&mut self, report: &mut Report) {
        for (frames, _) in &self.records {
            for address in self.frames[frames.clone()].iter_mut().skip(1) {
                *address = address.saturating_sub(1);
            }
        }
        // Where nearly all stacks have the same second frame, it is that of a signal handler, or of
        // what calls it. One stack in 32 may differ: it was taken in an odd moment.
        let enough = self.records.len() - self.records.len() / 32;
        for _ in 0..2 {
            let Some(second) = self
                .most_frequent_second()
                .filter(|(_, count)| *count >= enough)
            else {
                break;
            };
            let taken_out = self.take_out_second(|_, address| address == second.0);
            report.note_many(
                "signal_frames_left_out",
                "frames of the profiler's signal handler were left out",
                taken_out,
            );
        }
        let taken_out = self.take_out_second(|leaf, second| second.checked_add(1) == Some(leaf));
        report.note_many(
            "leaves_repeated",
            "leaves that stood in their stack twice were left out once",
            taken_out,
        );
    }

    fn most_frequent_second(&self) -> Option<(u64, usize)> {
        let mut counts: HashMap<u64, usize> = HashMap::new();
        for (frames, _) in self.records.iter().filter(|(frames, _)| frames.len() > 1) {
            *counts.entry(self.frames[frames.start + 1]).or_default() += 1;
        }
        counts
            .into_iter()
            .max_by_key(|(address, count)| (*count, *address))
    }

    /// Takes out second frames by the leaf and themselves, and tells how many those were.
    fn take_out_second(&mut self, is_wrong: impl Fn(u64, u64) -> bool) -> u64 {
        let mut taken_out = 0;
        for (frames, _) in self
            .records
            .iter_mut()
            .filter(|(frames, _)| frames.len() > 1)
        {
            let leaf = self.frames[frames.start];
            if is_wrong(leaf, self.frames[frames.start + 1]) {
                self.frames[frames.start + 1] = leaf;
                frames.start += 1;
                taken_out += 1;
            }
        }
        taken_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_tells_the_words() {
        for words in ENCODINGS {
            let mut data = Vec::new();
            for word in [0_u64, 3, 1, 10_000, 0] {
                let little = word.to_le_bytes();
                let big = word.to_be_bytes();
                if words.is_big_endian {
                    data.extend(&big[8 - words.bytes..]);
                } else {
                    data.extend(&little[..words.bytes]);
                }
            }
            let header = Header {
                words,
                is_java: true,
                period: 10_000,
            };
            assert_eq!(Header::parse(&data), Some(header));
            data.pop();
            assert_eq!(Header::parse(&data), None);
        }
        assert_eq!(Header::parse(&[0; 64]), None);
    }
}
