//! A request as another agent sends it.

use candela_formats::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::common::v1::AnyValue;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::profiles::v1development as wire;
use opentelemetry_proto::tonic::resource::v1::Resource;

pub fn text(value: &str) -> Option<AnyValue> {
    Some(AnyValue {
        value: Some(Value::StringValue(value.to_owned())),
    })
}

fn pair(key: &str, value: &str) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: text(value),
        key_strindex: 0,
    }
}

/// What the OpenTelemetry eBPF profiler sends: counted samples with times, one resource a container.
pub fn ebpf_request() -> ExportProfilesServiceRequest {
    let strings = [
        "",
        "samples",
        "count",
        "cpu",
        "nanoseconds",
        "thread.name",
        "main",
        "/usr/bin/app",
        "process.executable.build_id.htlhash",
        "profile.frame.type",
        "kernel",
        "do_idle",
        "process.executable.name",
    ];
    let attribute = |key: i32, value: &str| wire::KeyValueAndUnit {
        key_strindex: key,
        value: text(value),
        unit_strindex: 0,
    };
    let value_type = |kind, unit| {
        Some(wire::ValueType {
            type_strindex: kind,
            unit_strindex: unit,
        })
    };
    ExportProfilesServiceRequest {
        resource_profiles: vec![wire::ResourceProfiles {
            resource: Some(Resource {
                attributes: vec![
                    pair("container.id", "abc"),
                    pair("k8s.pod.name", "web-1"),
                    pair("cloud.region", "eu"),
                ],
                ..Resource::default()
            }),
            scope_profiles: vec![wire::ScopeProfiles {
                scope: None,
                profiles: vec![wire::Profile {
                    sample_type: value_type(1, 2),
                    period_type: value_type(3, 4),
                    period: 50_000_000,
                    time_unix_nano: 1_000_000_000,
                    duration_nano: 5_000_000_000,
                    samples: vec![
                        wire::Sample {
                            stack_index: 1,
                            attribute_indices: vec![1, 4],
                            link_index: 1,
                            values: vec![],
                            timestamps_unix_nano: vec![1_100_000_000, 1_200_000_000],
                        },
                        wire::Sample {
                            stack_index: 2,
                            attribute_indices: vec![1, 4],
                            values: vec![3],
                            ..wire::Sample::default()
                        },
                    ],
                    ..wire::Profile::default()
                }],
                schema_url: String::new(),
            }],
            schema_url: String::new(),
        }],
        dictionary: Some(wire::ProfilesDictionary {
            mapping_table: vec![
                wire::Mapping::default(),
                wire::Mapping {
                    memory_start: 0x1000,
                    memory_limit: 0x9000,
                    filename_strindex: 7,
                    attribute_indices: vec![2],
                    ..wire::Mapping::default()
                },
            ],
            location_table: vec![
                wire::Location::default(),
                wire::Location {
                    mapping_index: 1,
                    address: 0x1234,
                    ..wire::Location::default()
                },
                wire::Location {
                    address: 0xffff_ffff_8100_0000,
                    lines: vec![wire::Line {
                        function_index: 1,
                        line: 7,
                        column: 0,
                    }],
                    attribute_indices: vec![3],
                    ..wire::Location::default()
                },
            ],
            function_table: vec![
                wire::Function::default(),
                wire::Function {
                    name_strindex: 11,
                    ..wire::Function::default()
                },
            ],
            link_table: vec![
                wire::Link::default(),
                wire::Link {
                    trace_id: vec![7; 16],
                    span_id: vec![8; 8],
                },
            ],
            string_table: strings.iter().map(ToString::to_string).collect(),
            attribute_table: vec![
                wire::KeyValueAndUnit::default(),
                attribute(5, "worker"),
                attribute(8, "c0ffee"),
                attribute(9, "kernel"),
                attribute(12, "app"),
            ],
            stack_table: vec![
                wire::Stack::default(),
                wire::Stack {
                    location_indices: vec![2, 1],
                },
                wire::Stack {
                    location_indices: vec![1],
                },
            ],
        }),
    }
}
