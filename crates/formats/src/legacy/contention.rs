//! Waiting for locks: `--- contentionz 1 ---` of C++ servers, `--- mutex:` and `--- contention:` of
//! Go. Settings come first, then a line for each stack: cycles, how often, and the addresses.

use candela_model::FrameKind;
use candela_model::LabelSetId;
use candela_model::Profile;

use crate::error::ReadError;
use crate::legacy::TEXT_NAME;
use crate::legacy::address_stacks::AddressStacks;
use crate::legacy::address_stacks::Whole;
use crate::legacy::go_frames::Record;
use crate::legacy::go_frames::name_frames;
use crate::legacy::lines::Lines;
use crate::legacy::lines::calls;
use crate::legacy::lines::is_comment;
use crate::legacy::memory_map;
use crate::naming;
use crate::options::ReadOptions;
use crate::report::Report;

/// Who wrote the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Counts and cycles are of the samples.
    Cpp,
    /// Counts and cycles are of all events since Go 1.20, before of the samples.
    GoMutex,
    /// All waiting that was longer than the rate; what was shorter is scaled by Go.
    GoBlock,
}

/// The lines in front of the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Settings {
    /// 0 when not given: delays are nanoseconds then.
    cycles_per_second: i64,
    /// One event in so many was sampled.
    sampling_period: i64,
    duration_ns: i64,
}

/// A sample as it stands in the text.
struct Sample {
    cycles: i64,
    count: i64,
    leaf_first: Vec<u64>,
}

pub(crate) fn read(
    origin: Origin,
    mut lines: Lines<'_>,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let kind = match origin {
        Origin::Cpp => FrameKind::Native,
        Origin::GoMutex | Origin::GoBlock => FrameKind::Go,
    };
    let mut stacks = AddressStacks::new(&options.limits, kind, 2);
    let settings = Settings::read(&mut lines, &mut stacks);
    let factor = settings.count_factor(origin, lines.clone());
    while let Some(record) = Record::next(&mut lines, &options.limits) {
        let Some(mut sample) = Sample::parse(record.line.text) else {
            stacks.bad_line(record.line.offset);
            continue;
        };
        name_frames(&mut sample.leaf_first, &record.frames, &mut stacks);
        let values = [
            sample.count.saturating_mul(factor),
            settings.nanoseconds(sample.cycles, factor),
        ];
        stacks.add(&sample.leaf_first, LabelSetId(0), &values)?;
    }
    let memory_map =
        memory_map::read_behind_heading(&mut lines, &options.limits, &mut stacks.report);
    let contentions = ("contentions", "count");
    let name = match origin {
        Origin::Cpp => options.profile_name.as_deref(),
        Origin::GoMutex => Some("mutex"),
        Origin::GoBlock => Some("block"),
    };
    let whole = Whole {
        types: vec![
            naming::profile_type(contentions, contentions, name),
            naming::profile_type(("delay", "nanoseconds"), contentions, name),
        ],
        period: settings.sampling_period,
        duration_ns: settings.duration_ns,
        memory_map,
        addresses_are_ids: false,
    };
    stacks.finish(TEXT_NAME, whole, options)
}

impl Settings {
    /// Takes the lines `NAME = VALUE`; those of unknown names are passed over.
    fn read(lines: &mut Lines<'_>, stacks: &mut AddressStacks<'_>) -> Self {
        let mut settings = Self {
            cycles_per_second: 0,
            sampling_period: 1,
            duration_ns: 0,
        };
        while let Some(line) = lines.peek()
            && (is_comment(line.text) || line.text.contains('=') && !line.text.contains('@'))
        {
            lines.next();
            let Some((name, value)) = line.text.split_once('=') else {
                continue;
            };
            // The known ones are whole numbers; one that is none leaves the setting as it is.
            let number = value
                .trim()
                .parse::<i64>()
                .ok()
                .filter(|number| *number >= 0);
            match (name.trim(), number) {
                ("cycles/second", Some(number)) => settings.cycles_per_second = number,
                ("sampling period", Some(number)) => settings.sampling_period = number,
                ("ms since reset", Some(number)) => {
                    settings.duration_ns = number.saturating_mul(1_000_000);
                }
                ("cycles/second" | "sampling period" | "ms since reset", None) => {
                    stacks.bad_line(line.offset);
                }
                _ => {}
            }
        }
        settings
    }

    /// What counts are multiplied with to be those of all events. Go counts each sample for as many
    /// events as it stands for since 1.20, and says the same in front: only counts that are no
    /// multiples of the period show that they were not multiplied yet.
    fn count_factor(&self, origin: Origin, samples: Lines<'_>) -> i64 {
        let period = self.sampling_period.max(1);
        let is_multiplied = || {
            let mut counts = samples.filter_map(|line| Sample::parse_numbers(line.text));
            counts.all(|(_, count, _)| count % period == 0)
        };
        match origin {
            Origin::Cpp => period,
            Origin::GoMutex if is_multiplied() => 1,
            Origin::GoMutex => period,
            Origin::GoBlock => 1,
        }
    }

    fn nanoseconds(&self, cycles: i64, factor: i64) -> i64 {
        if self.cycles_per_second == 0 {
            return cycles.saturating_mul(factor);
        }
        // In this order and cut off, as pprof computes it.
        let per_nanosecond = self.cycles_per_second as f64 / 1e9;
        (cycles as f64 * factor as f64 / per_nanosecond) as i64
    }
}

impl Sample {
    /// `CYCLES COUNT @ ADDRESS…`
    fn parse(text: &str) -> Option<Self> {
        let (cycles, count, stack) = Self::parse_numbers(text)?;
        Some(Self {
            cycles,
            count,
            leaf_first: calls(stack)?,
        })
    }

    /// Cycles, count and the text of the stack.
    fn parse_numbers(text: &str) -> Option<(i64, i64, &str)> {
        let (numbers, stack) = text.split_once('@')?;
        let mut numbers = numbers.split_whitespace();
        let cycles = numbers.next()?.parse().ok()?;
        let count = numbers.next()?.parse().ok()?;
        numbers.next().is_none().then_some((cycles, count, stack))
    }
}
