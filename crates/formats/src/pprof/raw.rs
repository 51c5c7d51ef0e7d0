//! The outer message, taken apart without looking into its parts.
//!
//! The string table comes last in what Go writes and functions come after the samples that use
//! them, so nothing can be resolved on the way: the first pass only notes where things are.

use crate::error::ReadError;
use crate::options::Limits;
use crate::pprof::NAME;
use crate::protobuf::reader::Problem;
use crate::protobuf::reader::Reader;
use crate::protobuf::reader::Span;
use crate::protobuf::reader::Value;
use crate::protobuf::reader::WireError;
use crate::protobuf::reader::error;
use crate::protobuf::reader::numbers;
use crate::protobuf::text::is_text;

/// Where the parts of a profile are, and its plain numbers. Strings are indices yet.
#[derive(Debug, Default)]
pub(crate) struct RawProfile {
    pub(crate) sample_types: Vec<RawValueType>,
    pub(crate) samples: Vec<Span>,
    pub(crate) mappings: Vec<Span>,
    pub(crate) locations: Vec<Span>,
    pub(crate) functions: Vec<Span>,
    pub(crate) strings: Vec<Span>,
    pub(crate) has_frame_filter: bool,
    pub(crate) time_nanos: i64,
    pub(crate) duration_nanos: i64,
    pub(crate) period_type: RawValueType,
    pub(crate) period: i64,
    pub(crate) comments: Vec<u64>,
    pub(crate) default_sample_type: u64,
    pub(crate) has_doc_url: bool,
}

/// A `ValueType` message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RawValueType {
    pub(crate) kind: u64,
    pub(crate) unit: u64,
}

/// Go's heap profile has 4 columns; each costs a series with labels of its own.
const MAX_SAMPLE_TYPES: usize = 64;

/// Ours say a type or a label each, those of others a line of the command.
const MAX_COMMENTS: usize = 1024;

/// Takes the outer message apart.
pub(crate) fn scan(data: &[u8], limits: &Limits) -> Result<RawProfile, ReadError> {
    let mut raw = RawProfile::default();
    let mut reader = Reader::new(data);
    loop {
        let start = reader.position();
        let field = reader.field().map_err(|error| error.named(NAME))?;
        let Some((number, value)) = field else {
            break;
        };
        raw.take_field(data, number, value, start)
            .map_err(|error| error.named(NAME))?;
        raw.check_counts(limits)?;
    }
    raw.check_strings(data)?;
    Ok(raw)
}

/// Whether the start of some input is the start of a pprof message. The first part of a request of
/// OTLP profiles has the same tag, and a message instead of a number inside.
pub(crate) fn looks_like_pprof(prefix: &[u8]) -> bool {
    let mut reader = Reader::new(prefix);
    let mut fields = 0;
    loop {
        match reader.field() {
            Ok(Some((number, value))) if is_plausible(prefix, number, value) => fields += 1,
            Ok(Some(_)) => return false,
            Ok(None) => return fields > 0,
            // The prefix may end inside of a field.
            Err(failure) => {
                let is_cut = matches!(failure.problem, Problem::CutBytes | Problem::CutVarint);
                return is_cut && fields > 0 && !is_text(prefix);
            }
        }
    }
}

fn is_plausible(data: &[u8], number: u32, value: Value) -> bool {
    match (number, value) {
        (1 | 11, Value::Bytes(span)) => {
            let first = data[span.range()].first();
            first.is_none_or(|&tag| tag == 0x08 || tag == 0x10)
        }
        (2..=6 | 13, Value::Bytes(_)) | (7..=10 | 12..=15, Value::Varint(_)) => true,
        _ => false,
    }
}

impl RawProfile {
    #[inline]
    fn take_field(
        &mut self,
        data: &[u8],
        number: u32,
        value: Value,
        start: usize,
    ) -> Result<(), WireError> {
        match (number, value) {
            (2, Value::Bytes(span)) => self.samples.push(span),
            (4, Value::Bytes(span)) => self.locations.push(span),
            (5, Value::Bytes(span)) => self.functions.push(span),
            (6, Value::Bytes(span)) => self.strings.push(span),
            (1, Value::Bytes(span)) => self.sample_types.push(value_type(data, span)?),
            (3, Value::Bytes(span)) => self.mappings.push(span),
            (11, Value::Bytes(span)) => self.period_type = value_type(data, span)?,
            (7 | 8, Value::Varint(index)) => self.has_frame_filter |= index != 0,
            (9, Value::Varint(time)) => self.time_nanos = time as i64,
            (10, Value::Varint(duration)) => self.duration_nanos = duration as i64,
            (12, Value::Varint(period)) => self.period = period as i64,
            // One more than may be is kept, which is enough to refuse them: a packed list may hold
            // as many as the input has bytes.
            (13, value) => numbers(data, 13, value, |index| {
                if self.comments.len() <= MAX_COMMENTS {
                    self.comments.push(index);
                }
            })?,
            (14, Value::Varint(index)) => self.default_sample_type = index,
            (15, Value::Varint(index)) => self.has_doc_url |= index != 0,
            (1..=15, _) => return Err(error(Problem::Mismatch(number), start)),
            // Fields of later versions are none of our business, as protobuf prescribes.
            _ => {}
        }
        Ok(())
    }

    /// Bounds what costs more memory here than on the wire.
    #[inline]
    fn check_counts(&self, limits: &Limits) -> Result<(), ReadError> {
        let counts = [
            (
                "the number of samples",
                self.samples.len(),
                limits.max_samples,
            ),
            (
                "the number of sample types",
                self.sample_types.len(),
                MAX_SAMPLE_TYPES,
            ),
            ("the number of comments", self.comments.len(), MAX_COMMENTS),
        ];
        for (what, count, limit) in counts {
            if count > limit {
                return Err(ReadError::TooLarge { what, limit });
            }
        }
        Ok(())
    }

    fn check_strings(&self, data: &[u8]) -> Result<(), ReadError> {
        let problem = match self.strings.first() {
            None => "the string table is missing: this is no pprof profile",
            Some(first) if !first.is_empty() => {
                let text = String::from_utf8_lossy(&data[first.range()]);
                let short: String = text.chars().take(40).collect();
                return Err(ReadError::Corrupt {
                    format: NAME,
                    problem: format!("string 0 must be empty and is {short:?}"),
                    offset: first.start as usize,
                });
            }
            Some(_) => return Ok(()),
        };
        Err(ReadError::Invalid {
            format: NAME,
            problem: problem.to_owned(),
        })
    }
}

fn value_type(data: &[u8], span: Span) -> Result<RawValueType, WireError> {
    let mut found = RawValueType::default();
    let mut reader = Reader::of(data, span);
    while let Some((number, value)) = reader.field()? {
        match (number, value) {
            (1, Value::Varint(index)) => found.kind = index,
            (2, Value::Varint(index)) => found.unit = index,
            (1 | 2, _) => return Err(error(Problem::Mismatch(number), span.start as usize)),
            _ => {}
        }
    }
    Ok(found)
}
