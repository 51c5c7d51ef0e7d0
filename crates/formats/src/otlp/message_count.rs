//! How many messages a request has, before any of them takes memory.
//!
//! An empty message is two bytes on the wire and some hundred as a struct, so that a request within
//! the bound of bytes could still take gigabytes. Everything that has a length of its own is
//! counted, strings and packed lists too: as values they are no smaller.

use crate::error::ReadError;
use crate::options::Limits;
use crate::protobuf::reader::Reader;
use crate::protobuf::reader::Span;
use crate::protobuf::reader::Value;

/// A field whose value is a message, with the fields inside of it that are messages again.
struct Field {
    number: u32,
    inside: &'static [Self],
}

const fn field(number: u32, inside: &'static [Field]) -> Field {
    Field { number, inside }
}

// Values may hold values, so that these refer to each other: statics can, constants cannot.
static ANY_VALUE: [Field; 2] = [field(5, &ARRAY_VALUE), field(6, &KEY_VALUE_LIST)];
static ARRAY_VALUE: [Field; 1] = [field(1, &ANY_VALUE)];
static KEY_VALUE_LIST: [Field; 1] = [field(1, &KEY_VALUE)];
static KEY_VALUE: [Field; 1] = [field(2, &ANY_VALUE)];
/// attributes, entity_refs
static RESOURCE: [Field; 2] = [field(1, &KEY_VALUE), field(3, &[])];
/// attributes
static SCOPE: [Field; 1] = [field(3, &KEY_VALUE)];
/// sample_type, samples, period_type
static PROFILE: [Field; 3] = [field(1, &[]), field(2, &[]), field(5, &[])];
/// scope, profiles
static SCOPE_PROFILES: [Field; 2] = [field(1, &SCOPE), field(2, &PROFILE)];
/// resource, scope_profiles
static RESOURCE_PROFILES: [Field; 2] = [field(1, &RESOURCE), field(2, &SCOPE_PROFILES)];
/// lines
static LOCATION: [Field; 1] = [field(3, &[])];
/// The tables of mappings, locations, functions, links, attributes and stacks.
static DICTIONARY: [Field; 6] = [
    field(1, &[]),
    field(2, &LOCATION),
    field(3, &[]),
    field(4, &[]),
    field(6, &KEY_VALUE),
    field(7, &[]),
];
/// resource_profiles, dictionary
static REQUEST: [Field; 2] = [field(1, &RESOURCE_PROFILES), field(2, &DICTIONARY)];

/// body, attributes
static LOG_RECORD: [Field; 2] = [field(5, &ANY_VALUE), field(6, &KEY_VALUE)];
/// scope, log_records
static SCOPE_LOGS: [Field; 2] = [field(1, &SCOPE), field(2, &LOG_RECORD)];
/// resource, scope_logs
static RESOURCE_LOGS: [Field; 2] = [field(1, &RESOURCE), field(2, &SCOPE_LOGS)];
/// resource_logs
static LOGS_REQUEST: [Field; 1] = [field(1, &RESOURCE_LOGS)];

/// As deep as prost goes before it refuses.
const MAX_DEPTH: usize = 100;

/// The count has passed its limit.
struct TooMany;

/// Refuses bytes with more messages than may be. Bytes that are no request pass: the decoder says
/// better what is wrong with them.
pub(crate) fn check_message_count(bytes: &[u8], limits: &Limits) -> Result<(), ReadError> {
    check(bytes, &REQUEST, limits)
}

/// The same for a request of logs.
pub(crate) fn check_logs_message_count(bytes: &[u8], limits: &Limits) -> Result<(), ReadError> {
    check(bytes, &LOGS_REQUEST, limits)
}

fn check(bytes: &[u8], request: &'static [Field], limits: &Limits) -> Result<(), ReadError> {
    let Ok(end) = u32::try_from(bytes.len()) else {
        return Ok(());
    };
    let mut left = limits.max_messages;
    let whole = Span { start: 0, end };
    count(bytes, whole, request, MAX_DEPTH, &mut left).map_err(|TooMany| ReadError::TooLarge {
        what: "the number of messages of the request",
        limit: limits.max_messages,
    })
}

fn count(
    bytes: &[u8],
    span: Span,
    fields: &'static [Field],
    depth: usize,
    left: &mut usize,
) -> Result<(), TooMany> {
    let mut reader = Reader::of(bytes, span);
    while let Ok(Some((number, value))) = reader.field() {
        let Value::Bytes(inner) = value else {
            continue;
        };
        *left = left.checked_sub(1).ok_or(TooMany)?;
        let message = fields.iter().find(|field| field.number == number);
        if let (Some(message), Some(depth)) = (message, depth.checked_sub(1)) {
            count(bytes, inner, message.inside, depth, left)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_refused(bytes: &[u8], max_messages: usize) -> bool {
        let limits = Limits {
            max_messages,
            ..Limits::default()
        };
        check_message_count(bytes, &limits).is_err()
    }

    fn nested(fields: &[u8], innermost: &[u8]) -> Vec<u8> {
        fields
            .iter()
            .rev()
            .fold(innermost.to_vec(), |inner, number| {
                let mut outer = vec![number << 3 | 2];
                prost::encoding::encode_varint(inner.len() as u64, &mut outer);
                outer.extend(inner);
                outer
            })
    }

    #[test]
    fn empty_messages_count_wherever_they_stand() {
        // Paths to messages that repeat, and the tag of those.
        let paths: [(&[u8], u8); 6] = [
            (&[], 0x0a),
            (&[1], 0x12),
            (&[1, 2, 2], 0x12),
            (&[2], 0x2a),
            (&[2, 2], 0x1a),
            (&[1, 1, 1, 2, 5, 1, 5], 0x0a),
        ];
        for (path, tag) in paths {
            let bytes = nested(path, &[tag, 0].repeat(1000));
            let all = 1000 + path.len();
            assert!(!is_refused(&bytes, all), "{path:?}");
            assert!(is_refused(&bytes, all - 1), "{path:?}");
        }
    }

    #[test]
    fn depth_is_bounded_and_noise_passes() {
        let deep = [1, 1, 1, 2].into_iter().chain([5, 1].repeat(10_000));
        assert!(!is_refused(&nested(&deep.collect::<Vec<u8>>(), &[]), 200));
        assert!(!is_refused(&[0xff; 40], 0));
    }
}
