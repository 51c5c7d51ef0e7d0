//! The chunks of a recording: headers, and where the events lie.
//!
//! The format has no published description; these are the offsets that JDK Mission Control and the
//! virtual machine agree on (<https://github.com/openjdk/jmc>, <https://github.com/openjdk/jdk>).

use crate::error::ReadError;
use crate::jfr::cursor::Cursor;
use crate::jfr::cursor::Damage;
use crate::jfr::cursor::Width;
use crate::options::Limits;

/// What every chunk begins with.
pub(crate) const MAGIC: [u8; 4] = *b"FLR\0";

/// Magic, version, size, offsets, times and flags.
pub(crate) const HEADER_BYTES: usize = 68;

/// The version that the virtual machine has written since JDK 9, and async-profiler always.
const MAJOR_VERSION: u16 = 2;

const COMPRESSED_NUMBERS: u32 = 1;

// The types of events that describe the others.
pub(crate) const METADATA_TYPE: u64 = 0;
pub(crate) const CHECKPOINT_TYPE: u64 = 1;

/// One chunk: it can be understood without the others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk<'a> {
    /// The input up to the end of the chunk; offsets count from the start of the input.
    pub(crate) data: &'a [u8],
    pub(crate) start: usize,
    /// The last event with constants; they are linked backwards.
    checkpoint: usize,
    pub(crate) metadata: usize,
    /// Nanoseconds since the Unix epoch.
    pub(crate) start_ns: i64,
    pub(crate) duration_ns: i64,
    start_ticks: i64,
    ticks_per_second: i64,
    pub(crate) is_compressed: bool,
    /// Whether the input ends before the chunk does, or the writer did not finish it.
    pub(crate) is_cut: bool,
}

/// The head of an event: its size counts from its start, head and all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventHead {
    pub(crate) type_id: u64,
    /// Where the fields begin.
    pub(crate) body: usize,
    pub(crate) end: usize,
}

/// What the heads of all events say.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    pub(crate) checkpoints: Vec<usize>,
    /// Of several metadata events the last describes all.
    pub(crate) last_metadata: Option<usize>,
    /// Where the last sound event ends.
    pub(crate) sound_end: usize,
}

impl<'a> Chunk<'a> {
    /// The chunk that begins at `start`.
    pub(crate) fn parse(input: &'a [u8], start: usize) -> Result<Self, Damage> {
        let damage = |problem| Damage {
            problem,
            offset: start,
        };
        let rest = input.get(start..).unwrap_or_default();
        if !rest.starts_with(&MAGIC) {
            return Err(damage("no chunk begins here"));
        }
        let Some(header) = rest.first_chunk::<HEADER_BYTES>() else {
            return Err(damage("the header of a chunk is cut off"));
        };
        if u16::from_be_bytes([header[4], header[5]]) != MAJOR_VERSION {
            return Err(damage(
                "the chunk is not of version 2: record with JDK 9 or later, or with async-profiler",
            ));
        }
        let number = |at: usize| {
            let bytes = header[at..].first_chunk::<8>();
            i64::from_be_bytes(*bytes.expect("all fields lie inside the header"))
        };
        let flags = u32::from_be_bytes([header[64], header[65], header[66], header[67]]);
        let size = usize::try_from(number(8)).unwrap_or(0);
        let is_cut = !(HEADER_BYTES..=rest.len()).contains(&size);
        let end = if is_cut { input.len() } else { start + size };
        let offset = |at| {
            let offset = usize::try_from(number(at)).unwrap_or(0);
            start.saturating_add(offset)
        };
        Ok(Self {
            data: &input[..end],
            start,
            checkpoint: offset(16),
            metadata: offset(24),
            start_ns: number(32),
            duration_ns: number(40),
            start_ticks: number(48),
            ticks_per_second: number(56),
            is_compressed: flags & COMPRESSED_NUMBERS != 0,
            is_cut,
        })
    }

    pub(crate) fn end(&self) -> usize {
        self.data.len()
    }

    /// A cursor that may read up to the end of the chunk.
    pub(crate) fn cursor(&self, position: usize) -> Cursor<'a> {
        Cursor::new(self.data, position, self.is_compressed)
    }

    /// The head of the event at `position`.
    #[inline]
    pub(crate) fn event(&self, position: usize) -> Result<EventHead, Damage> {
        let mut cursor = self.cursor(position);
        let size = cursor.number(Width::Int)?;
        let type_id = cursor.key()?;
        let body = cursor.position();
        let end = usize::try_from(size).ok().map(|size| position + size);
        match end {
            Some(end) if end >= body && end <= self.end() => Ok(EventHead { type_id, body, end }),
            _ => Err(Damage {
                problem: "an event has an impossible size",
                offset: position,
            }),
        }
    }

    /// Walks over the heads of all events. Constants come after the events that use them, and the
    /// header of an unfinished chunk does not say where, so nothing can be resolved on the way.
    pub(crate) fn outline(&self, limits: &Limits) -> Result<Outline, ReadError> {
        let mut outline = Outline {
            sound_end: self.start + HEADER_BYTES,
            ..Outline::default()
        };
        while let Ok(event) = self.event(outline.sound_end) {
            match event.type_id {
                CHECKPOINT_TYPE => outline.checkpoints.push(outline.sound_end),
                METADATA_TYPE => outline.last_metadata = Some(outline.sound_end),
                _ => {}
            }
            outline.sound_end = event.end;
            check_count(outline.checkpoints.len(), limits)?;
        }
        if outline.sound_end < self.end() {
            self.follow_checkpoints(&mut outline, limits)?;
        }
        Ok(outline)
    }

    /// Adds the checkpoints behind a damaged event: each knows where the one before it is.
    fn follow_checkpoints(&self, outline: &mut Outline, limits: &Limits) -> Result<(), ReadError> {
        let mut linked = Vec::new();
        let mut position = self.checkpoint;
        let mut next = self.end();
        while position >= outline.sound_end && position < next {
            let Ok((end, distance)) = self.checkpoint_link(position) else {
                break;
            };
            // No byte is read twice, so that overlapping ones cost no quadratic time.
            if end > next {
                break;
            }
            linked.push(position);
            check_count(outline.checkpoints.len() + linked.len(), limits)?;
            next = position;
            let Some(before) = position.checked_sub(distance) else {
                break;
            };
            position = before;
        }
        outline.checkpoints.extend(linked.into_iter().rev());
        Ok(())
    }

    /// Where a checkpoint ends, and how far before it the previous one begins.
    fn checkpoint_link(&self, position: usize) -> Result<(usize, usize), Damage> {
        let event = self.event(position)?;
        let mut cursor = self.cursor(event.body);
        cursor.skip_number(Width::Long)?;
        cursor.skip_number(Width::Long)?;
        let delta = cursor.number(Width::Long)?;
        let distance = delta
            .checked_neg()
            .and_then(|back| usize::try_from(back).ok());
        Ok((event.end, distance.unwrap_or(usize::MAX)))
    }

    /// The time of a tick, nanoseconds since the Unix epoch.
    #[inline]
    pub(crate) fn time_ns(&self, ticks: i64) -> i64 {
        let since_start = self.ticks_to_ns(ticks.saturating_sub(self.start_ticks));
        self.start_ns.saturating_add(since_start).max(0)
    }

    /// So many ticks in nanoseconds.
    #[inline]
    pub(crate) fn ticks_to_ns(&self, ticks: i64) -> i64 {
        const NANOSECONDS: i64 = 1_000_000_000;
        // What is no frequency cannot be used; async-profiler's ticks are nanoseconds.
        if self.ticks_per_second == NANOSECONDS || self.ticks_per_second <= 0 {
            return ticks;
        }
        let scaled =
            i128::from(ticks) * i128::from(NANOSECONDS) / i128::from(self.ticks_per_second);
        i64::try_from(scaled).unwrap_or(if scaled < 0 { i64::MIN } else { i64::MAX })
    }

    pub(crate) fn has_clock(&self) -> bool {
        self.ticks_per_second > 0
    }
}

fn check_count(checkpoints: usize, limits: &Limits) -> Result<(), ReadError> {
    if checkpoints > limits.max_messages {
        return Err(ReadError::TooLarge {
            what: "the number of checkpoints of a recording",
            limit: limits.max_messages,
        });
    }
    Ok(())
}
