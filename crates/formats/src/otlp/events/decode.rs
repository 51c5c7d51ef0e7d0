//! A request of logs to one profile of many series.

use std::borrow::Cow;

use candela_model::FrameKind;
use candela_model::Labels;
use candela_model::Link;
use candela_model::LinkId;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::Mapping;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::ProfileType;
use candela_model::SERVICE_NAME_LABEL;
use candela_model::Sample;
use candela_model::StackId;
use hashbrown::HashMap;
use opentelemetry_proto::tonic::common::v1::AnyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::logs::v1::ResourceLogs;
use serde_json::Map;
use serde_json::Value;

use crate::error::ReadError;
use crate::json_limits::check_value_count;
use crate::options::Limits;
use crate::options::ReadOptions;
use crate::otlp::ExportLogsServiceRequest;
use crate::otlp::NAME;
use crate::otlp::attributes::Texts;
use crate::otlp::decode::unknown_service;
use crate::otlp::events::fields::Fields;
use crate::otlp::events::labels::sample_labels;
use crate::otlp::events::labels::series_labels;
use crate::otlp::events::measures::Amounts;
use crate::otlp::events::measures::Measure;
use crate::otlp::events::stack::EventFrame;
use crate::otlp::events::stack::event_stack;
use crate::otlp::events::time::parse_rfc3339;
use crate::otlp::label_budget::LabelBudget;
use crate::otlp::label_budget::Refusal;
use crate::otlp::message_count::check_logs_message_count;
use crate::otlp::texts::LOGS_REQUEST;
use crate::protobuf::repair::decode_repaired;
use crate::report::Report;

const EXECUTABLE_LABEL: &str = "process_executable_name";

/// A request of logs from its bytes. Texts that are not UTF-8 are repaired and noted.
///
/// # Errors
/// When the bytes are no such request, or have more messages than may be.
pub fn logs_request_from_bytes(
    bytes: &[u8],
    limits: &Limits,
    report: &mut Report,
) -> Result<ExportLogsServiceRequest, ReadError> {
    check_logs_message_count(bytes, limits)?;
    decode_repaired(&bytes, &LOGS_REQUEST, report).map_err(|error| ReadError::Invalid {
        format: NAME,
        problem: format!("the bytes are no request of logs: {error}"),
    })
}

/// Takes all records of a request that are a `ProfileEvent` as samples: one series for each profile
/// type and set of labels, one sample for each event and value with the event's time. Records that are
/// none, or make no sense, are left out and counted in [`Report::rejected`] (a record counts as a
/// profile there); the others are taken.
///
/// # Errors
/// When the request has more records than samples may be.
pub fn read_profile_events(
    request: &ExportLogsServiceRequest,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let mut reader = Reader::new(options);
    for (position, resource) in request.resource_logs.iter().enumerate() {
        reader.resource(position, resource)?;
    }
    Ok((reader.profile, reader.report))
}

/// The same of texts that are an event each, without resources and attributes.
///
/// # Errors
/// When there are more events than samples may be.
pub(crate) fn read_event_texts<'t>(
    texts: impl Iterator<Item = Cow<'t, str>>,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let mut reader = Reader::new(options);
    for text in texts {
        let record = LogRecord {
            body: Some(AnyValue {
                value: Some(Any::StringValue(text.into_owned())),
            }),
            ..LogRecord::default()
        };
        if let Err(refusal) = reader.record(0, &Labels::default(), &record)? {
            reader.report.reject(refusal.reason, 1, &refusal.example);
        }
    }
    Ok((reader.profile, reader.report))
}

/// What tells series apart: the resource, the labels of the event itself and what is measured.
type SeriesKey = (usize, Labels, ProfileType);

struct Reader<'a> {
    options: &'a ReadOptions,
    profile: Profile,
    report: Report,
    series: HashMap<SeriesKey, usize>,
    samples: usize,
    budget: LabelBudget,
}

/// A sample but for its value.
#[derive(Clone, Copy)]
struct Taken {
    template: Sample,
    time_ns: i64,
}

impl<'a> Reader<'a> {
    fn new(options: &'a ReadOptions) -> Self {
        Self {
            options,
            profile: Profile::default(),
            report: Report::default(),
            series: HashMap::new(),
            samples: 0,
            // As much as all of the request may have: labels that outgrow it are repetition.
            budget: LabelBudget::new(options.limits.inflated_bytes()),
        }
    }

    fn resource(&mut self, position: usize, resource: &ResourceLogs) -> Result<(), ReadError> {
        let attributes = resource
            .resource
            .as_ref()
            .map(|resource| &resource.attributes[..]);
        let texts = Texts {
            strings: &[],
            limits: &self.options.limits,
        };
        let labels = self.budget.labels(attributes.unwrap_or_default(), texts);
        let records = resource
            .scope_logs
            .iter()
            .flat_map(|scope| &scope.log_records);
        for record in records {
            let taken = match &labels {
                Ok(labels) => self.record(position, labels, record)?,
                Err(refusal) => Err(refusal.clone()),
            };
            if let Err(refusal) = taken {
                self.report.reject(refusal.reason, 1, &refusal.example);
            }
        }
        Ok(())
    }

    /// The outer error ends the request, the inner one leaves the record out.
    fn record(
        &mut self,
        resource: usize,
        labels: &Labels,
        record: &LogRecord,
    ) -> Result<Result<(), Refusal>, ReadError> {
        let event = match event_object(record, &self.options.limits) {
            Ok(event) => event,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let fields = Fields(&event);
        let amounts = Amounts::of(fields);
        let measures = match checked_measures(&amounts) {
            Ok(measures) => measures,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let limit = self.options.limits.max_samples;
        self.samples += measures.len();
        if self.samples > limit {
            return Err(ReadError::TooLarge {
                what: "the number of samples",
                limit,
            });
        }
        let own_labels = series_labels(fields, &self.options.limits);
        let mut positions = Vec::with_capacity(measures.len());
        for measure in &measures {
            match self.series_of(resource, labels, &own_labels, measure) {
                Ok(position) => positions.push(position),
                Err(refusal) => return Ok(Err(refusal)),
            }
        }
        let taken = self.take(fields, &amounts, record);
        for (position, measure) in positions.into_iter().zip(measures) {
            self.push(position, taken, measure.value);
        }
        Ok(Ok(()))
    }

    fn take(&mut self, fields: Fields<'_>, amounts: &Amounts<'_>, record: &LogRecord) -> Taken {
        let limits = &self.options.limits;
        let kind = match amounts.is_jvm() {
            true => FrameKind::Jvm,
            false => FrameKind::Unknown,
        };
        let mut frames = event_stack(fields, kind, limits, &mut self.report);
        if frames.is_empty() && amounts.is_gc() {
            frames = gc_frames(fields);
        }
        let label_set = sample_labels(
            fields,
            &record.attributes,
            limits,
            &mut self.profile,
            &mut self.report,
        );
        let time_ns = self.time_of(fields, record);
        let template = Sample {
            stack: self.stack(&frames),
            value: 0,
            label_set,
            link: self.link(record),
            time_ns,
        };
        Taken { template, time_ns }
    }

    fn series_of(
        &mut self,
        resource: usize,
        labels: &Labels,
        own_labels: &Labels,
        measure: &Measure,
    ) -> Result<usize, Refusal> {
        let key = (resource, own_labels.clone(), measure.profile_type.clone());
        if let Some(&known) = self.series.get(&key) {
            return Ok(known);
        }
        let mut labels = self.budget.copy(labels)?;
        for (name, value) in own_labels.iter() {
            labels.set(name, value);
        }
        let mut labels = self.options.series_labels(labels);
        if labels.get(SERVICE_NAME_LABEL).is_none() {
            let service = unknown_service(labels.get(EXECUTABLE_LABEL));
            labels.set(SERVICE_NAME_LABEL, service);
        }
        let position = self.profile.series.len();
        self.profile.series.push(ProfileSeries {
            period: measure.period,
            ..ProfileSeries::new(labels, measure.profile_type.clone())
        });
        self.series.insert(key, position);
        Ok(position)
    }

    /// Adds a sample; the window of a series is from its first event to its last.
    fn push(&mut self, position: usize, taken: Taken, value: i64) {
        let series = &mut self.profile.series[position];
        let time_ns = taken.time_ns;
        if time_ns > 0 {
            let is_first = series.start_ns == 0;
            let start = if is_first {
                time_ns
            } else {
                series.start_ns.min(time_ns)
            };
            let end = if is_first {
                time_ns
            } else {
                series.start_ns + series.duration_ns
            };
            series.start_ns = start;
            series.duration_ns = end.max(time_ns) - start;
        }
        if value == 0 {
            let text = "events whose value is 0 were left out";
            self.report.note("events_without_value", text);
            return;
        }
        series.samples.push(Sample {
            value,
            ..taken.template
        });
    }

    fn time_of(&mut self, fields: Fields<'_>, record: &LogRecord) -> i64 {
        let own = fields
            .text(&["timestamp", "event.timestamp"])
            .map(parse_rfc3339);
        if own == Some(None) {
            let text = "events with a time that is none got that of their record";
            self.report.note("times_repaired", text);
        }
        let of_record = [record.time_unix_nano, record.observed_time_unix_nano];
        let of_record = of_record
            .into_iter()
            .find_map(|time| i64::try_from(time).ok().filter(|time| *time > 0));
        let time = own.flatten().or(of_record);
        time.unwrap_or(self.options.now_ns.max(0))
    }

    fn stack(&mut self, frames: &[EventFrame]) -> StackId {
        // The leaf comes first, so what is too deep for us is cut in front: stacks stay rooted.
        let cut = frames
            .len()
            .saturating_sub(self.options.limits.max_stack_depth);
        self.report.note_many(
            "stacks_cut",
            "stacks deeper than the limit were cut at the leaf",
            u64::from(cut > 0),
        );
        let mut locations: Vec<LocationId> = Vec::with_capacity(frames.len() - cut);
        for frame in &frames[cut..] {
            locations.push(self.location(frame));
        }
        self.profile.stacks.intern(&locations)
    }

    fn location(&mut self, frame: &EventFrame) -> LocationId {
        let limits = &self.options.limits;
        let [name, file, module] = [&frame.name, &frame.file, &frame.module].map(|text| {
            let cut = limits.cut(text);
            let is_cut = u64::from(cut.len() < text.len());
            let note = "strings longer than the limit were cut at their end";
            self.report.note_many("strings_cut", note, is_cut);
            cut
        });
        let symbols = &mut self.profile.symbols;
        let file_id = symbols.strings.intern(module);
        let mapping = symbols.intern_mapping(Mapping {
            file: file_id,
            ..Mapping::default()
        });
        let location = Location::new(frame.kind, frame.address).in_mapping(mapping);
        if name.is_empty() {
            return symbols.intern_location(&location, &[]);
        }
        let function = symbols.intern_function(name, "", file, 0);
        symbols.intern_location(&location, &[(function, frame.line, 0)])
    }

    fn link(&mut self, record: &LogRecord) -> LinkId {
        let link = Link {
            trace_id: record.trace_id.as_slice().try_into().unwrap_or_default(),
            span_id: record.span_id.as_slice().try_into().unwrap_or_default(),
        };
        self.profile.intern_link(link)
    }
}

/// The object in the body.
fn event_object(record: &LogRecord, limits: &Limits) -> Result<Map<String, Value>, Refusal> {
    let body = record.body.as_ref().and_then(|body| body.value.as_ref());
    let Some(Any::StringValue(text)) = body else {
        return Err(no_event("the body is no text"));
    };
    if !text.trim_start().starts_with('{') {
        return Err(no_event("the body is no JSON object"));
    }
    check_value_count(text.as_bytes(), limits).map_err(|error| no_event(&error.to_string()))?;
    let event: Map<String, Value> = serde_json::from_str(text)
        .map_err(|error| no_event(&format!("the body is no JSON object: {error}")))?;
    let amounts = Amounts::of(Fields(&event));
    if amounts.event.is_empty() && amounts.profile.is_empty() {
        return Err(no_event("the body has neither eventType nor profileType"));
    }
    Ok(event)
}

fn checked_measures(amounts: &Amounts<'_>) -> Result<Vec<Measure>, Refusal> {
    let measures = amounts.measures();
    if measures.is_empty() {
        return Err(Refusal {
            reason: "unknown_event_type",
            example: format!(
                "event type {:?} of profile type {:?} is none that is known",
                cut_text(amounts.event),
                cut_text(amounts.profile)
            ),
        });
    }
    let negative = measures.iter().find(|measure| measure.value < 0);
    if let Some(measure) = negative {
        return Err(Refusal {
            reason: "negative_value",
            example: format!("an event has the value {}", measure.value),
        });
    }
    Ok(measures)
}

/// Strangers' texts in messages stay short.
fn cut_text(text: &str) -> &str {
    &text[..text.floor_char_boundary(80)]
}

fn no_event(problem: &str) -> Refusal {
    Refusal {
        reason: "not_a_profile_event",
        example: problem.to_owned(),
    }
}

/// Collections run on no stack of the program: what they were, and why, takes its place.
fn gc_frames(fields: Fields<'_>) -> Vec<EventFrame> {
    let texts = [
        fields.text(&["gcCause", "event_data.gc_cause"]),
        fields.text(&["gcName", "event_data.gc_name"]),
        Some("garbage collection"),
    ];
    let frames = texts.into_iter().flatten().map(|name| EventFrame {
        name: name.to_owned(),
        kind: FrameKind::Jvm,
        ..EventFrame::default()
    });
    frames.collect()
}
