//! What holds of every document.

use std::collections::BTreeMap;

use candela_fleet::CommonPersistenceSpecs;
use candela_fleet::DaemonBody;
use candela_fleet::DocumentDiff;
use candela_fleet::DocumentPath;
use candela_fleet::FleetDocument;
use candela_fleet::Json;
use candela_fleet::ObservabilityDaemon;
use candela_fleet::PathSegment;
use candela_fleet::PerfCollector;
use candela_fleet::PerfettoDaemon;
use candela_fleet::PerfettoEngine;
use candela_fleet::PerfettoTrigger;
use candela_fleet::ProcessFilter;
use candela_fleet::Profiler;
use candela_fleet::Resources;
use candela_fleet::changes;
use candela_fleet::text_proto;
use candela_fleet::wanted_daemons;
use proptest::option;
use proptest::prelude::*;

const CONFIG_TEXT: &str = r#"buffers { size_kb: 1024 }
data_sources { config { name: "linux.perf" } }
trigger_config { trigger_mode: CLONE_SNAPSHOT trigger_timeout_ms: 1000 triggers { name: "moment" } }"#;

/// Fields of others: any JSON, with keys that must not be touched.
fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Boolean),
        any::<i64>().prop_map(|number| Json::Number(number.into())),
        any::<i32>().prop_map(|number| {
            let number = serde_json::Number::from_f64(f64::from(number) / 64.0);
            Json::Number(number.expect("finite"))
        }),
        any::<String>().prop_map(Json::Text),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::List),
            prop::collection::btree_map("[a-zA-Z_./]{1,8}", inner, 0..4).prop_map(Json::Object),
        ]
    })
}

fn resources() -> impl Strategy<Value = Resources> {
    let storage = || option::of("[1-9][0-9]{0,2}(Mi|G|Ki|k)?");
    (
        option::of("[1-9][0-9]{0,3}m"),
        storage(),
        storage(),
        storage(),
    )
        .prop_map(|(cpu, ephemeral_storage, memory, storage)| Resources {
            cpu,
            ephemeral_storage,
            memory,
            storage,
        })
}

fn folder() -> impl Strategy<Value = Option<String>> {
    option::of("[a-z0-9=-]{1,8}(/[a-z]{1,4}){0,2}/?")
}

fn collector() -> impl Strategy<Value = DaemonBody> {
    let filter = option::of(option::of(prop::collection::vec("[a-z*]{1,5}", 0..3)));
    let numbers = (
        option::of(1..=86_400_u32),
        option::of(1..=1000_u32),
        option::of(1..=1000_u32),
    );
    let profiler = option::of(prop::sample::select(vec![
        Profiler::Candela,
        Profiler::Perf,
    ]));
    (
        folder(),
        option::of(any::<bool>()),
        "(s3|gs)://[a-z]{3,6}",
        numbers,
        filter,
        profiler,
    )
        .prop_map(
            |(bucket_subdirectory, call_graph, export_to, numbers, comm, profiler)| {
                DaemonBody::PerfCollector(PerfCollector {
                    bucket_subdirectory,
                    call_graph,
                    dump_duration_seconds: numbers.0,
                    export_to: Some(export_to),
                    max_dumps_retained: numbers.1,
                    perf_polling_frequency_hz: numbers.2,
                    process_filter: comm.map(|comm| ProcessFilter {
                        comm,
                        ..ProcessFilter::default()
                    }),
                    profiler,
                })
            },
        )
}

/// Time is the trigger: only one daemon may answer over HTTP.
fn perfetto() -> impl Strategy<Value = DaemonBody> {
    let engines = vec![PerfettoEngine::Native, PerfettoEngine::Traced];
    let engine = option::of(prop::sample::select(engines));
    (
        folder(),
        engine,
        "s3://[a-z]{3,6}",
        1000..=604_800_000_u32,
        option::of(1..=1000_u32),
    )
        .prop_map(
            |(bucket_subdirectory, engine, export_to, interval, max_retained_runs)| {
                DaemonBody::PerfettoDaemon(PerfettoDaemon {
                    bucket_subdirectory,
                    config_text: Some(CONFIG_TEXT.to_owned()),
                    engine,
                    export_to: Some(export_to),
                    interval: Some(interval),
                    max_retained_runs,
                    trigger: Some(PerfettoTrigger::TimeInterval),
                    trigger_name: Some("moment".to_owned()),
                })
            },
        )
}

fn daemon() -> impl Strategy<Value = ObservabilityDaemon> {
    let body = prop_oneof![collector(), perfetto()];
    let image = option::of("[a-z]{1,5}(:[0-9])?");
    (
        body,
        image,
        option::of(any::<bool>()),
        option::of(resources()),
    )
        .prop_map(
            |(body, image_override, keep_running_when_suspended, request)| ObservabilityDaemon {
                body,
                image_override,
                keep_running_when_suspended,
                // Of the same amounts as what is asked, so that it never is too little.
                limit: request
                    .clone()
                    .filter(|request| request.cpu.is_some())
                    .map(|request| Resources {
                        cpu: None,
                        memory: None,
                        ..request
                    }),
                request,
            },
        )
}

fn document() -> impl Strategy<Value = FleetDocument> {
    let foreign = prop::collection::btree_map("x[a-zA-Z_]{1,6}", any_json(), 0..3);
    let common = (option::of("[a-z]{1,4}"), option::of("[a-z]{1,4}"), foreign).prop_map(
        |(google_cloud_project, service_account_name, fields_of_others)| CommonPersistenceSpecs {
            google_cloud_project,
            service_account_name,
            fields_of_others,
        },
    );
    let daemons = prop::collection::vec(daemon(), 0..4).prop_map(with_folders_of_their_own);
    let daemons = option::of(daemons);
    let writers = option::of(prop::collection::vec(any_json(), 0..3).prop_map(Json::List));
    let host = option::of(any_json());
    (
        option::of(common),
        daemons,
        option::of(any::<bool>()),
        writers,
        host,
    )
        .prop_map(
            |(common_persistence_specs, observability_daemons, suspended, writers, host)| {
                FleetDocument {
                    common_persistence_specs,
                    observability_daemons,
                    suspended,
                    writers,
                    fields_of_others: host
                        .map(|host| BTreeMap::from([("api_server_host".to_owned(), host)]))
                        .unwrap_or_default(),
                }
            },
        )
}

/// Two of a kind that write to one folder are refused.
fn with_folders_of_their_own(mut daemons: Vec<ObservabilityDaemon>) -> Vec<ObservabilityDaemon> {
    let mut taken = Vec::new();
    daemons.retain(|daemon| {
        let place = (daemon.body.name(), daemon.body.destination());
        let is_free = !taken.contains(&place);
        taken.push(place);
        is_free
    });
    daemons
}

/// In lowerCamelCase, where the keys are ours.
fn camel(text: &str) -> String {
    let names = [
        ("common_persistence_specs", "commonPersistenceSpecs"),
        ("google_cloud_project", "googleCloudProject"),
        ("service_account_name", "serviceAccountName"),
        ("observability_daemons", "observabilityDaemons"),
        ("keep_running_when_suspended", "keepRunningWhenSuspended"),
        ("image_override", "imageOverride"),
        ("ephemeral_storage", "ephemeralStorage"),
        ("perf_collector", "perfCollector"),
        ("perfetto_daemon", "perfettoDaemon"),
        ("perf_polling_frequency_hz", "perfPollingFrequencyHz"),
        ("call_graph", "callGraph"),
        ("max_dumps_retained", "maxDumpsRetained"),
        ("dump_duration_seconds", "dumpDurationSeconds"),
        ("bucket_subdirectory", "bucketSubdirectory"),
        ("export_to", "exportTo"),
        ("process_filter", "processFilter"),
        ("config_text", "configText"),
        ("max_retained_runs", "maxRetainedRuns"),
        ("trigger_name", "triggerName"),
        ("api_server_host", "apiServerHost"),
    ];
    let with_colon = |name: &str| format!("\"{name}\":");
    names.iter().fold(text.to_owned(), |text, (snake, camel)| {
        text.replace(&with_colon(snake), &with_colon(camel))
    })
}

/// Does to a document what a diff says, one difference after the other.
fn applied(json: &mut Json, diff: &DocumentDiff) {
    for difference in &diff.differences {
        apply_at(
            json,
            &difference.path,
            difference.removed.as_ref(),
            difference.added.as_ref(),
        );
    }
}

fn apply_at(json: &mut Json, path: &DocumentPath, removed: Option<&Json>, added: Option<&Json>) {
    let (last, steps) = path.segments().split_last().expect("documents are objects");
    let mut parent = json;
    for step in steps {
        parent = match (parent, step) {
            (Json::Object(entries), PathSegment::Key(key)) => {
                entries.get_mut(key).expect("an entry")
            }
            (Json::List(elements), PathSegment::Index(index)) => &mut elements[*index],
            (other, step) => panic!("{step:?} of {other:?}"),
        };
    }
    match (parent, last) {
        (Json::Object(entries), PathSegment::Key(key)) => {
            assert_eq!(entries.get(key), removed);
            entries.remove(key);
            entries.extend(added.map(|added| (key.clone(), added.clone())));
        }
        (Json::List(elements), PathSegment::Index(index)) => {
            if let Some(removed) = removed {
                assert_eq!(elements.remove(*index), *removed);
            }
            if let Some(added) = added {
                elements.insert(*index, added.clone());
            }
        }
        (other, step) => panic!("{step:?} of {other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn what_is_written_is_read_again(document in document()) {
        let written = document.to_string();
        let accepted = FleetDocument::read(&written).unwrap();
        prop_assert_eq!(&accepted.document, &document);
        prop_assert_eq!(accepted.document.to_string(), written);
    }

    #[test]
    fn both_spellings_are_one_document(document in document()) {
        let compact = document.to_json().to_string();
        let accepted = FleetDocument::read(&camel(&compact)).unwrap();
        prop_assert_eq!(accepted.document, document);
    }

    #[test]
    fn a_diff_leads_from_one_document_to_the_other(old in document(), new in document()) {
        let diff = DocumentDiff::between(&old, &new);
        let mut json = old.to_json();
        applied(&mut json, &diff);
        prop_assert_eq!(json, new.to_json());
        prop_assert_eq!(diff.is_empty(), old.to_string() == new.to_string());
        prop_assert!(DocumentDiff::between(&old, &old).is_empty());
    }

    #[test]
    fn changes_lead_from_what_ran_to_what_is_wanted(old in document(), new in document()) {
        let mut running = BTreeMap::new();
        for wanted in wanted_daemons(&old) {
            prop_assert!(running.insert(wanted.id.clone(), wanted.revision).is_none());
        }
        let found = changes(Some(&old), &new);
        for wanted in &found.stopped {
            prop_assert!(running.remove(&wanted.id).is_some());
        }
        for wanted in &found.started {
            prop_assert!(running.insert(wanted.id.clone(), wanted.revision).is_none());
        }
        for wanted in &found.changed {
            prop_assert_ne!(running.insert(wanted.id.clone(), wanted.revision), Some(wanted.revision));
        }
        let wanted = wanted_daemons(&new);
        let wanted = wanted.into_iter().map(|wanted| (wanted.id, wanted.revision));
        prop_assert_eq!(running, wanted.collect::<BTreeMap<_, _>>());
        prop_assert!(changes(Some(&new), &new).is_empty());
    }

    #[test]
    fn no_text_makes_a_reader_panic(text in any::<String>()) {
        let _ = text_proto::parse(&text);
        let _ = FleetDocument::read(&text);
    }

    #[test]
    fn no_text_of_the_formats_own_signs_makes_its_reader_panic(text in r#"[a-z0-9 {}<>\[\]:;,.'"\\#\n-]{0,80}"#) {
        let _ = text_proto::parse(&text);
    }
}
