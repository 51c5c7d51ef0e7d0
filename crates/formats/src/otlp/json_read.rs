//! OTLP in JSON (<https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>) to a request.
//!
//! By hand instead of the serde derives of `opentelemetry-proto`: those want every field to be
//! there and 64-bit numbers to be numbers, while the encoding leaves defaults out and writes such
//! numbers as strings.

use opentelemetry_proto::tonic::common::v1::AnyValue;
use opentelemetry_proto::tonic::common::v1::ArrayValue;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::resource::v1::Resource;
use serde_json::Value;

use crate::error::ReadError;
use crate::json_input::repaired_json;
use crate::json_limits::check_value_count;
use crate::options::Limits;
use crate::otlp::ExportProfilesServiceRequest;
use crate::otlp::NAME;
use crate::otlp::wire;
use crate::report::Report;

pub(super) type Result<T> = std::result::Result<T, ReadError>;

/// A request from the bytes of its JSON form. Unknown fields are ignored, absent ones are zero.
///
/// # Errors
/// When the bytes are no JSON, a field has a value of the wrong type, or there are more values than
/// the limits allow.
pub fn otlp_request_from_json(
    bytes: &[u8],
    limits: &Limits,
    report: &mut Report,
) -> Result<ExportProfilesServiceRequest> {
    let root = root_object(bytes, limits, report)?;
    let dictionary = root.get("dictionary").filter(|value| !value.is_null());
    Ok(ExportProfilesServiceRequest {
        resource_profiles: list(&root, "resourceProfiles", resource_profiles)?,
        dictionary: dictionary.map(dictionary_tables).transpose()?,
    })
}

/// The object that a request is.
pub(super) fn root_object(bytes: &[u8], limits: &Limits, report: &mut Report) -> Result<Value> {
    check_value_count(bytes, limits)?;
    let text = repaired_json(bytes, report);
    let root: Value = serde_json::from_str(&text).map_err(|error| ReadError::Invalid {
        format: NAME,
        problem: format!("the bytes are no JSON: {error}"),
    })?;
    if !root.is_object() {
        return Err(wrong("the request", "an object"));
    }
    Ok(root)
}

/// Whether the start of some input is that of a request: an object that soon has one of its two
/// fields, whichever way it is laid out.
pub(crate) fn looks_like_otlp_json(prefix: &[u8]) -> bool {
    let text = String::from_utf8_lossy(prefix);
    let key = text
        .trim_start()
        .strip_prefix('{')
        .map(str::trim_start)
        .and_then(|rest| rest.strip_prefix('"'));
    let is_resource = key.is_some_and(|key| key.starts_with("resourceProfiles\""));
    // Tools of other profilers have a dictionary of their own, so that one needs a table inside.
    let is_dictionary =
        key.is_some_and(|key| key.starts_with("dictionary\"") && key.contains("Table\""));
    is_resource || is_dictionary
}

pub(super) fn wrong(field: &str, wanted: &str) -> ReadError {
    ReadError::Invalid {
        format: NAME,
        problem: format!("{field} must be {wanted}"),
    }
}

pub(super) fn field<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object.get(name).filter(|value| !value.is_null())
}

pub(super) fn list<T>(
    object: &Value,
    name: &str,
    convert: impl Fn(&Value) -> Result<T>,
) -> Result<Vec<T>> {
    let Some(value) = field(object, name) else {
        return Ok(Vec::new());
    };
    let elements = value.as_array().ok_or_else(|| wrong(name, "an array"))?;
    elements.iter().map(convert).collect()
}

/// A whole number, which 64-bit fields write as a string.
fn integer(value: &Value, name: &str) -> Result<i128> {
    let number = match value {
        Value::Number(number) => number
            .as_i64()
            .map(i128::from)
            .or_else(|| number.as_u64().map(i128::from)),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    number.ok_or_else(|| wrong(name, "a whole number"))
}

pub(super) fn number<T: TryFrom<i128> + Default>(object: &Value, name: &str) -> Result<T> {
    match field(object, name) {
        None => Ok(T::default()),
        Some(value) => to_number(value, name),
    }
}

fn to_number<T: TryFrom<i128>>(value: &Value, name: &str) -> Result<T> {
    T::try_from(integer(value, name)?).map_err(|_| wrong(name, "in the range of its type"))
}

fn numbers<T: TryFrom<i128>>(object: &Value, name: &str) -> Result<Vec<T>> {
    list(object, name, |value| to_number(value, name))
}

pub(super) fn text(object: &Value, name: &str) -> Result<String> {
    match field(object, name) {
        None => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(wrong(name, "a string")),
    }
}

/// Ids are hexadecimal in OTLP, unlike other bytes of protobuf's JSON.
pub(super) fn hex(object: &Value, name: &str) -> Result<Vec<u8>> {
    let digits = text(object, name)?;
    let bytes = digits.as_bytes().chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair)
            .ok()
            .filter(|pair| pair.len() == 2);
        pair.and_then(|pair| u8::from_str_radix(pair, 16).ok())
    });
    let bytes: Option<Vec<u8>> = bytes.collect();
    bytes.ok_or_else(|| wrong(name, "hexadecimal"))
}

pub(super) fn optional<T>(
    object: &Value,
    name: &str,
    convert: impl Fn(&Value) -> Result<T>,
) -> Result<Option<T>> {
    field(object, name).map(convert).transpose()
}

fn resource_profiles(value: &Value) -> Result<wire::ResourceProfiles> {
    Ok(wire::ResourceProfiles {
        resource: optional(value, "resource", resource)?,
        scope_profiles: list(value, "scopeProfiles", scope_profiles)?,
        schema_url: text(value, "schemaUrl")?,
    })
}

fn scope_profiles(value: &Value) -> Result<wire::ScopeProfiles> {
    Ok(wire::ScopeProfiles {
        scope: optional(value, "scope", scope)?,
        profiles: list(value, "profiles", profile)?,
        schema_url: text(value, "schemaUrl")?,
    })
}

pub(super) fn resource(value: &Value) -> Result<Resource> {
    Ok(Resource {
        attributes: list(value, "attributes", key_value)?,
        ..Resource::default()
    })
}

pub(super) fn scope(value: &Value) -> Result<InstrumentationScope> {
    Ok(InstrumentationScope {
        name: text(value, "name")?,
        version: text(value, "version")?,
        attributes: list(value, "attributes", key_value)?,
        dropped_attributes_count: 0,
    })
}

fn profile(value: &Value) -> Result<wire::Profile> {
    Ok(wire::Profile {
        sample_type: optional(value, "sampleType", value_type)?,
        samples: list(value, "samples", |sample| {
            Ok(wire::Sample {
                stack_index: number(sample, "stackIndex")?,
                attribute_indices: numbers(sample, "attributeIndices")?,
                link_index: number(sample, "linkIndex")?,
                values: numbers(sample, "values")?,
                timestamps_unix_nano: numbers(sample, "timestampsUnixNano")?,
            })
        })?,
        time_unix_nano: number(value, "timeUnixNano")?,
        duration_nano: number(value, "durationNano")?,
        period_type: optional(value, "periodType", value_type)?,
        period: number(value, "period")?,
        attribute_indices: numbers(value, "attributeIndices")?,
        ..wire::Profile::default()
    })
}

fn value_type(value: &Value) -> Result<wire::ValueType> {
    Ok(wire::ValueType {
        type_strindex: number(value, "typeStrindex")?,
        unit_strindex: number(value, "unitStrindex")?,
    })
}

fn dictionary_tables(value: &Value) -> Result<wire::ProfilesDictionary> {
    Ok(wire::ProfilesDictionary {
        mapping_table: list(value, "mappingTable", |mapping| {
            Ok(wire::Mapping {
                memory_start: number(mapping, "memoryStart")?,
                memory_limit: number(mapping, "memoryLimit")?,
                file_offset: number(mapping, "fileOffset")?,
                filename_strindex: number(mapping, "filenameStrindex")?,
                attribute_indices: numbers(mapping, "attributeIndices")?,
            })
        })?,
        location_table: list(value, "locationTable", location)?,
        function_table: list(value, "functionTable", |function| {
            Ok(wire::Function {
                name_strindex: number(function, "nameStrindex")?,
                system_name_strindex: number(function, "systemNameStrindex")?,
                filename_strindex: number(function, "filenameStrindex")?,
                start_line: number(function, "startLine")?,
            })
        })?,
        link_table: list(value, "linkTable", |link| {
            Ok(wire::Link {
                trace_id: hex(link, "traceId")?,
                span_id: hex(link, "spanId")?,
            })
        })?,
        string_table: list(value, "stringTable", |string| {
            let text = string
                .as_str()
                .ok_or_else(|| wrong("stringTable", "of strings"))?;
            Ok(text.to_owned())
        })?,
        attribute_table: list(value, "attributeTable", |attribute| {
            Ok(wire::KeyValueAndUnit {
                key_strindex: number(attribute, "keyStrindex")?,
                value: optional(attribute, "value", any_value)?,
                unit_strindex: number(attribute, "unitStrindex")?,
            })
        })?,
        stack_table: list(value, "stackTable", |stack| {
            Ok(wire::Stack {
                location_indices: numbers(stack, "locationIndices")?,
            })
        })?,
    })
}

fn location(value: &Value) -> Result<wire::Location> {
    Ok(wire::Location {
        mapping_index: number(value, "mappingIndex")?,
        address: number(value, "address")?,
        lines: list(value, "lines", |line| {
            Ok(wire::Line {
                function_index: number(line, "functionIndex")?,
                line: number(line, "line")?,
                column: number(line, "column")?,
            })
        })?,
        attribute_indices: numbers(value, "attributeIndices")?,
    })
}

pub(super) fn key_value(value: &Value) -> Result<KeyValue> {
    Ok(KeyValue {
        key: text(value, "key")?,
        value: optional(value, "value", any_value)?,
        key_strindex: number(value, "keyStrindex")?,
    })
}

/// Maps and bytes have no place in labels: they come out as an empty value.
pub(super) fn any_value(value: &Value) -> Result<AnyValue> {
    let any = if let Some(string) = field(value, "stringValue") {
        let text = string
            .as_str()
            .ok_or_else(|| wrong("stringValue", "a string"))?;
        Some(Any::StringValue(text.to_owned()))
    } else if let Some(flag) = field(value, "boolValue") {
        Some(Any::BoolValue(
            flag.as_bool()
                .ok_or_else(|| wrong("boolValue", "true or false"))?,
        ))
    } else if let Some(number) = field(value, "intValue") {
        Some(Any::IntValue(to_number(number, "intValue")?))
    } else if let Some(number) = field(value, "doubleValue") {
        let parsed = number.as_f64().or_else(|| number.as_str()?.parse().ok());
        Some(Any::DoubleValue(
            parsed.ok_or_else(|| wrong("doubleValue", "a number"))?,
        ))
    } else if let Some(index) = field(value, "stringValueStrindex") {
        Some(Any::StringValueStrindex(to_number(
            index,
            "stringValueStrindex",
        )?))
    } else if let Some(array) = field(value, "arrayValue") {
        let values = list(array, "values", any_value)?;
        Some(Any::ArrayValue(ArrayValue { values }))
    } else {
        None
    };
    Ok(AnyValue { value: any })
}
