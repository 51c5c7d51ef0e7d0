//! A request of logs in JSON, read as requests of profiles are.

use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::logs::v1::ResourceLogs;
use opentelemetry_proto::tonic::logs::v1::ScopeLogs;
use serde_json::Value;

use crate::options::Limits;
use crate::otlp::ExportLogsServiceRequest;
use crate::otlp::json_read::Result;
use crate::otlp::json_read::any_value;
use crate::otlp::json_read::hex;
use crate::otlp::json_read::key_value;
use crate::otlp::json_read::list;
use crate::otlp::json_read::number;
use crate::otlp::json_read::optional;
use crate::otlp::json_read::resource;
use crate::otlp::json_read::root_object;
use crate::otlp::json_read::scope;
use crate::otlp::json_read::text;
use crate::report::Report;

/// A request of logs from the bytes of its JSON form. Unknown fields are ignored, absent ones are
/// zero.
///
/// # Errors
/// When the bytes are no JSON, a field has a value of the wrong type, or there are more values than
/// the limits allow.
pub fn logs_request_from_json(
    bytes: &[u8],
    limits: &Limits,
    report: &mut Report,
) -> Result<ExportLogsServiceRequest> {
    let root = root_object(bytes, limits, report)?;
    Ok(ExportLogsServiceRequest {
        resource_logs: list(&root, "resourceLogs", resource_logs)?,
    })
}

fn resource_logs(value: &Value) -> Result<ResourceLogs> {
    Ok(ResourceLogs {
        resource: optional(value, "resource", resource)?,
        scope_logs: list(value, "scopeLogs", scope_logs)?,
        schema_url: text(value, "schemaUrl")?,
    })
}

fn scope_logs(value: &Value) -> Result<ScopeLogs> {
    Ok(ScopeLogs {
        scope: optional(value, "scope", scope)?,
        log_records: list(value, "logRecords", log_record)?,
        schema_url: text(value, "schemaUrl")?,
    })
}

/// Severity may be a number or a name, and says nothing of a profile.
fn log_record(value: &Value) -> Result<LogRecord> {
    Ok(LogRecord {
        time_unix_nano: number(value, "timeUnixNano")?,
        observed_time_unix_nano: number(value, "observedTimeUnixNano")?,
        body: optional(value, "body", any_value)?,
        attributes: list(value, "attributes", key_value)?,
        trace_id: hex(value, "traceId")?,
        span_id: hex(value, "spanId")?,
        event_name: text(value, "eventName")?,
        ..LogRecord::default()
    })
}
