//! The blocks that a trace is made of, in either container: objects of the library FastSerialization up
//! to version 5, plain blocks from version 6 on.

use crate::error::ReadError;
use crate::nettrace::NAME;
use crate::nettrace::cursor::Cursor;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Events,
    Metadata,
    Stacks,
    SequencePoint,
    Threads,
    Other,
}

/// A part of a trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block<'a> {
    pub(crate) kind: Kind,
    pub(crate) data: &'a [u8],
    /// Where `data` stands in the file.
    pub(crate) offset: usize,
}

/// What holds for all of a trace.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trace {
    pub(crate) version: u32,
    /// When the clock of the trace stood at `start_ticks`, nanoseconds since the Unix epoch.
    pub(crate) start_ns: i64,
    pub(crate) start_ticks: i64,
    pub(crate) ticks_per_second: i64,
    pub(crate) pointer_bytes: usize,
    pub(crate) pid: Option<i64>,
    /// Between samples.
    pub(crate) interval_ns: i64,
}

/// A trace taken apart.
#[derive(Debug)]
pub(crate) struct Container<'a> {
    pub(crate) trace: Trace,
    pub(crate) blocks: Vec<Block<'a>>,
    /// Whether it ends before its end.
    pub(crate) is_cut: bool,
}

const MAGIC: &[u8] = b"Nettrace";
const SERIALIZATION: &[u8] = b"\x14\0\0\0!FastSerialization.1";

/// What the object `Trace` is called up to version 2.
const OLD_TRACE: &[u8] = b"Microsoft.DotNet.Runtime.EventPipeFile";

/// Tags of objects; up to version 3 the first of these begins them.
const NULL: u8 = 1;
const BEGIN: u8 = 4;
const BEGIN_PRIVATE: u8 = 5;
const END: u8 = 6;

/// Blocks are of kilobytes and more.
const MAX_BLOCKS: usize = 1 << 22;

const OLDEST: u32 = 3;
const NEWEST: u32 = 6;

pub(crate) fn looks_like_nettrace(prefix: &[u8]) -> bool {
    prefix.starts_with(MAGIC) || prefix.starts_with(SERIALIZATION) && !is_gc_dump(prefix)
}

/// Whether it is a heap dump, which is written with the same library. Tags and versions stand before
/// the name of its first object, and the length of that.
pub(crate) fn is_gc_dump(prefix: &[u8]) -> bool {
    let name = SERIALIZATION.len() + 3 + 4 + 4 + 4;
    let name = prefix.get(name..).unwrap_or_default();
    prefix.starts_with(SERIALIZATION) && name.starts_with(b"GCHeapDump")
}

/// Takes a trace apart. What is there of a cut one is enough.
pub(crate) fn container(data: &[u8]) -> Result<Container<'_>, ReadError> {
    let mut cursor = Cursor::new(data);
    if data.starts_with(MAGIC) {
        let _ = cursor.bytes(MAGIC.len());
    }
    let rest = data.get(cursor.position()..).unwrap_or_default();
    if rest.starts_with(SERIALIZATION) {
        let _ = cursor.bytes(SERIALIZATION.len());
        return objects(cursor);
    }
    let is_plain = data.starts_with(MAGIC) && cursor.u32() == Some(0);
    if !is_plain {
        return Err(corrupt("the file does not begin as a trace does", 0));
    }
    let version = cursor.u32().unwrap_or(0);
    check_version(version)?;
    let _minor_version = cursor.u32();
    plain_blocks(version, cursor)
}

fn check_version(version: u32) -> Result<(), ReadError> {
    if (OLDEST..=NEWEST).contains(&version) {
        return Ok(());
    }
    Err(ReadError::Invalid {
        format: NAME,
        problem: format!(
            "traces of version {version} are not read, those of {OLDEST} to {NEWEST} are: collect \
             again with a newer `dotnet-trace`"
        ),
    })
}

fn check_count(blocks: usize) -> Result<(), ReadError> {
    if blocks <= MAX_BLOCKS {
        return Ok(());
    }
    Err(ReadError::TooLarge {
        what: "the number of blocks",
        limit: MAX_BLOCKS,
    })
}

fn objects(mut cursor: Cursor<'_>) -> Result<Container<'_>, ReadError> {
    let mut trace = None;
    let mut blocks = Vec::new();
    let is_cut = loop {
        check_count(blocks.len())?;
        let offset = cursor.position();
        match object(&mut cursor) {
            Some(Object::Trace(found)) => {
                check_version(found.version)?;
                trace = Some(found);
            }
            Some(Object::Block(block)) => blocks.push(block),
            Some(Object::End) => break false,
            None if trace.is_none() => return Err(corrupt("the first object is broken", offset)),
            None => break true,
        }
    };
    let trace = trace.ok_or_else(|| corrupt("there is no object `Trace`", cursor.position()))?;
    Ok(Container {
        trace,
        blocks,
        is_cut,
    })
}

enum Object<'a> {
    Trace(Trace),
    Block(Block<'a>),
    End,
}

/// `None` where the file breaks off.
fn object<'a>(cursor: &mut Cursor<'a>) -> Option<Object<'a>> {
    let is_begin = |tag: u8| matches!(tag, BEGIN | BEGIN_PRIVATE);
    let tag = cursor.u8()?;
    if tag == NULL {
        return Some(Object::End);
    }
    let has_type = is_begin(tag) && is_begin(cursor.u8()?) && cursor.u8()? == NULL;
    if !has_type {
        return None;
    }
    let version = cursor.u32()?;
    let _oldest_reader = cursor.u32()?;
    let name_bytes = cursor.u32()? as usize;
    let name = cursor.bytes(name_bytes)?;
    if cursor.u8()? != END {
        return None;
    }
    if version < OLDEST && (name == b"Trace" || name == OLD_TRACE) {
        // What stands in it is laid out in another way.
        return Some(Object::Trace(Trace {
            version,
            ..Trace::default()
        }));
    }
    let object = if name == b"Trace" {
        Object::Trace(trace_object(version, cursor)?)
    } else {
        let size = cursor.u32()? as usize;
        cursor.align(0)?;
        let offset = cursor.position();
        let kind = match name {
            b"EventBlock" => Kind::Events,
            b"MetadataBlock" => Kind::Metadata,
            b"StackBlock" => Kind::Stacks,
            b"SPBlock" => Kind::SequencePoint,
            _ => Kind::Other,
        };
        let data = cursor.bytes(size)?;
        Object::Block(Block { kind, data, offset })
    };
    (cursor.u8()? == END).then_some(object)
}

fn trace_object(version: u32, cursor: &mut Cursor<'_>) -> Option<Trace> {
    let mut trace = clock(version, cursor)?;
    trace.pid = Some(i64::from(cursor.u32()?));
    let _processors = cursor.u32()?;
    trace.interval_ns = i64::from(cursor.u32()?);
    Some(trace)
}

/// The part that all versions begin with.
fn clock(version: u32, cursor: &mut Cursor<'_>) -> Option<Trace> {
    let mut date = [0_i64; 8];
    for part in &mut date {
        *part = i64::from(cursor.u16()?);
    }
    let [year, month, _, day, hour, minute, second, millisecond] = date;
    let seconds = days_since_epoch(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    Some(Trace {
        version,
        start_ns: (seconds * 1_000 + millisecond)
            .saturating_mul(1_000_000)
            .max(0),
        start_ticks: cursor.u64()? as i64,
        ticks_per_second: cursor.u64()? as i64,
        pointer_bytes: cursor.u32()? as usize,
        pid: None,
        interval_ns: 0,
    })
}

/// Days of the Gregorian calendar; years begin in March, so that the leap day is a year's last.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    const DAYS_TO_EPOCH: i64 = 719_468;
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let days = year * 365 + year / 4 - year / 100 + year / 400;
    days + (month * 153 + 2) / 5 + day - 1 - DAYS_TO_EPOCH
}

fn plain_blocks(version: u32, mut cursor: Cursor<'_>) -> Result<Container<'_>, ReadError> {
    let mut trace = None;
    let mut blocks = Vec::new();
    let is_cut = loop {
        check_count(blocks.len())?;
        let Some(header) = cursor.u32() else {
            break true;
        };
        let offset = cursor.position();
        let Some(data) = cursor.bytes((header & 0xff_ffff) as usize) else {
            break true;
        };
        let kind = match header >> 24 {
            0 => break false,
            1 => {
                trace = plain_trace(version, &mut Cursor::new(data));
                continue;
            }
            2 => Kind::Events,
            3 => Kind::Metadata,
            4 => Kind::SequencePoint,
            5 => Kind::Stacks,
            6 => Kind::Threads,
            _ => Kind::Other,
        };
        blocks.push(Block { kind, data, offset });
    };
    let trace = trace.ok_or_else(|| corrupt("there is no trace block", cursor.position()))?;
    Ok(Container {
        trace,
        blocks,
        is_cut,
    })
}

fn plain_trace(version: u32, cursor: &mut Cursor<'_>) -> Option<Trace> {
    let mut trace = clock(version, cursor)?;
    let count = cursor.u32()?;
    for _ in 0..count {
        let (Some(key), Some(value)) = (cursor.utf8(), cursor.utf8()) else {
            break;
        };
        let number = value.parse::<i64>().ok();
        match key.as_str() {
            "ProcessId" => trace.pid = number,
            "ExpectedCPUSamplingRate" => trace.interval_ns = number.unwrap_or(0),
            _ => {}
        }
    }
    Some(trace)
}

impl Trace {
    /// A time of the trace's clock, nanoseconds since the epoch; 0 when the trace does not tell.
    pub(crate) fn time_ns(&self, ticks: i64) -> i64 {
        if self.ticks_per_second <= 0 || self.start_ns == 0 {
            return 0;
        }
        let elapsed = i128::from(ticks) - i128::from(self.start_ticks);
        let elapsed_ns = elapsed * 1_000_000_000 / i128::from(self.ticks_per_second);
        let time_ns = i128::from(self.start_ns) + elapsed_ns;
        i64::try_from(time_ns).unwrap_or(0).max(0)
    }
}

fn corrupt(problem: &str, offset: usize) -> ReadError {
    ReadError::Corrupt {
        format: NAME,
        problem: problem.to_owned(),
        offset,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_from_the_epoch() {
        for (date, days) in [
            ((1970, 1, 1), 0),
            ((1969, 12, 31), -1),
            ((2000, 2, 29), 11_016),
            ((2000, 3, 1), 11_017),
            ((2024, 12, 31), 20_088),
        ] {
            assert_eq!(days_since_epoch(date.0, date.1, date.2), days, "{date:?}");
        }
    }
}
