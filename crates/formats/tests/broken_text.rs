//! Names that are not UTF-8 are repaired and counted, in every format: one of them costs no profile.

use candela_formats::Format;
use candela_formats::Limits;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_formats::WriteOptions;
use candela_formats::inflate;
use candela_formats::logs_request_from_bytes;
use candela_formats::otlp_request_from_bytes;
use candela_formats::read;
use candela_formats::write;
use candela_model::FrameKind;
use candela_model::Labels;
use candela_model::Location;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::common::v1::AnyValue;
use opentelemetry_proto::tonic::common::v1::ArrayValue;
use opentelemetry_proto::tonic::common::v1::EntityRef;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::KeyValueList;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::logs::v1::ResourceLogs;
use opentelemetry_proto::tonic::logs::v1::ScopeLogs;
use opentelemetry_proto::tonic::profiles::v1development as wire;
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;

/// Stands where the broken byte will: found in no format by chance.
const MARKED: &str = "qXzJ_marked";
const REPAIRED: &str = "\u{fffd}XzJ_marked";

/// The same bytes, with every name that is marked broken, and how many were.
fn broken(mut bytes: Vec<u8>) -> (Vec<u8>, usize) {
    let places: Vec<usize> = bytes
        .windows(MARKED.len())
        .enumerate()
        .filter(|(_, window)| *window == MARKED.as_bytes())
        .map(|(place, _)| place)
        .collect();
    for &place in &places {
        bytes[place] = 0xff;
    }
    (bytes, places.len())
}

fn marked_profile() -> Profile {
    let mut profile = Profile::default();
    let profile_type = "process_cpu:cpu:nanoseconds:cpu:nanoseconds".parse();
    let labels = Labels::from_pairs([("service_name", "api")]);
    let mut series = ProfileSeries::new(labels, profile_type.unwrap());
    series.start_ns = 1_700_000_000_000_000_000;
    series.duration_ns = 1_000_000_000;
    series.period = 1;
    let stacks = [
        (&["main", MARKED][..], 30_000_000),
        (&["main"][..], 40_000_000),
    ];
    for (root_first, value) in stacks {
        let locations = root_first.iter().rev().map(|name| {
            let symbols = &mut profile.symbols;
            let function = symbols.intern_function(name, "", "app.c", 1);
            let location = Location::new(FrameKind::Native, 0);
            symbols.intern_location(&location, &[(function, 2, 0)])
        });
        let locations: Vec<_> = locations.collect();
        let stack = profile.stacks.intern(&locations);
        series.samples.push(Sample::new(stack, value));
    }
    profile.series.push(series);
    profile
}

#[test]
fn a_broken_name_costs_no_profile_in_any_format() {
    let mut tried = Vec::new();
    for format in Format::all().filter(|it| it.is_readable() && it.is_writable()) {
        let mut bytes = Vec::new();
        write(
            format,
            &marked_profile(),
            &mut bytes,
            &WriteOptions::default(),
        )
        .unwrap();
        let plain = inflate(&bytes, 1 << 20).unwrap().into_owned();
        let sound = read(format, &plain[..], &ReadOptions::default()).unwrap().0;
        let (bytes, count) = broken(plain);
        assert!(count > 0, "{format} has the name in it");
        let (profile, report) = read(format, &bytes[..], &ReadOptions::default())
            .unwrap_or_else(|error| panic!("{format}: {error}"));
        assert!(report.count("strings_repaired") > 0, "{format}: {report:?}");
        let total =
            |profile: &Profile| profile.series.iter().map(ProfileSeries::total).sum::<i64>();
        assert_eq!(total(&profile), total(&sound), "{format}");
        let strings = &profile.symbols.strings;
        let functions = profile.symbols.functions().iter();
        let mut names = functions.map(|function| strings.get(function.name));
        assert!(names.any(|name| name == REPAIRED), "{format}");
        tried.push(format.name());
    }
    assert!(tried.len() > 8, "{tried:?}");
}

fn text() -> String {
    MARKED.to_owned()
}

fn any(value: Any) -> Option<AnyValue> {
    Some(AnyValue { value: Some(value) })
}

/// A text, inside of a list, inside of a map.
fn attribute() -> KeyValue {
    let in_list = any(Any::StringValue(text())).unwrap();
    let list = any(Any::ArrayValue(ArrayValue {
        values: vec![in_list],
    }));
    let in_map = KeyValue {
        key: text(),
        value: list,
        ..KeyValue::default()
    };
    let value = any(Any::KvlistValue(KeyValueList {
        values: vec![in_map],
    }));
    KeyValue {
        key: text(),
        value,
        ..KeyValue::default()
    }
}

fn resource() -> Option<Resource> {
    Some(Resource {
        attributes: vec![attribute()],
        entity_refs: vec![EntityRef {
            schema_url: text(),
            r#type: text(),
            id_keys: vec![text()],
            description_keys: vec![text()],
        }],
        ..Resource::default()
    })
}

fn scope() -> Option<InstrumentationScope> {
    Some(InstrumentationScope {
        name: text(),
        version: text(),
        attributes: vec![attribute()],
        ..InstrumentationScope::default()
    })
}

#[test]
fn no_text_of_a_request_costs_the_request() {
    let request = ExportProfilesServiceRequest {
        resource_profiles: vec![wire::ResourceProfiles {
            resource: resource(),
            scope_profiles: vec![wire::ScopeProfiles {
                scope: scope(),
                profiles: vec![wire::Profile {
                    original_payload_format: text(),
                    ..wire::Profile::default()
                }],
                schema_url: text(),
            }],
            schema_url: text(),
        }],
        dictionary: Some(wire::ProfilesDictionary {
            string_table: vec![String::new(), text()],
            attribute_table: vec![wire::KeyValueAndUnit {
                value: attribute().value,
                ..wire::KeyValueAndUnit::default()
            }],
            ..wire::ProfilesDictionary::default()
        }),
    };
    let (bytes, texts) = broken(request.encode_to_vec());
    assert!(ExportProfilesServiceRequest::decode(&bytes[..]).is_err());
    let mut report = Report::default();
    let read = otlp_request_from_bytes(&bytes, &Limits::default(), &mut report).unwrap();
    assert_eq!(report.count("strings_repaired"), texts as u64);
    assert_eq!(read.dictionary.unwrap().string_table[1], REPAIRED);

    let request = ExportLogsServiceRequest {
        resource_logs: vec![ResourceLogs {
            resource: resource(),
            scope_logs: vec![ScopeLogs {
                scope: scope(),
                log_records: vec![LogRecord {
                    severity_text: text(),
                    event_name: text(),
                    body: attribute().value,
                    attributes: vec![attribute()],
                    ..LogRecord::default()
                }],
                schema_url: text(),
            }],
            schema_url: text(),
        }],
    };
    let (bytes, texts) = broken(request.encode_to_vec());
    let mut report = Report::default();
    let read = logs_request_from_bytes(&bytes, &Limits::default(), &mut report).unwrap();
    assert_eq!(report.count("strings_repaired"), texts as u64);
    let record = &read.resource_logs[0].scope_logs[0].log_records[0];
    assert_eq!(record.event_name, REPAIRED);
}
