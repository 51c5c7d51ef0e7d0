//! OTLP profiles: conventions both ways, refusals, hostile bytes.

use crate::common;
use crate::common::otlp_request::ebpf_request;
use crate::common::otlp_request::text;
use crate::common::real_files;
use candela_formats::AgentReport;
use candela_formats::AttributeValue;
use candela_formats::ExportProfilesServiceRequest;
use candela_formats::Limits;
use candela_formats::OtlpOptions;
use candela_formats::ReadError;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_formats::decode_otlp;
use candela_formats::decode_otlp_bytes;
use candela_formats::encode_otlp;
use candela_formats::otlp_request_from_json;
use candela_formats::otlp_request_to_json;
use candela_formats::read_pprof;
use candela_model::FrameKind;
use candela_model::Labels;
use candela_model::Profile;
use opentelemetry_proto::tonic::profiles::v1development as wire;
use prost::Message;

fn from_json(text: &str) -> Result<ExportProfilesServiceRequest, ReadError> {
    otlp_request_from_json(text.as_bytes(), &Limits::default(), &mut Report::default())
}

fn decode(request: &ExportProfilesServiceRequest) -> (Profile, Report) {
    decode_otlp(request, &ReadOptions::default()).unwrap()
}

#[test]
fn a_request_of_another_agent_becomes_our_types_and_labels() {
    let (profile, report) = decode(&ebpf_request());
    assert_eq!(report, Report::default());
    assert_eq!(profile.validate(), Ok(()));
    let [series] = &profile.series[..] else {
        panic!("{:?}", profile.series);
    };
    let labels = r#"{cloud.region="eu", container_id="abc", pod="web-1", service_name="unknown_service:app"}"#;
    assert_eq!(series.labels.to_string(), labels);
    assert_eq!(
        series.profile_type.to_string(),
        "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
    );
    let values: Vec<(i64, i64)> = series
        .samples
        .iter()
        .map(|sample| (sample.value, sample.time_ns))
        .collect();
    let expected = [
        (50_000_000, 1_100_000_000),
        (50_000_000, 1_200_000_000),
        (150_000_000, 0),
    ];
    assert_eq!(values, expected);
    let first = series.samples[0];
    assert_eq!(profile.links[first.link.index()].trace_id, [7; 16]);
    let stack = profile.stacks.get(first.stack);
    let kinds: Vec<FrameKind> = stack
        .iter()
        .map(|&id| profile.symbols.location(id).kind)
        .collect();
    assert_eq!(kinds, [FrameKind::Kernel, FrameKind::Unknown]);
    let mapping = profile
        .symbols
        .mapping(profile.symbols.location(stack[1]).mapping);
    assert_eq!(profile.symbols.strings.get(mapping.build_id), "c0ffee");
    let description = common::describe(&profile, &first);
    assert!(
        description.contains("thread_name=\\\"worker\\\""),
        "{description}"
    );
}

#[test]
fn samples_go_to_the_service_they_name() {
    let mut request = ebpf_request();
    let dictionary = request.dictionary.as_mut().unwrap();
    dictionary.string_table.push("service.name".to_owned());
    dictionary.attribute_table.push(wire::KeyValueAndUnit {
        key_strindex: 13,
        value: text("checkout"),
        unit_strindex: 0,
    });
    let samples = &mut request.resource_profiles[0].scope_profiles[0].profiles[0].samples;
    samples[1].attribute_indices.push(5);
    let (profile, _) = decode(&request);
    let services: Vec<&str> = profile
        .series
        .iter()
        .map(|series| series.labels.get("service_name").unwrap())
        .collect();
    assert_eq!(services, ["unknown_service:app", "checkout"]);
    let options = ReadOptions {
        labels: Labels::from_pairs([("service_name", "mine")]),
        ..ReadOptions::default()
    };
    let (profile, _) = decode_otlp(&request, &options).unwrap();
    assert!(
        profile
            .series
            .iter()
            .all(|series| series.labels.get("service_name") == Some("mine"))
    );
}

#[test]
fn refused_profiles_do_not_take_others_with_them() {
    type Change = fn(&mut wire::Profile);
    let cases: [(&str, &str, Change); 8] = [
        ("dangling_index", "stack 9", |one| {
            one.samples[0].stack_index = 9;
        }),
        ("dangling_index", "stack -1", |one| {
            one.samples[0].stack_index = -1;
        }),
        ("dangling_index", "link 5", |one| {
            one.samples[0].link_index = 5;
        }),
        ("dangling_index", "attribute 77", |one| {
            one.samples[0].attribute_indices = vec![77];
        }),
        ("no_sample_type", "what its values are", |one| {
            one.sample_type = None;
        }),
        ("no_values", "neither values nor", |one| {
            one.samples[0] = wire::Sample {
                stack_index: 1,
                ..wire::Sample::default()
            };
        }),
        ("values_and_timestamps_differ", "1 values and 2", |one| {
            one.samples[0].values = vec![1];
        }),
        ("time_out_of_range", "start", |one| {
            one.time_unix_nano = u64::MAX;
        }),
    ];
    for (reason, part, change) in cases {
        let mut request = ebpf_request();
        let profiles = &mut request.resource_profiles[0].scope_profiles[0].profiles;
        profiles.push(profiles[0].clone());
        change(&mut profiles[1]);
        let (profile, report) = decode(&request);
        assert_eq!(profile.series.len(), 1, "{reason}: the good one stays");
        assert_eq!(report.rejected_profiles(), 1, "{reason}");
        assert_eq!(report.rejected[0].reason, reason);
        assert_eq!(report.rejected[0].samples, 2);
        assert!(
            report.rejection_message().contains(part),
            "{}",
            report.rejection_message()
        );
    }
}

#[test]
fn a_broken_table_entry_refuses_only_its_users() {
    let mut request = ebpf_request();
    let dictionary = request.dictionary.as_mut().unwrap();
    dictionary.location_table[2].lines[0].function_index = 40;
    let profiles = &mut request.resource_profiles[0].scope_profiles[0].profiles;
    profiles.push(profiles[0].clone());
    profiles[1].samples.remove(0);
    let (profile, report) = decode(&request);
    assert_eq!(profile.series.len(), 1);
    assert_eq!(profile.series[0].samples.len(), 1);
    assert_eq!(report.rejected[0].reason, "dangling_index");
}

#[test]
fn requests_without_a_dictionary_are_refused_whole() {
    let mut request = ebpf_request();
    request.dictionary = None;
    let message = decode_otlp(&request, &ReadOptions::default())
        .unwrap_err()
        .to_string();
    assert!(message.contains("has no dictionary"), "{message}");
    let empty = ExportProfilesServiceRequest::default();
    assert_eq!(decode(&empty).0.series, []);
    let mut options = ReadOptions::default();
    options.limits.max_samples = 2;
    let message = decode_otlp(&ebpf_request(), &options)
        .unwrap_err()
        .to_string();
    assert!(message.contains("limit of 2"), "{message}");
}

/// Samples as they were numbered up to version 1.9.
#[derive(Clone, PartialEq, Message)]
struct OldSample {
    #[prost(int32, tag = "1")]
    stack_index: i32,
    #[prost(int64, repeated, tag = "2")]
    values: Vec<i64>,
    #[prost(int32, repeated, tag = "3")]
    attribute_indices: Vec<i32>,
    #[prost(int32, tag = "4")]
    link_index: i32,
    #[prost(fixed64, repeated, tag = "5")]
    timestamps_unix_nano: Vec<u64>,
}

/// One field around some bytes.
fn nested(field: u32, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    prost::encoding::encode_key(field, prost::encoding::WireType::LengthDelimited, &mut out);
    prost::encoding::encode_varint(bytes.len() as u64, &mut out);
    out.extend_from_slice(bytes);
    out
}

#[test]
fn senders_of_older_versions_are_told_so() {
    let old = |attribute_indices: Vec<i32>, timestamps_unix_nano: Vec<u64>| OldSample {
        stack_index: 1,
        values: vec![1, 1],
        attribute_indices,
        link_index: 0,
        timestamps_unix_nano,
    };
    for sample in [
        old(vec![1, 4], vec![]),
        old(vec![], vec![]),
        old(vec![], vec![5, 6]),
    ] {
        let mut request = ebpf_request();
        let profiles = &mut request.resource_profiles[0].scope_profiles[0].profiles;
        profiles[0].samples.clear();
        let mut profile = profiles[0].encode_to_vec();
        profiles.clear();
        profile.extend(nested(2, &sample.encode_to_vec()));
        let mut bytes = nested(1, &nested(2, &nested(2, &profile)));
        request.resource_profiles.clear();
        bytes.extend(request.encode_to_vec());
        let message = match decode_otlp_bytes(&bytes, &ReadOptions::default()) {
            Err(error) => error.to_string(),
            Ok((_, report)) => report.rejection_message(),
        };
        assert!(
            message.contains("OTLP profiles 1.9 or older"),
            "{sample:?}: {message}"
        );
    }
}

#[test]
fn what_our_agent_says_of_itself_arrives_once() {
    let (profile, _) = decode(&ebpf_request());
    let mut twice = profile.clone();
    twice.absorb(&profile);
    let options = OtlpOptions {
        scope_name: "candela".to_owned(),
        scope_version: "0.1".to_owned(),
        resource_attributes: vec![("host.name".to_owned(), AttributeValue::Text("h".to_owned()))],
        attributes: vec![
            (
                "candela.agent.version".to_owned(),
                AttributeValue::Text("0.1".to_owned()),
            ),
            (
                "candela.agent.started_ms".to_owned(),
                AttributeValue::Number(5),
            ),
            ("candela.drops.ring".to_owned(), AttributeValue::Number(12)),
        ],
    };
    let (again, report) = decode(&encode_otlp(&twice, &options));
    let agent = AgentReport {
        host: "h".to_owned(),
        started_ms: 5,
        start_ns: profile.series[0].start_ns,
        attributes: options.attributes,
    };
    assert_eq!(report.agents, [agent]);
    assert_eq!(again.series[0].labels.get("host"), Some("h"));
    assert_eq!(again.series[0].labels.get("candela.agent.version"), None);
}

#[test]
fn the_dictionary_has_no_duplicates_and_no_orphans() {
    for file in real_files("pprof") {
        if file.expected != "ok" {
            continue;
        }
        let (name, bytes) = (file.name, file.bytes);
        let options = ReadOptions {
            default_service: "test".to_owned(),
            ..ReadOptions::default()
        };
        let (profile, _) = read_pprof(&bytes[..], &options).unwrap();
        let request = encode_otlp(&profile, &OtlpOptions::default());
        let dictionary = request.dictionary.as_ref().unwrap();
        assert_no_duplicates(&dictionary.string_table, &name);
        assert_no_duplicates(&dictionary.function_table, &name);
        assert_no_duplicates(&dictionary.mapping_table, &name);
        assert_no_duplicates(&dictionary.location_table, &name);
        assert_no_duplicates(&dictionary.stack_table, &name);
        assert_no_duplicates(&dictionary.attribute_table, &name);
        assert_every_entry_is_used(&request, &name);
        let (again, report) = decode_otlp_bytes(&request.encode_to_vec(), &options).unwrap();
        assert_eq!(report, Report::default(), "{name}");
        common::assert_same_content(&again, &profile, &name);
    }
}

fn assert_no_duplicates<T: std::fmt::Debug>(table: &[T], name: &str) {
    let distinct: std::collections::HashSet<String> =
        table.iter().map(|entry| format!("{entry:?}")).collect();
    assert_eq!(distinct.len(), table.len(), "{name}");
}

fn assert_every_entry_is_used(request: &ExportProfilesServiceRequest, name: &str) {
    let dictionary = request.dictionary.as_ref().unwrap();
    let profiles = || {
        let scopes = request
            .resource_profiles
            .iter()
            .flat_map(|one| &one.scope_profiles);
        scopes.flat_map(|scope| &scope.profiles)
    };
    let samples = || profiles().flat_map(|one| &one.samples);
    let all_used = |what: &str, len: usize, used: Vec<i32>| {
        let mut used: Vec<i32> = used.into_iter().filter(|&index| index != 0).collect();
        used.sort_unstable();
        used.dedup();
        assert_eq!(used.len() + 1, len, "{name}: {what}");
    };
    let locations = || &dictionary.location_table;
    let lines = || locations().iter().flat_map(|location| &location.lines);
    all_used(
        "stacks",
        dictionary.stack_table.len(),
        samples().map(|one| one.stack_index).collect(),
    );
    all_used(
        "links",
        dictionary.link_table.len(),
        samples().map(|one| one.link_index).collect(),
    );
    let stacks = dictionary.stack_table.iter();
    let used = stacks
        .flat_map(|stack| stack.location_indices.clone())
        .collect();
    all_used("locations", locations().len(), used);
    let used = lines().map(|line| line.function_index).collect();
    all_used("functions", dictionary.function_table.len(), used);
    let used = locations()
        .iter()
        .map(|location| location.mapping_index)
        .collect();
    all_used("mappings", dictionary.mapping_table.len(), used);
    let mut used: Vec<i32> = samples()
        .flat_map(|one| one.attribute_indices.clone())
        .collect();
    used.extend(profiles().flat_map(|one| one.attribute_indices.clone()));
    used.extend(
        locations()
            .iter()
            .flat_map(|one| one.attribute_indices.clone()),
    );
    used.extend(
        dictionary
            .mapping_table
            .iter()
            .flat_map(|one| one.attribute_indices.clone()),
    );
    all_used("attributes", dictionary.attribute_table.len(), used);
}

#[test]
fn json_leaves_nothing_out() {
    let request = ebpf_request();
    let json = otlp_request_to_json(&request);
    let samples = &json["resourceProfiles"][0]["scopeProfiles"][0]["profiles"][0]["samples"];
    assert_eq!(
        samples[0]["timestampsUnixNano"][0], "1100000000",
        "64-bit numbers are strings"
    );
    assert_eq!(
        json["dictionary"]["linkTable"][1]["spanId"],
        "0808080808080808"
    );
    let again = from_json(&json.to_string()).unwrap();
    let (expected, _) = decode(&request);
    common::assert_same_content(&decode(&again).0, &expected, "json");
    assert_eq!(again.dictionary, request.dictionary);
}

#[test]
fn json_takes_numbers_either_way_and_defaults() {
    let text = r#"{"dictionary":{"stringTable":["","cpu","nanoseconds","f"],
        "functionTable":[{},{"nameStrindex":3}],"locationTable":[{},{"lines":[{"functionIndex":1}]}],
        "stackTable":[{},{"locationIndices":[1]}]},
        "resourceProfiles":[{"scopeProfiles":[{"profiles":[{"sampleType":{"typeStrindex":1,"unitStrindex":2},
        "timeUnixNano":"1700000000000000000","unknownField":true,
        "samples":[{"stackIndex":1,"values":["5"]},{"stackIndex":1,"values":[7]}]}]}]}]}"#;
    let (profile, report) = decode(&from_json(text).unwrap());
    assert_eq!(report, Report::default());
    assert_eq!(profile.series[0].total(), 12);
    assert_eq!(profile.series[0].start_ns, 1_700_000_000_000_000_000);
    let cases = [
        ("[]", "the request must be an object"),
        ("{", "no JSON"),
        (
            r#"{"resourceProfiles":{}}"#,
            "resourceProfiles must be an array",
        ),
        (
            r#"{"dictionary":{"linkTable":[{"traceId":"xyz"}]}}"#,
            "traceId must be hexadecimal",
        ),
        (
            r#"{"dictionary":{"stackTable":[{"locationIndices":[9999999999]}]}}"#,
            "in the range",
        ),
    ];
    for (text, part) in cases {
        let message = from_json(text).unwrap_err().to_string();
        assert!(message.contains(part), "{text}: {message}");
    }
}

/// A request of many profiles with one sample each, all of one resource.
fn wide_request(
    profiles: usize,
    change: impl Fn(&mut wire::Profile),
) -> ExportProfilesServiceRequest {
    let mut request = ebpf_request();
    let scope = &mut request.resource_profiles[0].scope_profiles[0];
    let mut one = scope.profiles[0].clone();
    one.samples.truncate(1);
    change(&mut one);
    scope.profiles = vec![one; profiles];
    request
}

fn pair(key: &str, value: &str) -> opentelemetry_proto::tonic::common::v1::KeyValue {
    opentelemetry_proto::tonic::common::v1::KeyValue {
        key: key.to_owned(),
        value: text(value),
        key_strindex: 0,
    }
}

fn only_rejection(report: &Report) -> (&'static str, u64) {
    let [rejection] = &report.rejected[..] else {
        panic!("{:?}", report.rejected);
    };
    (rejection.reason, rejection.profiles)
}

#[test]
fn empty_messages_are_refused_before_they_take_memory() {
    let mut options = ReadOptions::default();
    options.limits.max_messages = 1000;
    // 1001 empty profiles.
    let scope = [0x12, 0].repeat(1001);
    let mut bytes = vec![0x0a, 0xd5, 0x0f, 0x12, 0xd2, 0x0f];
    bytes.extend(scope);
    let error = decode_otlp_bytes(&bytes, &options).unwrap_err();
    assert!(
        matches!(error, ReadError::TooLarge { limit: 1000, .. }),
        "{error}"
    );
    let json = format!("{{\"resourceProfiles\":[{}{{}}]}}", "{},".repeat(2000));
    let error = otlp_request_from_json(json.as_bytes(), &options.limits, &mut Report::default())
        .unwrap_err();
    assert!(matches!(error, ReadError::TooLarge { .. }), "{error}");
    // Separators in texts are no values.
    let json = format!(
        "{{\"resourceProfiles\":[],\"x\":\"\\\"{}\"}}",
        "{,".repeat(2000)
    );
    assert!(
        otlp_request_from_json(json.as_bytes(), &options.limits, &mut Report::default()).is_ok()
    );
}

#[test]
fn too_many_attributes_refuse_what_has_them() {
    let mut request = wide_request(3, |_| {});
    let resource = request.resource_profiles[0].resource.as_mut().unwrap();
    resource.attributes = vec![pair("a", "b"); 257];
    assert_eq!(
        only_rejection(&decode(&request).1),
        ("too_many_attributes", 3)
    );

    let request = wide_request(2, |one| one.attribute_indices = vec![1; 257]);
    assert_eq!(
        only_rejection(&decode(&request).1),
        ("too_many_attributes", 2)
    );

    let request = wide_request(2, |one| one.samples[0].attribute_indices = vec![1; 101]);
    assert_eq!(
        only_rejection(&decode(&request).1),
        ("too_many_sample_labels", 2)
    );
}

#[test]
fn labels_repeated_for_every_series_have_a_bound_together() {
    let mut request = wide_request(100, |_| {});
    let resource = request.resource_profiles[0].resource.as_mut().unwrap();
    resource.attributes.push(pair("long", &"x".repeat(1000)));
    let mut options = ReadOptions::default();
    options.limits.max_inflated_bytes = 50_000;
    let (profile, report) = decode_otlp(&request, &options).unwrap();
    let (reason, refused) = only_rejection(&report);
    assert_eq!(reason, "too_many_label_bytes");
    assert_eq!(profile.series.len() as u64 + refused, 100);
    assert!(profile.series.len() > 10, "{refused}");
    assert!(profile.series.len() < 50, "{refused}");
    assert_eq!(decode(&request).0.series.len(), 100);
}

#[test]
fn samples_of_very_many_services_take_no_quadratic_time() {
    const SERVICES: i32 = 50_000;
    let mut request = wide_request(1, |_| {});
    let dictionary = request.dictionary.as_mut().unwrap();
    dictionary.string_table.push("service.name".to_owned());
    let samples = &mut request.resource_profiles[0].scope_profiles[0].profiles[0].samples;
    let template = samples[0].clone();
    samples.clear();
    for service in 0..SERVICES {
        let index = dictionary.attribute_table.len() as i32;
        dictionary.attribute_table.push(wire::KeyValueAndUnit {
            key_strindex: 13,
            value: text(&format!("service-{service}")),
            unit_strindex: 0,
        });
        samples.push(wire::Sample {
            attribute_indices: vec![index],
            ..template.clone()
        });
    }
    let (profile, _) = decode(&request);
    assert_eq!(profile.series.len(), SERVICES as usize);
}

#[test]
fn long_strings_of_a_request_are_cut_and_noted() {
    let mut request = ebpf_request();
    let dictionary = request.dictionary.as_mut().unwrap();
    dictionary.string_table[11] = "f".repeat(100_000);
    let (profile, report) = decode(&request);
    assert_eq!(report.count("strings_cut"), 1);
    let longest = profile.symbols.functions().iter();
    let longest = longest.map(|function| profile.symbols.strings.get(function.name).len());
    assert_eq!(longest.max(), Some(65_535));
}

#[test]
fn of_two_reports_of_an_agent_the_later_counts() {
    let own = |count| OtlpOptions {
        resource_attributes: vec![("host.name".to_owned(), AttributeValue::Text("h".to_owned()))],
        attributes: vec![("candela.drops.x".to_owned(), AttributeValue::Number(count))],
        ..OtlpOptions::default()
    };
    let (mut profile, _) = decode(&ebpf_request());
    let early = encode_otlp(&profile, &own(1));
    profile.series[0].start_ns += 10;
    let late = encode_otlp(&profile, &own(2));
    for [first, second] in [[&early, &late], [&late, &early]] {
        // The dictionaries are equal, so that the profiles of one fit to that of the other.
        let dictionary =
            |request: &ExportProfilesServiceRequest| request.dictionary.clone().unwrap();
        let mut both = first.clone();
        let mut other = second.clone();
        let offset = dictionary(&both).attribute_table.len() as i32;
        let table = &mut both.dictionary.as_mut().unwrap().attribute_table;
        table.extend(dictionary(&other).attribute_table);
        for one in &mut other.resource_profiles[0].scope_profiles[0].profiles {
            one.attribute_indices
                .iter_mut()
                .for_each(|index| *index += offset);
        }
        both.resource_profiles.extend(other.resource_profiles);
        let (_, report) = decode(&both);
        let [agent] = &report.agents[..] else {
            panic!("{:?}", report.agents);
        };
        assert_eq!(agent.attributes[0].1, AttributeValue::Number(2));
    }
}
