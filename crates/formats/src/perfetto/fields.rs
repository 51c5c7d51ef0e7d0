//! Walking over messages.

use crate::protobuf::reader::Reader;
use crate::protobuf::reader::Span;
use crate::protobuf::reader::Value;
use crate::protobuf::reader::WireError;

/// Visits the fields of a message in `data`.
pub(crate) fn fields(
    data: &[u8],
    span: Span,
    mut visit: impl FnMut(u32, Value) -> Result<(), WireError>,
) -> Result<(), WireError> {
    let mut reader = Reader::of(data, span);
    while let Some((number, value)) = reader.field()? {
        visit(number, value)?;
    }
    Ok(())
}

/// All of `data`, which is shorter than 4 GiB.
pub(crate) fn whole(data: &[u8]) -> Span {
    Span {
        start: 0,
        end: u32::try_from(data.len()).unwrap_or(u32::MAX),
    }
}

/// The bytes of a span of `data`.
pub(crate) fn bytes(data: &[u8], span: Span) -> &[u8] {
    data.get(span.range()).unwrap_or_default()
}

/// A field's number; one of another type counts as 0, as readers of protobuf skip it.
pub(crate) fn number(value: Value) -> u64 {
    match value {
        Value::Varint(number) => number,
        Value::Bytes(_) | Value::Fixed => 0,
    }
}

/// A number as what has signs; those beyond 64 bits are cut.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
