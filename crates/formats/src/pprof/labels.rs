//! Sample labels, and the trace ids and times among them.

use candela_model::LabelSetId;
use candela_model::LabelValue;
use candela_model::Link;
use candela_model::LinkId;
use candela_model::Profile;
use candela_model::SampleLabel;
use candela_model::StringId;
use hashbrown::HashMap;

use crate::error::ReadError;
use crate::pprof::NAME;
use crate::pprof::OLD_SPAN_ID_LABEL;
use crate::pprof::SPAN_ID_LABEL;
use crate::pprof::TIME_LABEL;
use crate::pprof::TRACE_ID_LABEL;
use crate::pprof::strings::Strings;
use crate::protobuf::reader::Problem;
use crate::protobuf::reader::Reader;
use crate::protobuf::reader::Span;
use crate::protobuf::reader::Value;
use crate::protobuf::reader::error;
use crate::report::Report;

/// What the labels of a sample say.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Labelled {
    pub(crate) label_set: LabelSetId,
    pub(crate) link: LinkId,
    pub(crate) time_ns: i64,
}

/// Reads labels, each combination once: thousands of samples share the bytes of their labels.
#[derive(Debug, Default)]
pub(crate) struct LabelReader<'a> {
    known: HashMap<&'a [u8], Labelled>,
    /// Every sample may belong to another span, too many for the search of `intern_link`.
    links: HashMap<Link, LinkId>,
}

impl<'a> LabelReader<'a> {
    /// What the labels at `spans` say. `range` covers all of them and, when they stand together as
    /// in all files of Go, nothing else.
    pub(crate) fn read(
        &mut self,
        profile: &mut Profile,
        strings: &mut Strings<'a>,
        report: &mut Report,
        range: Span,
        spans: &[Span],
    ) -> Result<Labelled, ReadError> {
        if spans.is_empty() {
            return Ok(Labelled::default());
        }
        let bytes = &strings.data()[range.range()];
        if let Some(known) = self.known.get(bytes) {
            return Ok(*known);
        }
        let (label_set, link, time_ns) = read_all(profile, strings, report, spans)?;
        let labelled = Labelled {
            label_set,
            link: self.link_id(profile, link),
            time_ns,
        };
        self.known.insert(bytes, labelled);
        Ok(labelled)
    }

    fn link_id(&mut self, profile: &mut Profile, link: Link) -> LinkId {
        if link == Link::default() {
            return LinkId(0);
        }
        *self.links.entry(link).or_insert_with(|| {
            profile.links.push(link);
            LinkId::from_index(profile.links.len() - 1)
        })
    }
}

fn read_all(
    profile: &mut Profile,
    strings: &mut Strings<'_>,
    report: &mut Report,
    spans: &[Span],
) -> Result<(LabelSetId, Link, i64), ReadError> {
    let mut labels = Vec::with_capacity(spans.len());
    let mut link = Link::default();
    let mut time_ns = 0;
    for &span in spans {
        let Some(label) = read_label(profile, strings, span)? else {
            report.note(
                "labels_without_value",
                "labels without a value were left out",
            );
            continue;
        };
        let texts = &profile.symbols.strings;
        let key = texts.get(label.key);
        let is_special = match label.value {
            LabelValue::Text(value) => take_id(&mut link, key, texts.get(value)),
            LabelValue::Number { value, .. } => {
                let is_time = key == TIME_LABEL && time_ns == 0 && value > 0;
                if is_time {
                    time_ns = value;
                }
                is_time
            }
        };
        if !is_special {
            labels.push(label);
        }
    }
    Ok((profile.label_sets.intern(labels), link, time_ns))
}

/// Whether the label is a trace or span id, which is then taken. What only looks like one stays a
/// label.
fn take_id(link: &mut Link, key: &str, value: &str) -> bool {
    match key {
        TRACE_ID_LABEL if link.trace_id == [0; 16] => take_hex(&mut link.trace_id, value),
        SPAN_ID_LABEL | OLD_SPAN_ID_LABEL if link.span_id == [0; 8] => {
            take_hex(&mut link.span_id, value)
        }
        _ => false,
    }
}

fn take_hex(id: &mut [u8], text: &str) -> bool {
    let is_hex = text.len() == 2 * id.len()
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        && text.bytes().any(|byte| byte != b'0');
    if is_hex {
        for (byte, digits) in id.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *byte = hex_digit(digits[0]) << 4 | hex_digit(digits[1]);
        }
    }
    is_hex
}

fn hex_digit(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => digit - b'a' + 10,
    }
}

fn read_label(
    profile: &mut Profile,
    strings: &mut Strings<'_>,
    span: Span,
) -> Result<Option<SampleLabel>, ReadError> {
    let (mut key, mut text, mut number, mut unit) = (0, None, None, 0);
    let mut reader = Reader::of(strings.data(), span);
    while let Some((field, value)) = reader.field().map_err(|error| error.named(NAME))? {
        match (field, value) {
            (1, Value::Varint(index)) => key = index,
            (2, Value::Varint(index)) => text = Some(index),
            (3, Value::Varint(value)) => number = Some(value as i64),
            (4, Value::Varint(index)) => unit = index,
            (1..=4, _) => {
                return Err(error(Problem::Mismatch(field), span.start as usize).named(NAME));
            }
            _ => {}
        }
    }
    let key = strings.id(profile, key, span)?;
    let unit = strings.id(profile, unit, span)?;
    // Some writers put all four fields down, so a text of index 0 must not hide a number.
    let value = match (text, number) {
        (Some(index), _) if index != 0 => LabelValue::Text(strings.id(profile, index, span)?),
        (_, Some(value)) => LabelValue::Number { value, unit },
        (_, None) if unit != StringId(0) => LabelValue::Number { value: 0, unit },
        (Some(_), None) => LabelValue::Text(StringId(0)),
        (None, None) => return Ok(None),
    };
    Ok(Some(SampleLabel { key, value }))
}
