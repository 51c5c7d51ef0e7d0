//! The OpenTelemetry process context (OTEP 4719): resource attributes that a program publishes in a
//! mapping of its own, for readers such as this one.
//!
//! The mapping is named `OTEL_CTX` and starts with a header of 32 bytes: the signature, a version, the
//! payload's size, the time of publication (0 while it is being changed) and the payload's address.
//! The payload is a protobuf message whose field 1 is a `Resource`.

use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;

const SIGNATURE: &[u8; 8] = b"OTEL_CTX";
const HEADER_BYTES: usize = 32;
const VERSION: u32 = 2;
/// The largest payload read. Programs publish a few hundred bytes.
const LARGEST_PAYLOAD: usize = 64 << 10;
/// How often a context that changes under the reader is read again.
const ATTEMPTS: usize = 3;

/// In which attribute the names are that thread contexts (OTEP 4947) have numbers for.
const KEY_MAP: &str = "threadlocal.attribute_key_map";
/// Numbers of names are bytes.
const MOST_KEYS: usize = 256;
/// Bytes of such a name that are kept, as many as the kernel tells of a value: a window has the name once for each
/// of its contexts, and none of OpenTelemetry's conventions is as long.
const LONGEST_KEY: usize = 64;

/// The message of `opentelemetry/proto/common/v1/process_context.proto` (proto 1.11).
#[derive(Clone, PartialEq, Message)]
struct ProcessContext {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    /// What is for readers and no part of the resource.
    #[prost(message, repeated, tag = "2")]
    attributes: Vec<KeyValue>,
}

/// What a program publishes of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PublishedContext {
    /// Attributes of its resource, keys and values.
    pub(crate) resource: Vec<(String, String)>,
    /// The names of attributes of its threads, by their numbers.
    pub(crate) attribute_keys: Vec<AttributeKey>,
}

/// The name of an attribute of threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AttributeKey {
    /// Empty where there is none.
    pub(crate) name: String,
    /// Whether the program calls it by a longer one.
    pub(crate) is_cut: bool,
}

// === impl AttributeKey ===

impl AttributeKey {
    pub(crate) fn new(name: &str) -> Self {
        let kept = name.floor_char_boundary(LONGEST_KEY);
        Self {
            name: name[..kept].to_owned(),
            is_cut: kept < name.len(),
        }
    }
}

/// Whether a mapping with this name holds a process context. Kernels without named anonymous
/// memory show only the memfd's name.
#[must_use]
pub(crate) fn is_context_mapping(name: &[u8]) -> bool {
    [
        &b"/memfd:OTEL_CTX"[..],
        b"[anon_shmem:OTEL_CTX]",
        b"[anon:OTEL_CTX]",
    ]
    .iter()
    .any(|prefix| name.starts_with(prefix))
}

/// Reads the context published at `address`. `read` fills the buffer from an address of the process and tells whether all of it was readable.
///
/// `None` when there is no complete context of a known version.
pub(crate) fn read_context(
    address: u64,
    mut read: impl FnMut(u64, &mut [u8]) -> bool,
) -> Option<PublishedContext> {
    (0..ATTEMPTS).find_map(|_| {
        let mut header = [0; HEADER_BYTES];
        if !read(address, &mut header) {
            return None;
        }
        let published_at = word(&header, 16);
        let size = u32::from_le_bytes(header[12..16].try_into().expect("four bytes")) as usize;
        let version = u32::from_le_bytes(header[8..12].try_into().expect("four bytes"));
        let is_readable = header.starts_with(SIGNATURE) && version == VERSION;
        if !is_readable || published_at == 0 || size > LARGEST_PAYLOAD {
            return None;
        }
        let mut payload = vec![0; size];
        if !read(word(&header, 24), &mut payload) {
            return None;
        }
        // The publisher zeroes the time before it changes anything, so an equal header before and
        // after means that the payload between belongs to it.
        let mut header_after = [0; HEADER_BYTES];
        if !read(address, &mut header_after) || header_after != header {
            return None;
        }
        let context = ProcessContext::decode(&payload[..]).ok()?;
        Some(PublishedContext {
            resource: attributes(context.resource.unwrap_or_default().attributes),
            attribute_keys: attribute_keys(context.attributes),
        })
    })
}

fn word(header: &[u8; HEADER_BYTES], offset: usize) -> u64 {
    u64::from_le_bytes(header[offset..offset + 8].try_into().expect("eight bytes"))
}

fn attributes(attributes: Vec<KeyValue>) -> Vec<(String, String)> {
    attributes
        .into_iter()
        .filter_map(|attribute| {
            let value = match attribute.value?.value? {
                Value::StringValue(text) => text,
                Value::IntValue(number) => number.to_string(),
                Value::BoolValue(flag) => flag.to_string(),
                Value::DoubleValue(number) => number.to_string(),
                _ => return None,
            };
            Some((attribute.key, value))
        })
        .collect()
}

/// A number whose name is none stays one: those behind it must not take its place.
fn attribute_keys(attributes: Vec<KeyValue>) -> Vec<AttributeKey> {
    let mut maps = attributes.into_iter().filter(|it| it.key == KEY_MAP);
    let map = maps.next().and_then(|map| map.value?.value);
    let Some(Value::ArrayValue(names)) = map else {
        return Vec::new();
    };
    let names = names.values.into_iter().take(MOST_KEYS);
    let names = names.map(|name| match name.value {
        Some(Value::StringValue(name)) => AttributeKey::new(&name),
        _ => AttributeKey::default(),
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry_proto::tonic::common::v1::AnyValue;
    use opentelemetry_proto::tonic::common::v1::ArrayValue;

    const PAYLOAD_ADDRESS: u64 = 0x5000;
    const HEADER_ADDRESS: u64 = 0x1000;

    fn payload() -> Vec<u8> {
        let attribute = KeyValue {
            key: "service.name".to_owned(),
            value: Some(AnyValue {
                value: Some(Value::StringValue("checkout".to_owned())),
            }),
            ..KeyValue::default()
        };
        let resource = Resource {
            attributes: vec![attribute],
            ..Resource::default()
        };
        let text = |text: &str| AnyValue {
            value: Some(Value::StringValue(text.to_owned())),
        };
        let no_name = AnyValue {
            value: Some(Value::IntValue(7)),
        };
        let names = ArrayValue {
            values: vec![text("http_route"), no_name, text("user_id")],
        };
        let of_threads = KeyValue {
            key: KEY_MAP.to_owned(),
            value: Some(AnyValue {
                value: Some(Value::ArrayValue(names)),
            }),
            ..KeyValue::default()
        };
        ProcessContext {
            resource: Some(resource),
            attributes: vec![of_threads],
        }
        .encode_to_vec()
    }

    fn header(version: u32, published_at: u64, size: usize) -> Vec<u8> {
        let mut header = SIGNATURE.to_vec();
        header.extend(version.to_le_bytes());
        header.extend((size as u32).to_le_bytes());
        header.extend(published_at.to_le_bytes());
        header.extend(PAYLOAD_ADDRESS.to_le_bytes());
        header
    }

    fn read_from(header: &[u8], payload: &[u8], address: u64, buffer: &mut [u8]) -> bool {
        let source = match address {
            HEADER_ADDRESS => header,
            PAYLOAD_ADDRESS => payload,
            _ => return false,
        };
        if source.len() < buffer.len() {
            return false;
        }
        buffer.copy_from_slice(&source[..buffer.len()]);
        true
    }

    #[test]
    fn attributes_are_read() {
        let payload = payload();
        let header = header(2, 77, payload.len());
        let context = read_context(HEADER_ADDRESS, |address, buffer| {
            read_from(&header, &payload, address, buffer)
        });
        let context = context.expect("it is published");
        let expected = ("service.name".to_owned(), "checkout".to_owned());
        assert_eq!(context.resource, [expected]);
        let keys = context.attribute_keys.iter();
        let keys: Vec<(&str, bool)> = keys.map(|it| (it.name.as_str(), it.is_cut)).collect();
        assert_eq!(
            keys,
            [("http_route", false), ("", false), ("user_id", false)]
        );
    }

    #[test]
    fn names_of_attributes_are_cut_between_characters() {
        let longest = "k".repeat(LONGEST_KEY);
        let key = AttributeKey::new(&longest);
        assert_eq!((key.name, key.is_cut), (longest, false));
        let hostile = format!("k{}", "\u{fc}".repeat(LARGEST_PAYLOAD / 2));
        let key = AttributeKey::new(&hostile);
        assert_eq!((key.name.len(), key.is_cut), (LONGEST_KEY - 1, true));
    }

    #[test]
    fn unfinished_foreign_and_hostile_contexts_are_left_alone() {
        let payload = payload();
        for header in [
            header(2, 0, payload.len()),
            header(3, 77, payload.len()),
            header(2, 77, 1 << 30),
            vec![0; HEADER_BYTES],
        ] {
            let context = read_context(HEADER_ADDRESS, |address, buffer| {
                read_from(&header, &payload, address, buffer)
            });
            assert_eq!(context, None);
        }
    }

    #[test]
    fn a_context_that_changes_while_read_is_read_again() {
        let payload = payload();
        let (old, new) = (header(2, 77, payload.len()), header(2, 78, payload.len()));
        let mut reads = 0;
        let context = read_context(HEADER_ADDRESS, |address, buffer| {
            reads += 1;
            let header = if reads <= 2 { &old } else { &new };
            read_from(header, &payload, address, buffer)
        });
        assert!(context.is_some());
        assert!(reads > 3);
    }

    #[test]
    fn names_of_all_kernels() {
        assert!(is_context_mapping(b"/memfd:OTEL_CTX (deleted)"));
        assert!(is_context_mapping(b"[anon:OTEL_CTX]"));
        assert!(!is_context_mapping(b"/usr/lib/OTEL_CTX.so"));
    }
}
