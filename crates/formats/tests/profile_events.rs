//! Profile events in OTLP logs. Requirements TG-20 to TG-26.

use crate::common::assert_golden;
use crate::common::folded_lines;
use candela_formats::ExportLogsServiceRequest;
use candela_formats::Limits;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_formats::logs_request_from_bytes;
use candela_formats::logs_request_from_json;
use candela_formats::read_profile_events;
use candela_model::Profile;
use opentelemetry_proto::tonic::common::v1::AnyValue;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::logs::v1::ResourceLogs;
use opentelemetry_proto::tonic::logs::v1::ScopeLogs;
use opentelemetry_proto::tonic::resource::v1::Resource;
use proptest::prelude::*;
use prost::Message;
use serde_json::Value;
use serde_json::json;

fn text(text: &str) -> AnyValue {
    AnyValue {
        value: Some(Any::StringValue(text.to_owned())),
    }
}

fn attribute(key: &str, value: &str) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(text(value)),
        key_strindex: 0,
    }
}

fn record(body: &str) -> LogRecord {
    LogRecord {
        time_unix_nano: 1_700_000_000_000_000_000,
        body: Some(text(body)),
        ..LogRecord::default()
    }
}

fn request(records: Vec<LogRecord>) -> ExportLogsServiceRequest {
    let resource = Resource {
        attributes: vec![
            attribute("service.name", "shop"),
            attribute("k8s.pod.name", "shop-1"),
        ],
        ..Resource::default()
    };
    ExportLogsServiceRequest {
        resource_logs: vec![ResourceLogs {
            resource: Some(resource),
            scope_logs: vec![ScopeLogs {
                log_records: records,
                ..ScopeLogs::default()
            }],
            ..ResourceLogs::default()
        }],
    }
}

fn read(records: Vec<LogRecord>) -> (Profile, Report) {
    let (profile, report) =
        read_profile_events(&request(records), &ReadOptions::default()).unwrap();
    assert_eq!(profile.validate(), Ok(()));
    (profile, report)
}

/// The samples of one event, without what they have in common.
fn lines(event: &Value) -> Vec<String> {
    let (profile, report) = read(vec![record(&event.to_string())]);
    assert_eq!(report.rejected, [], "{event}");
    let head = "{pod=\"shop-1\", service_name=\"shop\"} ";
    let lines = folded_lines(&profile).into_iter();
    lines
        .map(|line| line.strip_prefix(head).unwrap_or(&line).to_owned())
        .collect()
}

/// The flat shape with every key of TG-20.
fn flat() -> Value {
    let stack = json!([
        {"class": "com.shop.Cart", "method": "total", "line": 42},
        {"class": "com.shop.Main", "method": "main", "line": 7},
    ]);
    json!({
        "timestamp": "2023-11-14T22:13:20.5Z",
        "eventType": "ebpf.CPUSample",
        "profileType": "cpu",
        "serviceName": "cart",
        "k8s_pod_name": "cart-7",
        "k8s_namespace": "prod",
        "threadName": "worker-1",
        "threadId": 17,
        "topClass": "com.shop.Cart",
        "topMethod": "total",
        "stackPath": "com.shop.Cart.total <- com.shop.Main.main",
        "stackDepth": 2,
        "sampleWeight": 3,
        "durationNs": 30_303_030,
        "stackTrace": stack.to_string(),
    })
}

/// The nested shape of TG-25.
fn nested() -> Value {
    json!({
        "profile.type": "lock",
        "event.type": "jdk.JavaMonitorEnter",
        "timestamp": "2023-11-14T22:13:21Z",
        "thread": {"name": "main", "id": 1},
        "stack_trace": {
            "frames": [{"class": "A", "method": "lock", "line": 3}, {"class": "B", "method": "run"}],
            "depth": 2,
            "top_class": "A",
            "top_method": "lock",
            "path": "A.lock;B.run",
        },
        "sample": {"weight": 2_000_000, "duration_ns": 2_000_000},
        "resource": {"service.name": "orders", "k8s.namespace.name": "prod"},
        "event_data": {"monitor_class": "java.lang.Object"},
    })
}

#[test]
fn tg_20_and_tg_25_both_shapes_are_read() {
    let (profile, report) = read(vec![
        record(&flat().to_string()),
        record(&nested().to_string()),
    ]);
    assert_eq!((report.notes, report.rejected), (vec![], vec![]));
    let cpu = &profile.series[0];
    assert_eq!(cpu.start_ns, 1_700_000_000_500_000_000);
    assert_eq!(
        cpu.period, 10_101_010,
        "TG-23: duration is weight times period"
    );
    assert_eq!(cpu.samples[0].time_ns, cpu.start_ns);
    let golden = folded_lines(&profile).join("\n") + "\n";
    assert_golden("profile-events.txt", golden.as_bytes());
    let location = profile.stacks.get(cpu.samples[0].stack)[0];
    assert_eq!(profile.symbols.lines(location)[0].line, 42);
}

#[test]
fn tg_22_each_kind_of_event_has_its_values() {
    let event = |kind: &str, weight: i64, duration: i64| {
        lines(&json!({
            "eventType": kind, "sampleWeight": weight, "durationNs": duration, "topFunction": "f",
        }))
    };
    let cases = [
        (
            "ebpf.CPUSample",
            2,
            9,
            "process_cpu:cpu:nanoseconds:cpu:nanoseconds [] f 9",
        ),
        (
            "ebpf.CPUSample",
            2,
            0,
            "process_cpu:samples:count:cpu:nanoseconds [] f 2",
        ),
        (
            "ebpf.OffCPUSample",
            7,
            0,
            "off_cpu:off_cpu:nanoseconds:off_cpu:nanoseconds [] f 7",
        ),
        (
            "ebpf.OffCPUSample",
            1,
            8,
            "off_cpu:off_cpu:nanoseconds:off_cpu:nanoseconds [] f 8",
        ),
        (
            "ebpf.WallSample",
            1,
            8,
            "wall:wall:nanoseconds:wall:nanoseconds [] f 8",
        ),
        (
            "ebpf.AllocationSample",
            64,
            0,
            "memory:alloc_space:bytes:space:bytes [] f 64",
        ),
        (
            "ebpf.AllocBytesSample",
            64,
            0,
            "memory:alloc_space:bytes:space:bytes [] f 64",
        ),
        (
            "ebpf.AllocCountSample",
            3,
            0,
            "memory:alloc_objects:count:space:bytes [] f 3",
        ),
        (
            "ebpf.AllocsSample",
            3,
            0,
            "memory:alloc_objects:count:space:bytes [] f 3",
        ),
        (
            "ebpf.HeapSample",
            64,
            0,
            "memory:inuse_space:bytes:space:bytes [] f 64",
        ),
        (
            "ebpf.MutexSample",
            5,
            0,
            "mutex:delay:nanoseconds:contentions:count [] f 5",
        ),
        (
            "ebpf.BlockSample",
            5,
            0,
            "block:delay:nanoseconds:contentions:count [] f 5",
        ),
        (
            "ebpf.GoroutineSample",
            4,
            0,
            "goroutine:goroutine:count:goroutine:count [] f 4",
        ),
        (
            "jdk.ExecutionSample",
            1,
            0,
            "process_cpu:samples:count:cpu:nanoseconds [] f 1",
        ),
        (
            "jdk.WallClockSample",
            6,
            0,
            "wall:samples:count:wall:nanoseconds [] f 6",
        ),
        (
            "jdk.NativeMethodSample",
            1,
            0,
            "native:samples:count:native:count [] f 1",
        ),
        (
            "jdk.ObjectAllocationInNewTLAB",
            9,
            0,
            "memory:alloc_in_new_tlab_bytes:bytes:space:bytes [] f 9",
        ),
        (
            "jdk.ObjectAllocationOutsideTLAB",
            9,
            0,
            "memory:alloc_outside_tlab_bytes:bytes:space:bytes [] f 9",
        ),
        (
            "jdk.ObjectAllocationSample",
            9,
            0,
            "memory:alloc_sample_bytes:bytes:space:bytes [] f 9",
        ),
    ];
    for (kind, weight, duration, expected) in cases {
        assert_eq!(event(kind, weight, duration), [expected], "{kind}");
    }
    for (kind, name, count) in [
        ("jdk.JavaMonitorEnter", "mutex", "contentions"),
        ("jdk.ThreadPark", "block", "contentions"),
        ("jdk.JavaMonitorWait", "wait", "waits"),
    ] {
        let mut expected = [
            format!("{name}:{count}:count:{name}:count [] f 1"),
            format!("{name}:delay:nanoseconds:{name}:count [] f 70"),
        ];
        expected.sort();
        assert_eq!(event(kind, 70, 70), expected);
        assert_eq!(event(kind, 70, 0), expected);
    }
    let later =
        lines(&json!({"eventType": "ebpf.New", "profileType": "off_cpu", "sampleWeight": 2}));
    assert_eq!(
        later,
        ["off_cpu:off_cpu:nanoseconds:off_cpu:nanoseconds []  2"]
    );
}

#[test]
fn tg_26_collections_are_shown_by_their_cause() {
    let event = json!({
        "eventType": "jdk.GarbageCollection", "profileType": "gc", "durationNs": 500,
        "gcName": "G1New", "gcCause": "Allocation Failure",
    });
    assert_eq!(
        lines(&event),
        [
            "gc:duration:nanoseconds:gc:count [gc_cause=Allocation Failure gc_name=G1New] garbage collection;G1New;Allocation Failure 500",
            "gc:pauses:count:gc:count [gc_cause=Allocation Failure gc_name=G1New] garbage collection;G1New;Allocation Failure 1",
        ]
    );
}

#[test]
fn links_threads_and_times_come_from_the_record_too() {
    let mut with_all = record(r#"{"eventType":"ebpf.CPUSample","timestamp":"never"}"#);
    with_all.trace_id = vec![1; 16];
    with_all.span_id = vec![2; 8];
    with_all.attributes = vec![attribute("thread.name", "io-1")];
    let (profile, report) = read(vec![with_all]);
    let sample = profile.series[0].samples[0];
    let link = profile.links[sample.link.index()];
    assert_eq!((link.trace_id, link.span_id), ([1; 16], [2; 8]));
    assert_eq!(sample.time_ns, 1_700_000_000_000_000_000);
    assert_eq!(report.count("times_repaired"), 1);
    let line = folded_lines(&profile).remove(0);
    assert!(line.contains("[thread_name=io-1]"), "{line}");
}

#[test]
fn events_of_one_service_and_type_are_one_series() {
    let event = |service: &str, second: u32| {
        let event = json!({
            "eventType": "ebpf.CPUSample", "serviceName": service,
            "timestamp": format!("2023-11-14T22:13:{second}Z"),
        });
        record(&event.to_string())
    };
    let (profile, _) = read(vec![
        event("a", 30),
        event("b", 31),
        event("a", 20),
        event("a", 25),
    ]);
    let series: Vec<(usize, i64)> = profile
        .series
        .iter()
        .map(|series| (series.samples.len(), series.duration_ns))
        .collect();
    assert_eq!(series, [(3, 10_000_000_000), (1, 0)]);
    assert_eq!(profile.series[0].start_ns, 1_700_000_000_000_000_000);
    let unnamed = ExportLogsServiceRequest {
        resource_logs: vec![ResourceLogs {
            resource: None,
            ..request(vec![record(r#"{"eventType":"ebpf.CPUSample"}"#)])
                .resource_logs
                .remove(0)
        }],
    };
    let (profile, _) = read_profile_events(&unnamed, &ReadOptions::default()).unwrap();
    assert_eq!(
        profile.series[0].labels.get("service_name"),
        Some("unknown_service")
    );
}

#[test]
fn what_is_no_event_is_counted_and_the_rest_taken() {
    let bodies = [
        "plain text of a log",
        "{\"message\": \"structured log\"}",
        "{broken",
        "{\"eventType\": \"jdk.ClassLoad\"}",
        "{\"eventType\": \"ebpf.CPUSample\", \"sampleWeight\": -4}",
        "{\"eventType\": \"ebpf.CPUSample\", \"sampleWeight\": 0}",
        "{\"eventType\": \"ebpf.CPUSample\", \"stackTrace\": \"no list\"}",
    ];
    let mut records: Vec<LogRecord> = bodies.iter().map(|body| record(body)).collect();
    records.push(LogRecord::default());
    let (profile, report) = read(records);
    assert_eq!(profile.sample_count(), 1);
    let reasons: Vec<(&str, u64)> = report
        .rejected
        .iter()
        .map(|rejection| (rejection.reason, rejection.profiles))
        .collect();
    assert_eq!(
        reasons,
        [
            ("not_a_profile_event", 4),
            ("unknown_event_type", 1),
            ("negative_value", 1),
        ]
    );
    assert_eq!(report.rejected_profiles(), 6);
    assert_eq!(report.count("events_without_value"), 1);
    assert_eq!(report.count("stack_traces_broken"), 1);
    let message = report.rejection_message();
    assert!(message.contains("\"jdk.ClassLoad\""), "{message}");
}

#[test]
fn protobuf_and_json_say_the_same() {
    let request = request(vec![LogRecord {
        trace_id: vec![0xab; 16],
        observed_time_unix_nano: 5,
        attributes: vec![attribute("thread.name", "t")],
        ..record(&flat().to_string())
    }]);
    let limits = Limits::default();
    let decoded =
        logs_request_from_bytes(&request.encode_to_vec(), &limits, &mut Report::default()).unwrap();
    assert_eq!(decoded, request);
    let string = |value: &str| json!({"stringValue": value});
    let json = json!({"resourceLogs": [{
        "resource": {"attributes": [
            {"key": "service.name", "value": string("shop")},
            {"key": "k8s.pod.name", "value": string("shop-1")},
        ]},
        "scopeLogs": [{"logRecords": [{
            "timeUnixNano": "1700000000000000000",
            "observedTimeUnixNano": 5,
            "severityNumber": "SEVERITY_NUMBER_INFO",
            "body": string(&flat().to_string()),
            "attributes": [{"key": "thread.name", "value": string("t")}],
            "traceId": "ab".repeat(16),
        }]}],
    }]});
    let decoded =
        logs_request_from_json(json.to_string().as_bytes(), &limits, &mut Report::default())
            .unwrap();
    assert_eq!(decoded, request);
}

#[test]
fn requests_are_bounded() {
    let few = Limits {
        max_messages: 10,
        max_samples: 2,
        ..Limits::default()
    };
    let many = request(vec![record("{}"); 20]).encode_to_vec();
    let error = logs_request_from_bytes(&many, &few, &mut Report::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("the number of messages"), "{error}");
    assert!(
        logs_request_from_bytes(b"\x0a\xff", &Limits::default(), &mut Report::default()).is_err()
    );
    let options = ReadOptions {
        limits: few,
        ..ReadOptions::default()
    };
    let events = request(vec![record(r#"{"eventType":"ebpf.CPUSample"}"#); 3]);
    let error = read_profile_events(&events, &options)
        .unwrap_err()
        .to_string();
    assert!(error.contains("the number of samples"), "{error}");
    let nested = "[".repeat(100_000);
    let body = format!("{{\"eventType\":\"ebpf.CPUSample\",\"stackTrace\":{nested}");
    let (_, report) = read(vec![record(&body)]);
    assert_eq!(report.rejected[0].reason, "not_a_profile_event");
    let values = format!(
        "{{\"eventType\":\"ebpf.CPUSample\",\"stackTrace\":\"[{}1]\"}}",
        "1,".repeat(30)
    );
    let (_, report) = read_profile_events(&request(vec![record(&values)]), &options).unwrap();
    assert_eq!(report.count("stack_traces_broken"), 1);
}

/// Labels of a resource are repeated for each series.
#[test]
fn labels_that_multiply_are_refused() {
    let mut request = request(
        (0..100)
            .map(|number| {
                let event =
                    json!({"eventType": "ebpf.CPUSample", "serviceName": format!("s{number}")});
                record(&event.to_string())
            })
            .collect(),
    );
    let resource = request.resource_logs[0].resource.as_mut().unwrap();
    resource
        .attributes
        .push(attribute("long", &"x".repeat(20_000)));
    let options = ReadOptions {
        limits: Limits {
            max_inflated_bytes: 1 << 20,
            ..Limits::default()
        },
        ..ReadOptions::default()
    };
    let (profile, report) = read_profile_events(&request, &options).unwrap();
    assert_eq!(report.rejected[0].reason, "too_many_label_bytes");
    let taken = profile.series.len() as u64;
    assert_eq!(taken + report.rejected_profiles(), 100);
    assert!(taken > 20, "{taken}");
}

proptest! {
    #[test]
    fn stacks_survive_every_way_of_writing_them(
        names in prop::collection::vec("[A-C]\\.[a-c]", 1..8),
        weight in 1_i64..1000,
    ) {
        let frames: Vec<Value> = names
            .iter()
            .map(|name| {
                let (class, method) = name.split_once('.').unwrap();
                json!({"class": class, "method": method})
            })
            .collect();
        let root_first: Vec<&str> = names.iter().rev().map(String::as_str).collect();
        let expected = format!(
            "memory:alloc_space:bytes:space:bytes [] {} {weight}",
            root_first.join(";")
        );
        for (key, value) in [
            ("stackTrace", json!(json!(frames).to_string())),
            ("stackTrace", json!(frames)),
            ("stackFrames", json!(names)),
            ("stack_trace", json!({"frames": frames})),
            ("stackPath", json!(names.join(" <- "))),
            ("stackPath", json!(root_first.join(";"))),
            ("stackPath", json!(root_first.join(" > "))),
        ] {
            let event = json!({"eventType": "ebpf.AllocationSample", "sampleWeight": weight, key: value});
            prop_assert_eq!(lines(&event), [expected.clone()]);
        }
    }

    #[test]
    fn any_body_is_survived(body in "\\{?[\"a-zA-Z:,\\[\\]{} 0-9]{0,60}") {
        let (profile, report) = read(vec![record(&body)]);
        prop_assert!(profile.sample_count() as u64 + report.rejected_profiles() + report.count("events_without_value") > 0);
    }
}
