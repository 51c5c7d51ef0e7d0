//! Reading a report: messages with their sizes in front, ended by a size of 0.

use std::io::BufRead;

use candela_model::Labels;
use candela_model::LocationId;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::ProfileType;
use candela_model::Sample;
use hashbrown::HashSet;

use crate::error::ReadError;
use crate::inflate::read_inflated;
use crate::options::ReadOptions;
use crate::perf_events;
use crate::protobuf::reader::Reader;
use crate::protobuf::reader::Span;
use crate::protobuf::reader::Value;
use crate::protobuf::reader::WireError;
use crate::report::Report;
use crate::simpleperf::MAGIC;
use crate::simpleperf::NAME;
use crate::simpleperf::tables::Frame;
use crate::simpleperf::tables::Tables;

/// Magic and version.
const HEADER_BYTES: usize = MAGIC.len() + 2;

/// Events of a report: more is none.
pub(crate) const MOST_EVENTS: u64 = 4096;

/// Fields of a record, of which each has one.
const SAMPLE: u32 = 1;
const LOST: u32 = 2;
const FILE: u32 = 3;
const THREAD: u32 = 4;
const META: u32 = 5;

/// Reads a report of simpleperf: each event that has samples becomes a series whose values are what
/// the samples count. Times are those of the device's clock, or count from
/// [`now_ns`](ReadOptions::now_ns).
///
/// # Errors
/// When the input cannot be read, exceeds a limit, is no report or is broken before its first record.
pub fn read_simpleperf(
    input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let data = read_inflated(input, options.limits.inflated_bytes())?;
    if !data.starts_with(MAGIC) || data.len() < HEADER_BYTES {
        return Err(ReadError::Corrupt {
            format: NAME,
            problem: "there is no header".to_owned(),
            offset: 0,
        });
    }
    let mut report = Report::default();
    let records = records(&data, &mut report);
    let mut profile = Profile::default();
    let mut tables = Tables::new(&data, options.limits);
    let mut first_error = None;
    let mut read_count = 0;
    for (field, message) in &records {
        let read = match *field {
            LOST => tables.read_lost(*message),
            FILE => tables.read_file(*message, &mut profile),
            THREAD => tables.read_thread(*message, &mut profile),
            META => tables.read_meta(*message),
            _ => Ok(()),
        };
        note_broken(read, &mut report, &mut first_error, &mut read_count);
    }
    let mut samples = Samples {
        data: &data,
        frames: Vec::new(),
        max_stack_depth: options.limits.max_stack_depth,
        leaf_first: Vec::new(),
        rows: Vec::new(),
        count: 0,
    };
    for (field, message) in &records {
        if *field != SAMPLE {
            continue;
        }
        let read = samples.read(*message);
        let parsed = match read {
            Ok(parsed) => parsed,
            Err(error) => {
                note_broken(Err(error), &mut report, &mut first_error, &mut read_count);
                continue;
            }
        };
        samples.add(parsed, &mut tables, &mut profile, options, &mut report)?;
        read_count += 1;
    }
    if read_count == 0 {
        return Err(match first_error {
            Some(error) => error,
            None => ReadError::Invalid {
                format: NAME,
                problem: "the report has no records".to_owned(),
            },
        });
    }
    report.note_many(
        "samples_lost",
        "samples were lost while recording, as simpleperf was too slow to write them",
        tables.lost,
    );
    add_series(
        &mut profile,
        samples.rows,
        &tables.events,
        options,
        &mut report,
    );
    Ok((profile, report))
}

fn note_broken(
    read: Result<(), WireError>,
    report: &mut Report,
    first_error: &mut Option<ReadError>,
    read_count: &mut u64,
) {
    match read {
        Ok(()) => *read_count += 1,
        Err(error) => {
            first_error.get_or_insert(error.named(NAME));
            report.note("records_damaged", "records that are broken were left out");
        }
    }
}

/// The messages of all records with the numbers of their fields.
fn records(data: &[u8], report: &mut Report) -> Vec<(u32, Span)> {
    let mut records = Vec::new();
    let mut position = HEADER_BYTES;
    loop {
        let rest = data.get(position..).unwrap_or(&[]);
        let size = rest.first_chunk().map(|size| u32::from_le_bytes(*size));
        let start = position + 4;
        let record = size.and_then(|size| {
            let end = start.checked_add(size as usize)?;
            (end <= data.len()).then_some((size, end))
        });
        let Some((size, end)) = record else {
            report.note(
                "recording_cut",
                "the report breaks off; what stands before the break was read",
            );
            break;
        };
        if size == 0 {
            break;
        }
        let span = Span {
            start: start as u32,
            end: end as u32,
        };
        let mut reader = Reader::of(data, span);
        while let Ok(Some((field, value))) = reader.field() {
            if let Value::Bytes(message) = value {
                records.push((field, message));
            }
        }
        position = end;
    }
    records
}

/// A sample without its frames.
#[derive(Clone, Copy, Debug, Default)]
struct ParsedSample {
    time: u64,
    thread: u64,
    count: u64,
    event: u64,
    /// Whether it has more frames than it may have.
    is_cut: bool,
}

/// Samples by event.
struct Samples<'a> {
    data: &'a [u8],
    frames: Vec<Frame>,
    max_stack_depth: usize,
    leaf_first: Vec<LocationId>,
    rows: Vec<Vec<Sample>>,
    count: usize,
}

impl Samples<'_> {
    /// The frames are then in `frames`.
    fn read(&mut self, message: Span) -> Result<ParsedSample, WireError> {
        self.frames.clear();
        // Which frames are cut is told by their number only, and kept one would be larger than it stands
        // there.
        let mut excess = self
            .count_frames(message)?
            .saturating_sub(self.max_stack_depth);
        let mut sample = ParsedSample {
            is_cut: excess > 0,
            ..ParsedSample::default()
        };
        let mut reader = Reader::of(self.data, message);
        while let Some((field, value)) = reader.field()? {
            match (field, value) {
                (1, Value::Varint(time)) => sample.time = time,
                (2, Value::Varint(thread)) => sample.thread = thread,
                (3, Value::Bytes(frame)) => {
                    let frame = self.read_frame(frame)?;
                    if excess == 0 {
                        self.frames.push(frame);
                    }
                    excess = excess.saturating_sub(1);
                }
                (4, Value::Varint(count)) => sample.count = count,
                (5, Value::Varint(event)) => sample.event = event,
                _ => {}
            }
        }
        Ok(sample)
    }

    fn count_frames(&self, message: Span) -> Result<usize, WireError> {
        let mut count = 0;
        let mut reader = Reader::of(self.data, message);
        while let Some((field, value)) = reader.field()? {
            count += usize::from(matches!((field, value), (3, Value::Bytes(_))));
        }
        Ok(count)
    }

    fn read_frame(&self, message: Span) -> Result<Frame, WireError> {
        let mut frame = Frame {
            symbol: u64::MAX,
            ..Frame::default()
        };
        let mut reader = Reader::of(self.data, message);
        while let Some((field, value)) = reader.field()? {
            match (field, value) {
                (1, Value::Varint(address)) => frame.address = address,
                (2, Value::Varint(file)) => frame.file = file,
                (3, Value::Varint(symbol)) => frame.symbol = symbol,
                (4, Value::Varint(execution)) => frame.execution = execution,
                _ => {}
            }
        }
        Ok(frame)
    }

    fn add(
        &mut self,
        parsed: ParsedSample,
        tables: &mut Tables<'_>,
        profile: &mut Profile,
        options: &ReadOptions,
        report: &mut Report,
    ) -> Result<(), ReadError> {
        if parsed.event >= MOST_EVENTS {
            report.note(
                "samples_of_unknown_events",
                "samples of events that the recording does not describe were left out",
            );
            return Ok(());
        }
        if parsed.count == 0 {
            report.note(
                "samples_without_value",
                "samples that count nothing were left out",
            );
            return Ok(());
        }
        self.count += 1;
        if self.count > options.limits.max_samples {
            return Err(ReadError::TooLarge {
                what: "the number of samples",
                limit: options.limits.max_samples,
            });
        }
        if parsed.is_cut {
            report.note(
                "stacks_cut",
                "stacks deeper than the limit were cut at the leaf",
            );
        }
        self.leaf_first.clear();
        for frame in &self.frames {
            self.leaf_first.push(tables.location(*frame, profile)?);
        }
        let value = i64::try_from(parsed.count).unwrap_or(i64::MAX);
        let stack = profile.stacks.intern(&self.leaf_first);
        let sample = Sample {
            label_set: tables.label_set(parsed.thread, profile),
            time_ns: i64::try_from(parsed.time).unwrap_or(i64::MAX),
            ..Sample::new(stack, value)
        };
        let event = parsed.event as usize;
        if self.rows.len() <= event {
            self.rows.resize_with(event + 1, Vec::new);
        }
        self.rows[event].push(sample);
        Ok(())
    }
}

fn add_series(
    profile: &mut Profile,
    rows: Vec<Vec<Sample>>,
    events: &[String],
    options: &ReadOptions,
    report: &mut Report,
) {
    let times = || rows.iter().flatten().map(|sample| sample.time_ns);
    let first = times().min().unwrap_or(0);
    let last = times().max().unwrap_or(0);
    report.note_many(
        "clock_unknown",
        "the report does not tell the time of day: times count from the start of the device, or of reading",
        u64::from(last > 0),
    );
    let start_ns = if options.now_ns > 0 {
        options.now_ns
    } else {
        first
    };
    let duration_ns = (last - first).min(i64::MAX - start_ns);
    let mut known_types: HashSet<ProfileType> = HashSet::new();
    for (number, mut samples) in rows.into_iter().enumerate() {
        if samples.is_empty() {
            continue;
        }
        let name = events.get(number).cloned();
        let name = name.unwrap_or_else(|| format!("event {number}"));
        let mut profile_type = perf_events::event_type(&name, true);
        if !known_types.insert(profile_type.clone()) {
            profile_type = perf_events::second_event_type(&name, true);
            known_types.insert(profile_type.clone());
        }
        for sample in &mut samples {
            sample.time_ns = start_ns.saturating_add(sample.time_ns - first);
        }
        let value = samples[0].value;
        let is_common = samples.iter().all(|sample| sample.value == value);
        profile.series.push(ProfileSeries {
            start_ns,
            duration_ns,
            period: if is_common { value } else { 0 },
            samples,
            ..ProfileSeries::new(options.series_labels(Labels::default()), profile_type)
        });
    }
}
