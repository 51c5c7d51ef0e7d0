//! Telling requests by their bytes: from other things, and from versions before 1.10.
//!
//! Up to 1.9 a sample had `values` as field 2, `attribute_indices` as 3 and `link_index` as 4; since
//! 1.10 these are `attribute_indices` 2, `link_index` 3 and `values` 4. The package name is the same,
//! so old bytes decode into nonsense: values become attribute indices.

use crate::otlp::wire;
use crate::protobuf::reader::Reader;
use crate::protobuf::reader::Span;
use crate::protobuf::reader::Value;
use crate::protobuf::text::is_text;

/// What to tell the sender.
pub(crate) const OLDER: &str = "the sample fields are those of OTLP profiles 1.9 or older, which \
    number them differently: update the sender to 1.10 or later";

/// What the first field of a message may be: its tag, and what stands first inside.
struct First {
    tag: u8,
    inside: &'static [Self],
}

const fn first(tag: u8, inside: &'static [First]) -> First {
    First { tag, inside }
}

/// key, value, key_strindex
const KEY_VALUE: &[First] = &[first(0x0a, &[]), first(0x12, &[]), first(0x18, &[])];
const RESOURCE: &[First] = &[first(0x0a, KEY_VALUE), first(0x10, &[]), first(0x1a, &[])];
/// name, version, attributes
const SCOPE: &[First] = &[first(0x0a, &[]), first(0x12, &[]), first(0x1a, KEY_VALUE)];
const VALUE_TYPE: &[First] = &[first(0x08, &[]), first(0x10, &[])];
/// sample_type, samples, time
const PROFILE: &[First] = &[first(0x0a, VALUE_TYPE), first(0x12, &[]), first(0x19, &[])];
const SCOPE_PROFILES: &[First] = &[first(0x0a, SCOPE), first(0x12, PROFILE)];
const RESOURCE_PROFILES: &[First] = &[first(0x0a, RESOURCE), first(0x12, SCOPE_PROFILES)];

/// Whether the start of some input is the start of a request: messages in messages, where pprof
/// and Perfetto, which start with the same tag, have numbers. Most encoders write fields in order, so
/// the first field of each message is one of few; others begin with the dictionary.
pub(crate) fn looks_like_otlp(prefix: &[u8]) -> bool {
    if prefix.len() <= 2 || is_text(prefix) {
        return false;
    }
    starts_with(prefix, &[first(0x0a, RESOURCE_PROFILES)]) || starts_with_dictionary(prefix)
}

/// Whether a request starts with its dictionary, as those of async-profiler 4.6 and those that the Collector merges do. A
/// sample of pprof has the same number and lists of the same type in its fields 1 to 3, but no others.
fn starts_with_dictionary(bytes: &[u8]) -> bool {
    const DICTIONARY: u8 = 0x12;
    let Some((&DICTIONARY, rest)) = bytes.split_first() else {
        return false;
    };
    let mut reader = Reader::new(rest);
    let Ok(length) = reader.varint() else {
        return false;
    };
    let body = &rest[reader.position()..];
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let is_cut = body.len() < length;
    let mut reader = Reader::new(&body[..length.min(body.len())]);
    let mut has_table_of_its_own = false;
    loop {
        match reader.field() {
            Ok(Some((number @ 1..=7, Value::Bytes(_)))) => has_table_of_its_own |= number > 3,
            Ok(Some(_)) => return false,
            Ok(None) => return has_table_of_its_own,
            Err(_) => return is_cut && has_table_of_its_own,
        }
    }
}

/// Whether a message starts with one of `allowed`; an empty one or a cut one may.
fn starts_with(bytes: &[u8], allowed: &[First]) -> bool {
    let Some((tag, rest)) = bytes.split_first() else {
        return true;
    };
    let Some(field) = allowed.iter().find(|field| field.tag == *tag) else {
        return false;
    };
    if field.inside.is_empty() {
        return true;
    }
    let mut reader = Reader::new(rest);
    let Ok(length) = reader.varint() else {
        return rest.len() < 10;
    };
    let body = &rest[reader.position()..];
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    starts_with(&body[..length.min(body.len())], field.inside)
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
