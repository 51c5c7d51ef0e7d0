//! The profile of one request: a program tells which span its threads work on (OTEP 4947), the agent reads
//! that in the kernel and sends it over OTLP, and the server is asked for it.

use std::process::Command;

use crate::support;
use crate::support::Pair;
use crate::support::Program;
use serde_json::Value;

const TRACES: [&str; 2] = [
    "11111111111111111111111111111111",
    "22222222222222222222222222222222",
];
const SPANS: [&str; 2] = ["1a1a1a1a1a1a1a1a", "2b2b2b2b2b2b2b2b"];
/// Who works on the spans, and who on none.
const FUNCTIONS: [&str; 3] = ["serve_first", "serve_second", "serve_nobody"];

/// Which of the functions are among those of a table.
fn served(table: &Value) -> Vec<&'static str> {
    let functions = table["functions"].as_array().cloned().unwrap_or_default();
    let has = |wanted: &&str| functions.iter().any(|function| function["name"] == *wanted);
    FUNCTIONS.into_iter().filter(|it| has(it)).collect()
}

fn percent_encoded(text: &str) -> String {
    let digits = text.bytes().map(|byte| format!("%{byte:02X}"));
    digits.collect()
}

fn unix_seconds() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap().as_secs()
}

/// The templates of the documentation, filled in for the second span, which lasted from `start` to `end`.
fn links(server: &str, start: u64, end: u64) -> Vec<String> {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/traces.md");
    let page = std::fs::read_to_string(page).unwrap();
    let templates = page
        .lines()
        .filter_map(|line| line.strip_prefix("http://127.0.0.1:4040"));
    let filled = templates.map(|template| {
        let path = template
            .replace("SERVICE", "spans")
            .replace("SPAN", SPANS[1])
            .replace("START", &(start - 10).to_string())
            .replace("END", &end.to_string())
            // The function that waits is not among the ten that do so themselves.
            .replace("limit=10", "limit=1000")
            .replace('"', "%22")
            .replace('{', "%7B")
            .replace('}', "%7D");
        format!("{server}{path}")
    });
    filled.collect()
}

fn check_links(pair: &Pair, start: u64, end: u64) {
    let links = links(&pair.server.url(""), start, end);
    let [window, top, picture, file] = &links[..] else {
        panic!("{links:?}");
    };
    assert_eq!(support::get(window).0, 200);
    assert_eq!(served(&support::get_json(top)), ["serve_second"]);
    let (status, svg) = support::get(picture);
    let svg = String::from_utf8(svg).unwrap();
    assert_eq!(status, 200, "{svg}");
    assert!(svg.contains("serve_second") && !svg.contains("serve_first"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("span.pb.gz");
    std::fs::write(&path, support::get(file).1).unwrap();
    let path = path.to_str().unwrap();
    let folded = support::run(&["convert", path, "-o", "-", "--to", "folded"]);
    support::expect_code(&folded, 0);
    let folded = support::stdout(&folded);
    assert!(folded.contains("serve_second") && !folded.contains("serve_first"));
}

#[test]
fn a_span_is_asked_for_by_its_id() {
    let test = "a_span_is_asked_for_by_its_id";
    if !support::is_root(test) || !support::has_tool(test, "gcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = support::compile_of_agent(
        folder.path(),
        "spans",
        &["spans.c", "span_pointer.c"],
        &["-Wl,--export-dynamic-symbol=otel_thread_ctx_v1"],
    );
    let pair = Pair::start(folder.path());
    let start = unix_seconds();
    let program = Program::start(&mut Command::new(program));
    let top = |matchers: &str, profile_type: &str| {
        let selector = percent_encoded(&format!("{{{matchers}}}"));
        let path = format!("/api/v1/top?limit=1000&type={profile_type}&query={selector}");
        support::get_json(&pair.server.url(&path))
    };
    // The first milliseconds of a program have no spans, and everything is asked for in one time.
    support::eventually("both spans are there", || {
        // A wait of milliseconds is a sample once in a second or so.
        let is_there = |id: &str, profile_type: &str| {
            !served(&top(&format!("span_id=\"{id}\""), profile_type)).is_empty()
        };
        let are_there = |id: &&str| is_there(id, "cpu") && is_there(id, "off_cpu");
        SPANS.iter().all(are_there).then_some(())
    });
    drop(program);
    pair.end_agent();
    check_links(&pair, start, unix_seconds() + 1);

    let of_program = "service_name=\"spans\"";
    let total = |matchers: &str, profile_type: &str| {
        let table = top(&format!("{of_program}{matchers}"), profile_type);
        table["total"].as_i64().unwrap()
    };
    for profile_type in ["cpu", "off_cpu", "wall"] {
        for (number, function) in FUNCTIONS[..2].iter().enumerate() {
            let (trace, span) = (TRACES[number], SPANS[number]);
            for matchers in [
                format!("trace_id=\"{trace}\""),
                format!("span_id=\"{span}\""),
                format!("trace_id=\"{trace}\", span_id=\"{span}\""),
                format!("trace_id=~\"{}.*\"", &trace[..4]),
            ] {
                let found = served(&top(&matchers, profile_type));
                assert_eq!(found, [*function], "{matchers} {profile_type}");
            }
        }
        let both = format!("{}|{}", SPANS[0], SPANS[1]);
        let of_both = total(&format!(", span_id=~\"{both}\""), profile_type);
        let of_others = total(&format!(", span_id!~\"{both}\""), profile_type);
        assert_eq!(
            of_both + of_others,
            total("", profile_type),
            "{profile_type}"
        );
        let of_each: i64 = SPANS
            .iter()
            .map(|span| total(&format!(", span_id=\"{span}\""), profile_type))
            .sum();
        assert_eq!(of_each, of_both, "{profile_type}");
        let of_first = total(&format!(", span_id=\"{}\"", SPANS[0]), profile_type);
        let of_rest = total(&format!(", span_id!=\"{}\"", SPANS[0]), profile_type);
        assert_eq!(of_first + of_rest, of_both + of_others, "{profile_type}");
    }

    let url = pair.server.url("");
    let query = |command: &str, selector: &str, more: &[&str]| {
        let arguments = [
            "query", command, "--server", &url, "--query", selector, "--format", "json",
        ];
        let output = support::run(&[&arguments[..], more].concat());
        support::expect_code(&output, 0);
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let selector = format!("{{trace_id=\"{}\"}}", TRACES[1]);
    let table = query("top", &selector, &["--limit", "0"]);
    assert_eq!(served(&table), ["serve_second"], "{table}");
    let lines = query(
        "series",
        &format!("{{{of_program}}}"),
        &["--group-by", "trace_id", "--group-by", "span_id"],
    );
    for number in 0..2 {
        let mut lines = lines["series"].as_array().unwrap().iter();
        let line = lines
            .find(|line| line["labels"]["trace_id"] == TRACES[number])
            .unwrap();
        assert_eq!(line["labels"]["span_id"], SPANS[number], "{line}");
        let points = line["points"].as_array().unwrap().iter();
        let sum: i64 = points.map(|point| point[1].as_i64().unwrap()).sum();
        assert_eq!(
            sum,
            total(&format!(", trace_id=\"{}\"", TRACES[number]), "cpu")
        );
    }
    let unknown = "{trace_id=\"33333333333333333333333333333334\"}";
    let output = support::run(&["query", "top", "--server", &url, "--query", unknown]);
    support::expect_code(&output, 5);
}
