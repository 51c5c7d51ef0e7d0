//! Recordings to profiles, one chunk after the other.

use std::io::BufRead;

use candela_model::Profile;

use crate::error::ReadError;
use crate::inflate::read_inflated;
use crate::jfr::JfrOptions;
use crate::jfr::NAME;
use crate::jfr::chunk::Chunk;
use crate::jfr::chunk::Outline;
use crate::jfr::cursor::Damage;
use crate::jfr::events::EventReader;
use crate::jfr::events::Sink;
use crate::jfr::labels::LabelMaker;
use crate::jfr::layout::Layouts;
use crate::jfr::losses::Losses;
use crate::jfr::metadata::Metadata;
use crate::jfr::pools::Pools;
use crate::jfr::resolver::Resolver;
use crate::jfr::samples::Samples;
use crate::jfr::snapshot::Snapshot;
use crate::options::Limits;
use crate::options::ReadOptions;
use crate::report::Report;

/// Reads a recording of Java Flight Recorder, written by the virtual machine or by async-profiler,
/// plain or compressed with gzip or zstd. Each profile type of which there are samples becomes a
/// series. What the recording lost, and events that are no samples, are noted.
///
/// # Errors
/// When no chunk can be read: no recording, one of JDK 8 or before, or without metadata. When a
/// limit is exceeded, or the labels snapshot is damaged. Lesser damage is noted and costs only what
/// is damaged: a last chunk that breaks off is kept up to there.
pub fn read_jfr(
    reader: impl BufRead,
    options: &JfrOptions,
    read: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let limits = read.limits;
    let data = read_inflated(reader, limits.inflated_bytes())?;
    if data.is_empty() {
        return Err(ReadError::Invalid {
            format: NAME,
            problem: "the input is empty".to_owned(),
        });
    }
    let snapshot = read_inflated(&options.labels_snapshot[..], limits.inflated_bytes())?;
    let snapshot = Snapshot::parse(snapshot, &limits)?;
    let mut sink = Sink::new(
        Samples::new(options.drop_times, limits.max_samples),
        LabelMaker::new(snapshot, limits),
        Losses::new(limits),
        options.sample_rate_hz,
        !options.drop_times,
    );
    let mut report = Report::default();
    let window = read_chunks(&data, &limits, &mut sink, &mut report)?;
    sink.losses.note(&mut report);
    let mut profile = sink.profile;
    let start_ns = match window.start_ns {
        0 => read.now_ns.max(0),
        start_ns => start_ns,
    };
    let duration_ns = window.end_ns.saturating_sub(start_ns).max(0);
    sink.samples
        .finish(&mut profile, start_ns, duration_ns, read);
    Ok((profile, report))
}

/// The time that all chunks cover, nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug)]
struct Window {
    start_ns: i64,
    end_ns: i64,
}

/// Why a chunk is not read.
enum Failure {
    /// The next one may be sound.
    Chunk(Damage),
    Recording(ReadError),
}

impl From<Damage> for Failure {
    fn from(damage: Damage) -> Self {
        Self::Chunk(damage)
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        Self::Recording(error)
    }
}

fn read_chunks(
    data: &[u8],
    limits: &Limits,
    sink: &mut Sink,
    report: &mut Report,
) -> Result<Window, ReadError> {
    let mut window: Option<Window> = None;
    let mut first_damage = None;
    let mut position = 0;
    while position < data.len() {
        let chunk = match Chunk::parse(data, position) {
            Ok(chunk) => chunk,
            Err(damage) => {
                first_damage.get_or_insert(damage);
                report.note_many(
                    "bytes_not_read",
                    "bytes behind the last sound chunk were left out",
                    (data.len() - position) as u64,
                );
                break;
            }
        };
        position = chunk.end();
        match read_chunk(chunk, limits, sink, report) {
            Ok(covered) => {
                let whole = window.get_or_insert(covered);
                whole.start_ns = whole.start_ns.min(covered.start_ns);
                whole.end_ns = whole.end_ns.max(covered.end_ns);
            }
            Err(Failure::Chunk(damage)) => {
                first_damage.get_or_insert(damage);
                report.note(
                    "chunks_not_read",
                    "chunks without readable metadata were left out",
                );
            }
            Err(Failure::Recording(error)) => return Err(error),
        }
    }
    // A recording of nothing but damaged chunks is an error, not an empty profile.
    window.ok_or_else(|| {
        let damage = first_damage.unwrap_or(Damage {
            problem: "there is no chunk",
            offset: 0,
        });
        ReadError::Corrupt {
            format: NAME,
            problem: damage.problem.to_owned(),
            offset: damage.offset,
        }
    })
}

fn read_chunk(
    chunk: Chunk<'_>,
    limits: &Limits,
    sink: &mut Sink,
    report: &mut Report,
) -> Result<Window, Failure> {
    let outline = chunk.outline(limits)?;
    let metadata = find_metadata(&chunk, &outline, &mut sink.losses)?;
    note_damage(&chunk, &outline, report);
    let layouts = Layouts::new(&metadata);
    let pools = Pools::read(&chunk, &outline, &metadata, &layouts, limits, report)?;
    let resolver = Resolver::new(chunk, &metadata, layouts, pools, *limits);
    let losses = &mut sink.losses;
    sink.settings
        .take(&chunk, &outline, &metadata, &resolver, losses)?;
    sink.last_ns = 0;
    EventReader::new(chunk, &metadata, resolver, sink).read(&outline, sink)?;
    let start_ns = chunk.start_ns.max(0);
    // The header of an unfinished chunk does not say how long it took.
    let end_ns = match chunk.duration_ns {
        1.. => start_ns.saturating_add(chunk.duration_ns),
        _ => start_ns.max(sink.last_ns),
    };
    Ok(Window { start_ns, end_ns })
}

/// The metadata is where the header says, or where the events have it: the header of an unfinished
/// chunk does not say.
fn find_metadata<'a>(
    chunk: &Chunk<'a>,
    outline: &Outline,
    losses: &mut Losses,
) -> Result<Metadata<'a>, Damage> {
    let as_the_header_says = Metadata::parse(chunk, chunk.metadata, &mut losses.repaired_texts);
    let found = as_the_header_says.or_else(|damage| {
        let last = outline.last_metadata.ok_or(damage)?;
        Metadata::parse(chunk, last, &mut losses.repaired_texts)
    });
    found.map_err(|damage| Damage {
        problem: "the chunk has no readable metadata: the recording was not finished, or is damaged",
        ..damage
    })
}

fn note_damage(chunk: &Chunk<'_>, outline: &Outline, report: &mut Report) {
    report.note_many(
        "recording_cut",
        "the last chunk breaks off; what stands before the break was read",
        u64::from(chunk.is_cut),
    );
    let unread = chunk.end() - outline.sound_end;
    report.note_many(
        "bytes_damaged",
        "bytes behind a damaged event were left out",
        unread as u64,
    );
    report.note_many(
        "clock_unknown",
        "chunks do not say how long a tick is; nanoseconds are assumed",
        u64::from(!chunk.has_clock()),
    );
}
