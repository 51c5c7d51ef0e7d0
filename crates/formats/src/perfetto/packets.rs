//! The packets of a trace, also those that are compressed in another.

use std::io::Read;

use flate2::read::ZlibDecoder;

use crate::error::ReadError;
use crate::perfetto::NAME;
use crate::perfetto::fields::bytes;
use crate::perfetto::fields::fields;
use crate::perfetto::fields::number;
use crate::perfetto::fields::whole;
use crate::protobuf::reader::Reader;
use crate::protobuf::reader::Span;
use crate::protobuf::reader::Value;
use crate::protobuf::reader::WireError;
use crate::protobuf::text::is_text;

/// What every packet may have, and its content.
#[derive(Debug, Default)]
pub(crate) struct Packet {
    pub(crate) timestamp: Option<u64>,
    pub(crate) clock: Option<u32>,
    pub(crate) sequence: u32,
    /// What is known by its number is forgotten.
    pub(crate) is_cleared: bool,
    /// Refers to what came before.
    pub(crate) needs_state: bool,
    pub(crate) is_after_loss: bool,
    pub(crate) interned: Vec<Span>,
    pub(crate) defaults: Option<Span>,
    /// Number and content of the field that says what the packet is.
    pub(crate) content: Vec<(u32, Span)>,
}

/// What is wrong with some packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Damage {
    pub(crate) broken: u64,
    /// Bytes behind the last packet.
    pub(crate) cut: u64,
    /// What compressed packets inflated to.
    pub(crate) inner_bytes: u64,
}

/// What compressed packets may still inflate to.
struct Room {
    bytes_left: usize,
    limit: usize,
}

impl Room {
    fn take(&mut self, bytes: usize) -> Result<(), ReadError> {
        let left = self.bytes_left.checked_sub(bytes);
        self.bytes_left = left.ok_or(ReadError::TooLarge {
            what: "the size of all compressed packets in bytes",
            limit: self.limit,
        })?;
        Ok(())
    }
}

pub(crate) mod content {
    pub(crate) const PROCESS_TREE: u32 = 2;
    pub(crate) const CLOCK_SNAPSHOT: u32 = 6;
    pub(crate) const PROFILE_PACKET: u32 = 37;
    pub(crate) const PROCESS_DESCRIPTOR: u32 = 43;
    pub(crate) const THREAD_DESCRIPTOR: u32 = 44;
    pub(crate) const COMPRESSED: u32 = 50;
    pub(crate) const STREAMING_PROFILE: u32 = 54;
    pub(crate) const TRACK_DESCRIPTOR: u32 = 60;
    pub(crate) const MODULE_SYMBOLS: u32 = 61;
    pub(crate) const PERF_SAMPLE: u32 = 66;
    pub(crate) const ZSTD_COMPRESSED: u32 = 133;
    pub(crate) const STACK_SAMPLE: u32 = 135;
}

/// What is called with each packet and the bytes that its spans are of.
type Visit<'a> = dyn FnMut(&[u8], &Packet) -> Result<(), ReadError> + 'a;

/// The field of a trace that is a packet.
const PACKET: u32 = 1;

/// Visits each packet. Packets that are broken are left out; where
/// a length points behind the end there is nothing more.
pub(crate) fn for_each_packet(
    data: &[u8],
    max_bytes: usize,
    visit: &mut Visit<'_>,
) -> Result<Damage, ReadError> {
    let mut damage = Damage::default();
    let mut room = Room {
        bytes_left: max_bytes,
        limit: max_bytes,
    };
    walk(data, true, &mut room, &mut damage, visit)?;
    damage.inner_bytes = (room.limit - room.bytes_left) as u64;
    Ok(damage)
}

fn walk(
    data: &[u8],
    may_be_compressed: bool,
    room: &mut Room,
    damage: &mut Damage,
    visit: &mut Visit<'_>,
) -> Result<(), ReadError> {
    let mut reader = Reader::new(data);
    loop {
        let start = reader.position();
        let field = match reader.field() {
            Ok(None) => return Ok(()),
            Ok(Some((PACKET, Value::Bytes(span)))) => span,
            Ok(Some(_)) => continue,
            Err(_) => {
                damage.cut += (data.len() - start) as u64;
                return Ok(());
            }
        };
        let Ok(packet) = packet(data, field) else {
            damage.broken += 1;
            continue;
        };
        for &(kind, span) in &packet.content {
            let is_compressed = matches!(kind, content::COMPRESSED | content::ZSTD_COMPRESSED);
            // Packets in packets in packets are an attack.
            if !is_compressed || !may_be_compressed {
                continue;
            }
            match inflated(kind, bytes(data, span), room.bytes_left) {
                Some(inner) => {
                    room.take(inner.len())?;
                    walk(&inner, false, room, damage, visit)?;
                }
                None => damage.broken += 1,
            }
        }
        visit(data, &packet)?;
    }
}

/// A byte more than allowed, at most, so that the caller sees it.
fn inflated(kind: u32, compressed: &[u8], max_bytes: usize) -> Option<Vec<u8>> {
    let mut inner = Vec::new();
    let most = max_bytes as u64 + 1;
    let result = if kind == content::COMPRESSED {
        ZlibDecoder::new(compressed)
            .take(most)
            .read_to_end(&mut inner)
    } else {
        let decoder = zstd::stream::read::Decoder::with_buffer(compressed).ok()?;
        decoder.take(most).read_to_end(&mut inner)
    };
    result.ok().map(|_| inner)
}

fn packet(data: &[u8], span: Span) -> Result<Packet, WireError> {
    let mut packet = Packet::default();
    fields(data, span, |field, value| {
        match (field, value) {
            (8, Value::Varint(timestamp)) => packet.timestamp = Some(timestamp),
            (10, Value::Varint(sequence)) => packet.sequence = sequence as u32,
            (13, Value::Varint(flags)) => {
                packet.is_cleared |= flags & 1 != 0;
                packet.needs_state |= flags & 2 != 0;
            }
            (41, value) => packet.is_cleared |= number(value) != 0,
            (42, value) => packet.is_after_loss = number(value) != 0,
            (58, Value::Varint(clock)) => packet.clock = u32::try_from(clock).ok(),
            (12, Value::Bytes(span)) => packet.interned.push(span),
            (59, Value::Bytes(span)) => packet.defaults = Some(span),
            (kind, Value::Bytes(span)) => packet.content.push((kind, span)),
            _ => {}
        }
        Ok(())
    })?;
    Ok(packet)
}

/// Whether the start of some input is that of a trace: nothing but packets, and one of them has a
/// time, a sequence or what else only packets have.
pub(crate) fn looks_like_perfetto(prefix: &[u8]) -> bool {
    /// pprof and OTLP, which begin alike, have none of these as numbers.
    const NUMBERS: [u32; 9] = [3, 8, 10, 13, 41, 42, 58, 79, 87];
    const MESSAGES: [u32; 8] = [1, 2, 6, 12, 33, 36, 37, 59];
    let mut reader = Reader::new(prefix);
    let mut is_marked = false;
    while prefix.get(reader.position()) == Some(&0x0a) {
        let start = reader.position();
        let (span, is_cut) = match reader.field() {
            Ok(Some((PACKET, Value::Bytes(span)))) => (span, false),
            _ => match rest_of_packet(prefix, start) {
                Some(span) => (span, true),
                None => return is_marked && !is_text(prefix),
            },
        };
        let mut has_wrong_type = false;
        let walked = fields(prefix, span, |field, value| {
            let is_number = matches!(value, Value::Varint(_));
            has_wrong_type |= (NUMBERS.contains(&field) && !is_number)
                || (MESSAGES.contains(&field) && !matches!(value, Value::Bytes(_)));
            is_marked |= NUMBERS.contains(&field) && is_number;
            is_marked |=
                matches!(field, content::COMPRESSED | content::ZSTD_COMPRESSED) && !is_number;
            Ok(())
        });
        if has_wrong_type || (walked.is_err() && !is_cut) {
            return false;
        }
        if is_cut {
            return (is_marked || is_large_content(prefix, span)) && !is_text(prefix);
        }
    }
    is_marked && reader.at_end()
}

/// What is there of a packet that the prefix ends in.
fn rest_of_packet(prefix: &[u8], start: usize) -> Option<Span> {
    let mut reader = Reader::of(
        prefix,
        Span {
            start: u32::try_from(start).ok()? + 1,
            ..whole(prefix)
        },
    );
    let length = reader.varint().ok()?;
    let span = Span {
        start: u32::try_from(reader.position()).ok()?,
        ..whole(prefix)
    };
    (length > u64::from(span.end - span.start)).then_some(span)
}

/// Whether a cut packet is of compressed ones, which is all that there may be of a trace.
fn is_large_content(prefix: &[u8], span: Span) -> bool {
    let zlib = [0x92, 0x03];
    bytes(prefix, span).starts_with(&zlib)
}

/// The error of a trace of which nothing is sound.
pub(crate) fn invalid(problem: &str) -> ReadError {
    ReadError::Invalid {
        format: NAME,
        problem: problem.to_owned(),
    }
}
