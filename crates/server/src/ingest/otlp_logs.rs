//! The signal of logs of OTLP: records that are profile events become profiles, others are refused.

use candela_formats::ExportLogsServiceRequest;
use candela_formats::Limits;
use candela_formats::ReadError;
use candela_formats::Report;
use candela_formats::logs_request_from_bytes;
use candela_formats::logs_request_from_json;
use candela_formats::read_profile_events;
use candela_model::Profile;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsPartialSuccess;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceResponse;
use prost::Message;
use serde_json::Value;
use serde_json::json;

use crate::api_error::ApiError;
use crate::app::App;
use crate::auth::TenantName;
use crate::ingest::admission::admit_each;
use crate::ingest::otlp::ExportRequest;
use crate::ingest::otlp::Refused;
use crate::ingest::otlp::otlp_options;
use crate::ingest::read::read_error;

impl ExportRequest for ExportLogsServiceRequest {
    type Response = ExportLogsServiceResponse;
    const OVER_GRPC: &'static str = "otlp_logs_grpc";
    const OVER_HTTP: &'static str = "otlp_logs_http";

    fn from_protobuf(
        bytes: &[u8],
        limits: &Limits,
        report: &mut Report,
    ) -> Result<Self, ReadError> {
        logs_request_from_bytes(bytes, limits, report)
    }

    fn from_json(text: &[u8], limits: &Limits, report: &mut Report) -> Result<Self, ReadError> {
        logs_request_from_json(text, limits, report)
    }

    fn read(self, app: &App, tenant: &TenantName) -> Result<(Profile, Refused), ApiError> {
        let mut refused = Refused::default();
        let mut refuse = |reason: &'static str, count, message| {
            app.metrics.count_refused(tenant, reason, count);
            refused.add(count, message);
        };
        let options = otlp_options(app, tenant);
        let (profile, mut report) =
            read_profile_events(&self, &options).map_err(|error| read_error(&error))?;
        for rejection in &report.rejected {
            let message = format!(
                "{} records refused, {}: {}; what is stored here are profile events",
                rejection.profiles, rejection.reason, rejection.example
            );
            refuse(rejection.reason, rejection.profiles, message);
        }
        let profile = admit_each(app, tenant, profile, &mut report, |series, refusal| {
            let records = series.samples.len().max(1) as u64;
            refuse(refusal.reason, records, refusal.message);
        });
        // A record with several values is in as many series, and yet no more than one record.
        refused.count = refused.count.min(record_count(&self));
        app.metrics.count_changes(tenant, &report.notes);
        if !profile.series.is_empty() {
            app.tenants.charge(tenant, self.encoded_len() as u64);
        }
        Ok((profile, refused))
    }

    fn response(refused: Refused) -> ExportLogsServiceResponse {
        let partial_success = refused
            .message()
            .map(|error_message| ExportLogsPartialSuccess {
                rejected_log_records: refused.count,
                error_message,
            });
        ExportLogsServiceResponse { partial_success }
    }

    fn json(response: &ExportLogsServiceResponse) -> Value {
        match &response.partial_success {
            None => json!({}),
            Some(partial) => json!({"partialSuccess": {
                "rejectedLogRecords": partial.rejected_log_records.to_string(),
                "errorMessage": partial.error_message,
            }}),
        }
    }
}

fn record_count(request: &ExportLogsServiceRequest) -> i64 {
    let scopes = request
        .resource_logs
        .iter()
        .flat_map(|resource| &resource.scope_logs);
    let records: usize = scopes.map(|scope| scope.log_records.len()).sum();
    i64::try_from(records).unwrap_or(i64::MAX)
}
