//! A request to OTLP in JSON: names in camel case, 64-bit numbers as strings, ids hexadecimal.

use opentelemetry_proto::tonic::common::v1::AnyValue;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use serde_json::Value;
use serde_json::json;

use crate::hex::hex;
use crate::otlp::ExportProfilesServiceRequest;
use crate::otlp::wire;

/// The JSON form of a request.
#[must_use]
pub fn otlp_request_to_json(request: &ExportProfilesServiceRequest) -> Value {
    json!({
        "resourceProfiles": all(&request.resource_profiles, resource_profiles),
        "dictionary": request.dictionary.as_ref().map(dictionary),
    })
}

fn all<T>(entries: &[T], convert: impl Fn(&T) -> Value) -> Value {
    entries.iter().map(convert).collect()
}

/// 64-bit numbers are strings, for readers whose numbers are floats.
fn long(number: &impl ToString) -> Value {
    Value::String(number.to_string())
}

fn resource_profiles(one: &wire::ResourceProfiles) -> Value {
    let attributes = one
        .resource
        .as_ref()
        .map(|resource| &resource.attributes[..]);
    json!({
        "resource": { "attributes": all(attributes.unwrap_or_default(), key_value) },
        "scopeProfiles": all(&one.scope_profiles, |scope| {
            let own = scope.scope.as_ref();
            json!({
                "scope": own.map(|own| json!({
                    "name": own.name,
                    "version": own.version,
                    "attributes": all(&own.attributes, key_value),
                })),
                "profiles": all(&scope.profiles, profile),
            })
        }),
    })
}

fn profile(one: &wire::Profile) -> Value {
    json!({
        "sampleType": one.sample_type.as_ref().map(value_type),
        "samples": all(&one.samples, |sample| json!({
            "stackIndex": sample.stack_index,
            "attributeIndices": sample.attribute_indices,
            "linkIndex": sample.link_index,
            "values": all(&sample.values, long),
            "timestampsUnixNano": all(&sample.timestamps_unix_nano, long),
        })),
        "timeUnixNano": long(&one.time_unix_nano),
        "durationNano": long(&one.duration_nano),
        "periodType": one.period_type.as_ref().map(value_type),
        "period": long(&one.period),
        "attributeIndices": one.attribute_indices,
    })
}

fn value_type(value_type: &wire::ValueType) -> Value {
    json!({ "typeStrindex": value_type.type_strindex, "unitStrindex": value_type.unit_strindex })
}

fn dictionary(tables: &wire::ProfilesDictionary) -> Value {
    json!({
        "mappingTable": all(&tables.mapping_table, |mapping| json!({
            "memoryStart": long(&mapping.memory_start),
            "memoryLimit": long(&mapping.memory_limit),
            "fileOffset": long(&mapping.file_offset),
            "filenameStrindex": mapping.filename_strindex,
            "attributeIndices": mapping.attribute_indices,
        })),
        "locationTable": all(&tables.location_table, |location| json!({
            "mappingIndex": location.mapping_index,
            "address": long(&location.address),
            "lines": all(&location.lines, |line| json!({
                "functionIndex": line.function_index,
                "line": long(&line.line),
                "column": long(&line.column),
            })),
            "attributeIndices": location.attribute_indices,
        })),
        "functionTable": all(&tables.function_table, |function| json!({
            "nameStrindex": function.name_strindex,
            "systemNameStrindex": function.system_name_strindex,
            "filenameStrindex": function.filename_strindex,
            "startLine": long(&function.start_line),
        })),
        "linkTable": all(&tables.link_table, |link| json!({
            "traceId": hex(&link.trace_id),
            "spanId": hex(&link.span_id),
        })),
        "stringTable": tables.string_table,
        "attributeTable": all(&tables.attribute_table, |attribute| json!({
            "keyStrindex": attribute.key_strindex,
            "value": attribute.value.as_ref().map(any_value),
            "unitStrindex": attribute.unit_strindex,
        })),
        "stackTable": all(&tables.stack_table, |stack| json!({
            "locationIndices": stack.location_indices,
        })),
    })
}

fn key_value(pair: &KeyValue) -> Value {
    json!({ "key": pair.key, "value": pair.value.as_ref().map(any_value) })
}

fn any_value(value: &AnyValue) -> Value {
    match &value.value {
        Some(Any::StringValue(text)) => json!({ "stringValue": text }),
        Some(Any::BoolValue(flag)) => json!({ "boolValue": flag }),
        Some(Any::IntValue(number)) => json!({ "intValue": long(number) }),
        Some(Any::DoubleValue(number)) => json!({ "doubleValue": number }),
        Some(Any::StringValueStrindex(index)) => json!({ "stringValueStrindex": index }),
        Some(Any::ArrayValue(array)) => {
            json!({ "arrayValue": { "values": all(&array.values, any_value) } })
        }
        // Our encoder writes neither maps nor bytes.
        Some(Any::KvlistValue(_) | Any::BytesValue(_)) | None => json!({}),
    }
}
