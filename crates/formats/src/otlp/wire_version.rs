//! Telling requests by their bytes: from other things, and from versions before 1.10.
//!
//! Up to 1.9 a sample had `values` as field 2, `attribute_indices` as 3 and `link_index` as 4; since
//! 1.10 these are `attribute_indices` 2, `link_index` 3 and `values` 4. The package name is the same,
//! so old bytes decode into nonsense: values become attribute indices.

use crate::otlp::wire;
use crate::protobuf::reader::Reader;
use crate::protobuf::reader::Span;
use crate::protobuf::reader::Value;

/// What to tell the sender.
pub(crate) const OLDER: &str = "the sample fields are those of OTLP profiles 1.9 or older, which \
    number them differently: update the sender to 1.10 or later";

/// Whether the start of some input is the start of a request: messages in messages, where pprof,
/// which starts with the same tag, has numbers.
pub(crate) fn looks_like_otlp(prefix: &[u8]) -> bool {
    let Some((outer, outer_length)) = tag_and_length(prefix) else {
        return false;
    };
    let inner = tag_and_length(outer);
    // resource_profiles or dictionary; in them resource, scopes, schema or any of seven tables.
    let highest = if prefix[0] == 0x0a { 3 } else { 7 };
    let is_table = |tag: u8| tag & 7 == 2 && (1..=highest).contains(&(tag >> 3));
    matches!(prefix[0], 0x0a | 0x12)
        && inner.is_some_and(|(_, length)| is_table(outer[0]) && length < outer_length)
}

/// What follows the tag and length at the start of `bytes`, and the length.
fn tag_and_length(bytes: &[u8]) -> Option<(&[u8], u64)> {
    let body = bytes.get(1..)?;
    let mut reader = Reader::new(body);
    let length = reader.varint().ok()?;
    Some((&body[reader.position()..], length))
}

/// Whether a sample has a list at field 3, which is a single number since 1.10.
pub(crate) fn looks_older(bytes: &[u8]) -> bool {
    // resource_profiles (1) · scope_profiles (2) · profiles (2) · samples (2)
    const PATH: [u32; 4] = [1, 2, 2, 2];
    u32::try_from(bytes.len()).is_ok_and(|end| has_old_sample(bytes, Span { start: 0, end }, &PATH))
}

/// Whether a sample that decoded must have been meant differently: it has attributes and no values
/// at all, or its attributes, one for each timestamp, repeat. Attributes cannot, values do.
pub(crate) fn is_older(sample: &wire::Sample) -> bool {
    let indices = &sample.attribute_indices;
    if !sample.values.is_empty() || indices.is_empty() {
        return false;
    }
    let times = sample.timestamps_unix_nano.len();
    let repeats = indices.windows(2).any(|pair| pair[0] == pair[1]);
    times == 0 || (times == indices.len() && repeats)
}

fn has_old_sample(bytes: &[u8], span: Span, path: &[u32]) -> bool {
    let mut reader = Reader::of(bytes, span);
    while let Ok(Some((number, value))) = reader.field() {
        let Value::Bytes(inner) = value else {
            continue;
        };
        match path {
            [] if number == 3 => return true,
            [step, rest @ ..] if *step == number && has_old_sample(bytes, inner, rest) => {
                return true;
            }
            _ => {}
        }
    }
    false
}
