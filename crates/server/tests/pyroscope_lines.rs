//! `querier.v1` about points of lines, single profiles and spans, labels and costs.

use candela_model::Labels;
use candela_model::Link;
use candela_model::Profile;
use candela_server::AuthOptions;
use candela_server::ServerOptions;
use serde_json::Value;
use serde_json::json;

use crate::support;
use crate::support::Answer;
use crate::support::START_NS;
use crate::support::TestServer;

const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
const SAMPLES: &str = "process_cpu:samples:count:cpu:nanoseconds";
/// Long enough before the present for all that tests store.
const FIRST_NS: i64 = START_NS - 100_000_000_000;
const FIRST_MS: i64 = FIRST_NS / 1_000_000;
const SECOND_NS: i64 = 1_000_000_000;
const STEP_MS: i64 = 10_000;

fn ask(server: &TestServer, method: &str, question: &Value, more: &[(&str, &str)]) -> Answer {
    let path = format!("/querier.v1.QuerierService/{method}");
    let mut headers = vec![("Content-Type", "application/json")];
    headers.extend(more);
    let body = question.to_string();
    support::request(server.address, "POST", &path, &headers, body.as_bytes())
}

#[track_caller]
fn answer_with(
    server: &TestServer,
    method: &str,
    question: &Value,
    more: &[(&str, &str)],
) -> Value {
    let answer = ask(server, method, question, more);
    assert_eq!(answer.status, 200, "{method}: {}", answer.text());
    answer.json()
}

#[track_caller]
fn answer(server: &TestServer, method: &str, question: &Value) -> Value {
    answer_with(server, method, question, &[])
}

/// Three samples that come to a hundred times the factor, all but the last of a span.
fn profile(service: &str, start_ns: i64, factor: i64, link: Option<Link>) -> Profile {
    let mut profile = support::demo_profile();
    let link = link.map(|link| profile.intern_link(link));
    let series = &mut profile.series[0];
    let labels = [("service_name", service), ("zone", "z"), ("k8s.pod", "p")];
    series.labels = Labels::from_pairs(labels);
    series.start_ns = start_ns;
    for sample in &mut series.samples {
        sample.value *= factor;
    }
    if let Some(link) = link {
        series.samples[0].link = link;
        series.samples[1].link = link;
    }
    profile
}

fn link(trace: u8, span: u8) -> Option<Link> {
    Some(Link {
        trace_id: [trace; 16],
        span_id: [span; 8],
    })
}

fn append(server: &TestServer, tenant: &str, profile: Profile) {
    let appended = server.store.append(tenant, profile);
    server.runtime.block_on(appended).expect("is stored");
}

/// Profiles of two services; a step lies between those of one.
fn start() -> TestServer {
    let server = TestServer::start();
    for (service, second, factor, link) in [
        ("api", 5, 1, link(1, 2)),
        ("api", 15, 2, link(1, 3)),
        ("api", 16, 3, link(0, 4)),
        ("web", 16, 9, None),
    ] {
        let start_ns = FIRST_NS + second * SECOND_NS;
        append(
            &server,
            "anonymous",
            profile(service, start_ns, factor, link),
        );
    }
    server
}

fn selection(selector: &str) -> Value {
    json!({
        "profileTypeID": CPU,
        "labelSelector": selector,
        "start": FIRST_MS,
        "end": FIRST_MS + 2 * STEP_MS,
        "step": STEP_MS / 1000,
    })
}

fn with(mut question: Value, name: &str, value: Value) -> Value {
    question[name] = value;
    question
}

fn points(line: &Value) -> Vec<(i64, f64)> {
    let points = line["points"].as_array().into_iter().flatten();
    let points = points.map(|point| (number(&point["timestamp"]), point["value"].as_f64()));
    points
        .map(|(time_ms, value)| (time_ms - FIRST_MS, value.expect("a number")))
        .collect()
}

/// A number of 64 bits, which protobuf's JSON has as a text.
#[track_caller]
fn number(value: &Value) -> i64 {
    let text = value.as_str().expect("a text");
    text.parse().expect("a number")
}

fn total(server: &TestServer, question: &Value) -> i64 {
    let answer = answer(server, "SelectMergeStacktraces", question);
    let total = answer["flamegraph"].get("total");
    total.map_or(0, number)
}

#[test]
fn a_profile_counts_to_the_first_point_that_is_not_before_it() {
    let server = TestServer::start();
    for (nanoseconds, factor) in [
        // Of the point before the first one.
        (-10 * SECOND_NS, 1),
        (-10 * SECOND_NS + 1_000_000, 2),
        (0, 4),
        // To clients this is the same millisecond.
        (999_999, 8),
        (1_000_000, 16),
        (10 * SECOND_NS, 32),
        (20 * SECOND_NS, 64),
        // In the range, but of a step that is not over.
        (21 * SECOND_NS, 128),
    ] {
        let profile = profile("api", FIRST_NS + nanoseconds, factor, None);
        append(&server, "anonymous", profile);
    }
    let question = with(
        selection("{}"),
        "end",
        json!(FIRST_MS + 2 * STEP_MS + 5_000),
    );
    let lines = answer(&server, "SelectSeries", &question);
    let expected = [(0, 1400.0), (STEP_MS, 4800.0), (2 * STEP_MS, 6400.0)];
    assert_eq!(points(&lines["series"][0]), expected);
    // A line that nobody groups has no labels.
    assert_eq!(lines["series"][0].get("labels"), None, "{lines}");
    let mean = with(
        question.clone(),
        "aggregation",
        json!("TIME_SERIES_AGGREGATION_TYPE_AVERAGE"),
    );
    let lines = answer(&server, "SelectSeries", &mean);
    assert_eq!(points(&lines["series"][0])[1], (STEP_MS, 2400.0));
    let site = json!({"callSite": [{"name": "main"}, {"name": "rest"}]});
    let below = with(question, "stackTraceSelector", site);
    let lines = answer(&server, "SelectSeries", &below);
    assert_eq!(points(&lines["series"][0])[2], (2 * STEP_MS, 1920.0));
}

#[test]
fn the_heaviest_profile_of_a_point_can_be_asked_for() {
    let server = start();
    let question = with(selection("{}"), "groupBy", json!(["service_name"]));
    let plain = answer(&server, "SelectSeries", &question);
    assert!(!plain.to_string().contains("exemplars"), "{plain}");
    let question = with(question, "exemplarType", json!("EXEMPLAR_TYPE_INDIVIDUAL"));
    let lines = answer(&server, "SelectSeries", &question);
    let names = |line: &Value| line["labels"][0]["value"].clone();
    let lines = lines["series"].as_array().expect("lines");
    assert_eq!(
        (names(&lines[0]), names(&lines[1])),
        (json!("web"), json!("api"))
    );
    let api = &lines[1];
    assert_eq!(points(api), [(STEP_MS, 100.0), (2 * STEP_MS, 500.0)]);
    let exemplars = &api["points"][1]["exemplars"];
    assert_eq!(exemplars.as_array().map(Vec::len), Some(1), "{api}");
    let exemplar = &exemplars[0];
    assert_eq!(number(&exemplar["value"]), 300);
    assert_eq!(number(&exemplar["timestamp"]), FIRST_MS + 16_000);
    let rest = json!([{"name": "k8s.pod", "value": "p"}, {"name": "zone", "value": "z"}]);
    assert_eq!(exemplar["labels"], rest, "without what the line tells");
    let id = exemplar["profileId"].clone();
    let one = with(selection("{}"), "profileIdSelector", json!([id]));
    assert_eq!(total(&server, &one), 300);
    let profile = answer(&server, "SelectMergeProfile", &one);
    assert_eq!(sum_of_samples(&profile), 300);
    let foreign = json!(["01234567-89ab-cdef-0123-456789abcdef"]);
    let none = with(selection("{}"), "profileIdSelector", foreign);
    assert_eq!(total(&server, &none), 0);
    let limited = with(question, "limit", json!(1));
    let lines = answer(&server, "SelectSeries", &limited);
    assert_eq!(lines["series"].as_array().map(Vec::len), Some(1));
}

#[test]
fn the_heaviest_span_of_a_point_can_be_asked_for() {
    let server = start();
    let question = with(selection("{}"), "exemplarType", json!("EXEMPLAR_TYPE_SPAN"));
    let lines = answer(&server, "SelectSeries", &question);
    let points = &lines["series"][0]["points"];
    let (first, second) = (&points[0]["exemplars"][0], &points[1]["exemplars"][0]);
    assert_eq!(first["spanId"], "02".repeat(8));
    assert_eq!(first["traceId"], "01".repeat(16));
    assert_eq!(number(&first["value"]), 70);
    assert_eq!(first.get("profileId"), None, "{first}");
    assert_eq!(second["spanId"], "04".repeat(8));
    assert_eq!(second.get("traceId"), None, "a span without a trace");
    assert_eq!(number(&second["value"]), 210);
    let of_span = with(selection("{}"), "spanSelector", json!([first["spanId"]]));
    assert_eq!(total(&server, &of_span), 70);
    let span = answer(&server, "SelectMergeSpanProfile", &of_span);
    assert_eq!(number(&span["flamegraph"]["total"]), 70);
    let spans = json!(["02".repeat(8), "03".repeat(8)]);
    let of_spans = with(selection("{}"), "spanSelector", spans);
    assert_eq!(total(&server, &of_spans), 210);
    let of_trace = with(selection("{}"), "traceIdSelector", json!(["01".repeat(16)]));
    assert_eq!(total(&server, &of_trace), 210);
    let profile = answer(&server, "SelectMergeProfile", &of_trace);
    assert_eq!(sum_of_samples(&profile), 210);
    let compared = json!({"left": of_span, "right": of_trace});
    let graph = &answer(&server, "Diff", &compared)["flamegraph"];
    assert_eq!(graph["leftTicks"], "70");
    assert_eq!(graph["rightTicks"], "210");
}

#[test]
fn heatmaps_count_profiles_and_spans_by_value() {
    let server = start();
    let question = with(
        selection("{service_name=\"api\"}"),
        "exemplarType",
        json!("EXEMPLAR_TYPE_INDIVIDUAL"),
    );
    let heatmap = answer(&server, "SelectHeatmap", &question);
    assert_eq!(heatmap["series"].as_array().map(Vec::len), Some(1));
    let slots = heatmap["series"][0]["slots"].as_array().expect("slots");
    let times = slots
        .iter()
        .map(|slot| number(&slot["timestamp"]) - FIRST_MS);
    assert_eq!(times.collect::<Vec<_>>(), [STEP_MS, 2 * STEP_MS]);
    // From 100 to 300 in twenty rows.
    let lower: Vec<f64> = (0..20).map(|row| 100.0 + 10.0 * f64::from(row)).collect();
    assert_eq!(slots[1]["yMin"], json!(lower));
    let mut counts = vec![0; 20];
    (counts[10], counts[19]) = (1, 1);
    assert_eq!(slots[1]["counts"], json!(counts));
    let exemplars = slots[1]["exemplars"].as_array().expect("exemplars");
    let values = exemplars.iter().map(|exemplar| number(&exemplar["value"]));
    assert_eq!(values.collect::<Vec<_>>(), [200, 300]);
    let one = with(
        selection("{}"),
        "profileIdSelector",
        json!([exemplars[1]["profileId"]]),
    );
    assert_eq!(total(&server, &one), 300);

    let question = with(question, "queryType", json!("HEATMAP_QUERY_TYPE_SPAN"));
    let spans = answer(&server, "SelectHeatmap", &question);
    let slot = &spans["series"][0]["slots"][0];
    assert_eq!(slot["exemplars"][0]["spanId"], "02".repeat(8));
    assert_eq!(slot["yMin"][0], 70.0);
    let plain = selection("{service_name=\"web\"}");
    let plain = answer(&server, "SelectHeatmap", &plain);
    let slot = &plain["series"][0]["slots"][0];
    assert_eq!(
        (slot["counts"][0].clone(), slot.get("exemplars")),
        (json!(1), None)
    );
    let nothing = answer(
        &server,
        "SelectHeatmap",
        &selection("{service_name=\"no\"}"),
    );
    assert_eq!(nothing, json!({}));
    let grouped = with(selection("{}"), "groupBy", json!(["service_name"]));
    let grouped = answer(&server, "SelectHeatmap", &with(grouped, "limit", json!(1)));
    let heaviest = json!([{"name": "service_name", "value": "web"}]);
    assert_eq!(grouped["series"][0]["labels"], heaviest);
    assert_eq!(grouped["series"].as_array().map(Vec::len), Some(1));
}

/// The sets of labels of an answer.
fn sets(answer: &Value) -> Vec<Vec<(&str, &str)>> {
    let sets = answer["labelsSet"].as_array().into_iter().flatten();
    sets.map(labels).collect()
}

fn labels(set: &Value) -> Vec<(&str, &str)> {
    let labels = set["labels"].as_array().into_iter().flatten();
    let pairs = labels.map(|label| {
        let (name, value) = (label["name"].as_str(), label["value"].as_str());
        (name.expect("a name"), value.expect("a value"))
    });
    pairs.collect()
}

#[test]
fn labels_are_listed_together() {
    let server = start();
    let ask = |question: Value| answer(&server, "Series", &question);
    let found = ask(json!({"labelNames": ["service_name", "__profile_type__"]}));
    let of = |service, id| vec![("__profile_type__", id), ("service_name", service)];
    let expected = [
        of("api", CPU),
        of("web", CPU),
        of("api", SAMPLES),
        of("web", SAMPLES),
    ];
    assert_eq!(sets(&found), expected);
    let cpu = format!("{{__profile_type__=\"{CPU}\", __service_name__=\"web\"}}");
    let found = ask(json!({
        "matchers": [cpu],
        "labelNames": ["__service_name__", "__unit__", "service_name", "nothing"],
    }));
    let expected = vec![
        ("__service_name__", "web"),
        ("__unit__", "nanoseconds"),
        ("service_name", "web"),
    ];
    assert_eq!(sets(&found), [expected]);
    // One of the two is for all types.
    let found = ask(json!({
        "matchers": ["{__name__=\"memory\"}", "{service_name=~\"a.*\"}"],
        "labelNames": ["service_name"],
        "start": FIRST_MS,
        "end": FIRST_MS + STEP_MS,
    }));
    assert_eq!(sets(&found), [[("service_name", "api")]]);
    let found = ask(json!({"labelNames": ["nothing"]}));
    assert_eq!(found, json!({}));
    // All labels, those that not every client reads only to those that say so.
    let question = json!({"matchers": [cpu]});
    let found = ask(question.clone());
    let names = |found: &Value| -> Vec<String> {
        let set = sets(found).remove(0);
        set.iter().map(|(name, _)| (*name).to_owned()).collect()
    };
    let plain = [
        "__name__",
        "__period_type__",
        "__period_unit__",
        "__profile_type__",
        "__type__",
        "__unit__",
        "service_name",
        "zone",
    ];
    assert_eq!(names(&found), plain);
    let accept = [("Accept", "*/*;allow-utf8-labelnames=true")];
    let found = answer_with(&server, "Series", &question, &accept);
    assert!(names(&found).contains(&"k8s.pod".to_owned()), "{found}");
}

#[test]
fn what_there_is_and_what_it_costs() {
    let server = TestServer::start();
    assert_eq!(answer(&server, "GetProfileStats", &json!({})), json!({}));
    let server = start();
    let stats = answer(&server, "GetProfileStats", &json!({}));
    assert_eq!(stats["dataIngested"], true);
    assert_eq!(number(&stats["oldestProfileTime"]), FIRST_MS + 5_000);
    assert_eq!(number(&stats["newestProfileTime"]), FIRST_MS + 16_000);
    let ask = |query: &str| {
        let question = json!({
            "start": FIRST_MS,
            "end": FIRST_MS + 2 * STEP_MS,
            "query": query,
        });
        answer(&server, "AnalyzeQuery", &question)
    };
    for query in [
        "{service_name=\"api\"}".to_owned(),
        format!("{CPU}{{service_name=\"api\"}}"),
        format!("{{__profile_type__=\"{CPU}\", service_name=\"api\"}}"),
    ] {
        let analysis = ask(&query);
        let scope = &analysis["queryScopes"][0];
        assert_eq!(number(&scope["profileCount"]), 3, "{query} {analysis}");
        assert_eq!(number(&scope["seriesCount"]), 1, "{query} {analysis}");
        let impact = &analysis["queryImpact"];
        assert_eq!(number(&impact["totalQueriedSeries"]), 1, "{query}");
        assert!(number(&impact["totalBytesInTimeRange"]) > 0, "{query}");
    }
    assert_eq!(number(&ask("")["queryImpact"]["totalQueriedSeries"]), 2);
    let nothing = ask("{__name__=\"memory\"}");
    assert_eq!(nothing["queryScopes"][0].get("profileCount"), None);
}

/// The first value of all samples.
fn sum_of_samples(profile: &Value) -> i64 {
    let samples = profile["sample"].as_array().expect("samples");
    samples
        .iter()
        .map(|sample| number(&sample["value"][0]))
        .sum()
}

/// The names of the functions of a pprof.
fn functions(profile: &Value) -> Vec<String> {
    let strings = profile["stringTable"].as_array().expect("strings");
    let functions = profile["function"].as_array().expect("functions");
    let names = functions.iter().map(|function| {
        let name = usize::try_from(number(&function["name"])).expect("an index");
        strings[name].as_str().expect("a name").to_owned()
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn profiles_are_cut_as_clients_ask() {
    let server = start();
    let whole = answer(&server, "SelectMergeProfile", &selection("{}"));
    assert_eq!(functions(&whole), ["burn", "main", "rest", "sleep"]);
    let cut = with(selection("{}"), "maxNodes", json!(2));
    let of_format = with(cut.clone(), "format", json!("PROFILE_FORMAT_PPROF"));
    let merged = answer(&server, "SelectMergeStacktraces", &of_format);
    let cut = answer(&server, "SelectMergeProfile", &cut);
    assert_eq!(functions(&cut), ["burn", "main", "other"]);
    assert_eq!(sum_of_samples(&cut), sum_of_samples(&whole));
    assert_eq!(merged["pprof"]["profile"]["sample"], cut["sample"]);
    let pgo = json!({"goPgo": {"keepLocations": 1, "aggregateCallees": true}});
    let pgo = with(selection("{}"), "stackTraceSelector", pgo);
    let pgo = answer(&server, "SelectMergeProfile", &pgo);
    assert_eq!(functions(&pgo), ["burn", "sleep"]);
    assert_eq!(sum_of_samples(&pgo), sum_of_samples(&whole));
    let samples = pgo["sample"].as_array().expect("samples");
    let depths = samples
        .iter()
        .map(|sample| sample["locationId"].as_array().map(Vec::len));
    assert!(depths.eq([Some(1), Some(1)]), "{pgo}");
}

#[test]
fn several_tenants_are_one_answer_and_their_profiles_stay_apart() {
    let server = TestServer::start_with(ServerOptions {
        auth: AuthOptions {
            multi_tenancy: true,
            ..AuthOptions::default()
        },
        ..support::options()
    });
    // The same series at the same time.
    for (tenant, factor) in [("alpha", 1), ("beta", 5)] {
        let profile = profile("api", FIRST_NS + SECOND_NS, factor, link(1, 2));
        append(&server, tenant, profile);
    }
    let other = profile("web", FIRST_NS + 2 * SECOND_NS, 1, None);
    append(&server, "beta", other);
    let ask = |method: &str, question: &Value, tenants: &str| {
        answer_with(&server, method, question, &[("X-Scope-OrgID", tenants)])
    };
    let question = with(
        selection("{service_name=\"api\"}"),
        "exemplarType",
        json!("EXEMPLAR_TYPE_INDIVIDUAL"),
    );
    let lines = ask("SelectSeries", &question, "beta|alpha");
    assert_eq!(points(&lines["series"][0]), [(STEP_MS, 600.0)]);
    let exemplar = &lines["series"][0]["points"][0]["exemplars"][0];
    assert_eq!(number(&exemplar["value"]), 500);
    let one = with(
        selection("{}"),
        "profileIdSelector",
        json!([exemplar["profileId"]]),
    );
    for (tenants, expected) in [("alpha|beta", 500), ("beta", 500), ("alpha", 0)] {
        let graph = &ask("SelectMergeStacktraces", &one, tenants)["flamegraph"];
        let total = graph.get("total").map_or(0, number);
        assert_eq!(total, expected, "{tenants}");
    }
    let of_span = with(selection("{}"), "spanSelector", json!(["02".repeat(8)]));
    let graph = &ask("SelectMergeStacktraces", &of_span, "alpha|beta")["flamegraph"];
    assert_eq!(number(&graph["total"]), 420);
    let names = json!({"labelNames": ["service_name"]});
    let services = |tenants| ask("Series", &names, tenants);
    let (api, web) = ([("service_name", "api")], [("service_name", "web")]);
    assert_eq!(sets(&services("alpha")), [api]);
    assert_eq!(sets(&services("alpha|beta")), [api, web]);
    let stats = ask("GetProfileStats", &json!({}), "alpha|beta|nobody");
    assert_eq!(number(&stats["oldestProfileTime"]), FIRST_MS + 1_000);
    assert_eq!(number(&stats["newestProfileTime"]), FIRST_MS + 2_000);
    let series = |tenants| {
        let analysis = ask("AnalyzeQuery", &json!({}), tenants);
        number(&analysis["queryImpact"]["totalQueriedSeries"])
    };
    assert_eq!(
        (series("alpha"), series("beta"), series("alpha|beta")),
        (1, 2, 3)
    );
}
