//! One list of filters is one question, wherever it is asked: in the window, of the API, on the command line against a
//! server and over a file.

use std::path::Path;
use std::process::Command;

use crate::support;
use crate::support::Running;
use crate::support::run;
use crate::support::stderr;
use candela_model::FrameKind;
use candela_model::Labels;
use candela_model::Location;
use candela_model::Mapping;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use candela_model::SampleLabel;
use serde_json::Value;

/// Stacks with recursion, libraries, packages and a thread that waits for work, root first; functions of the kernel begin
/// with `k:`, of a library with its name before `!`. The second is the label `thread` of the sample.
const STACKS: [(&str, &str, i64); 6] = [
    (
        "shop::main shop::walk shop::walk shop::visit shop::walk std::io::read libc.so.6!read k:vfs_read",
        "walker",
        7,
    ),
    (
        "shop::main shop::walk shop::visit libc.so.6!malloc libc.so.6!brk",
        "walker",
        5,
    ),
    (
        "shop::main tokio::runtime::task::poll tokio::time::sleep shop::tick",
        "timer",
        3,
    ),
    (
        "shop::main net/http.(*conn).serve net/http.HandlerFunc.ServeHTTP shop::order",
        "server-1",
        2,
    ),
    ("libc.so.6!start k:idle", "timer", 1),
    (
        "libc.so.6!clone tokio::runtime::scheduler::worker::Context::park k:futex_wait",
        "server-2",
        4,
    ),
];

/// As in the address of the window.
const LISTS: [&str; 20] = [
    "collapse=recursion",
    "collapse=recursion:fn:^shop::walk$",
    "collapse=bin:.",
    "collapse=bin:libc",
    "collapse=pkg:^(tokio)(::|$)",
    "collapse=pkg:^net/http$\ncollapse=kind:kernel",
    "collapse=file:.",
    "collapse=fn:read|vfs",
    "focus=fn:visit\ncollapse=recursion",
    "collapse=recursion\nfocus=fn:visit",
    "hide=kind:kernel\n!collapse=bin:.\ncollapse=pkg:^shop$\nshow_from=shop",
    "collapse=bin:libc\nignore=fn:^libc.so.6$\nhide=tokio",
    "show=fn:^shop::",
    "show=pkg:^(shop|tokio)\nhide=fn:walk",
    "ignore=file:^libc.so.6.c$",
    "hide=line:^shop.c:2$\nfocus=file:shop",
    "focus=line:^shop.c:1$",
    "tagfocus=thread=^server-",
    "tagfocus=thread=walker,timer\ntagignore=timer",
    "tagignore=^walker$\nshow=kind:kernel\ncollapse=file:.",
];

fn profile() -> Profile {
    let mut profile = Profile::default();
    let mut stacks = Vec::new();
    for (text, thread, value) in STACKS {
        let symbols = &mut profile.symbols;
        let mut locations: Vec<_> = text
            .split(' ')
            .map(|word| {
                let (binary, name) = word.split_once('!').unwrap_or(("shop", word));
                // A file says by the name of the mapping what is the kernel.
                let (kind, name, path) = match name.strip_prefix("k:") {
                    Some(name) => (FrameKind::Kernel, name, "[kernel]".to_owned()),
                    None => (FrameKind::Native, name, format!("/usr/lib/{binary}")),
                };
                let file = symbols.strings.intern(&path);
                let mapping = symbols.intern_mapping(Mapping {
                    file,
                    ..Mapping::default()
                });
                let file = format!("{binary}.c");
                let function = symbols.intern_function(name, "", &file, first_line(name));
                let place = Location::new(kind, 0).in_mapping(mapping);
                symbols.intern_location(&place, &[(function, 9, 0)])
            })
            .collect();
        locations.reverse();
        let stack = profile.stacks.intern(&locations);
        let [key, thread] = ["thread", thread].map(|text| profile.symbols.strings.intern(text));
        let label_set = profile
            .label_sets
            .intern(vec![SampleLabel::text(key, thread)]);
        stacks.push(Sample {
            label_set,
            ..Sample::new(stack, value)
        });
    }
    let cpu = "process_cpu:cpu:nanoseconds:cpu:nanoseconds".parse();
    let mut series = ProfileSeries::new(Labels::default(), cpu.expect("a type"));
    series.samples = stacks;
    profile.series.push(series);
    profile
}

/// Of a function in its file; few, so that a pattern about one finds several functions.
fn first_line(function: &str) -> u32 {
    1 + u32::try_from(function.len() % 3).expect("below three")
}

fn file_of(profile: &Profile, folder: &Path) -> String {
    let mut bytes = Vec::new();
    let options = candela_formats::PprofOptions::default();
    candela_formats::write_pprof(profile, &mut bytes, &options).expect("a valid profile");
    let path = folder.join("shop.pb");
    std::fs::write(&path, bytes).expect("the folder is there");
    path.to_str().expect("a text").to_owned()
}

/// What a runner beside the walks prints.
fn of_runner(script: &str, arguments: &[&str]) -> Value {
    let ui = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui");
    let output = Command::new("node")
        .arg(script)
        .args(arguments)
        .current_dir(ui)
        .output()
        .expect("node runs");
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Filters of an address, what the window asks with, and the command line that it offers.
struct AsInWindow {
    text: String,
    parameters: Vec<(String, String)>,
    command: String,
}

impl AsInWindow {
    /// Of several lists at once: starting node takes longer than all of them.
    fn of(server: &str, texts: &[&str]) -> Vec<Self> {
        let arguments = [&[server], texts].concat();
        let answers = of_runner("e2e/filter-parameters.mjs", &arguments);
        let answers = answers.as_array().expect("a list");
        assert_eq!(answers.len(), texts.len());
        texts
            .iter()
            .zip(answers)
            .map(|(text, answer)| Self {
                text: (*text).to_owned(),
                parameters: serde_json::from_value(answer["parameters"].clone()).expect("pairs"),
                command: answer["command"].as_str().expect("a text").to_owned(),
            })
            .collect()
    }

    /// The table that the API answers.
    fn asked(&self, server: &Running) -> Value {
        let query: String = self
            .parameters
            .iter()
            .map(|(name, pattern)| format!("&{name}={}", percent_encoded(pattern)))
            .collect();
        support::get_json(&server.url(&format!("/api/v1/top?limit=0{query}")))
    }

    /// As flags of the command line.
    fn flags(&self) -> Vec<String> {
        let pairs = self.parameters.iter();
        pairs
            .flat_map(|(name, pattern)| [format!("--{}", name.replace('_', "-")), pattern.clone()])
            .collect()
    }
}

fn percent_encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// The part of an answer that filters decide.
fn table_of(answer: &Value) -> Vec<(String, i64, i64)> {
    let functions = answer["functions"].as_array().expect("a table");
    let rows = functions.iter().map(|row| {
        let number = |name: &str| row[name].as_i64().expect("a number");
        let name = row["name"].as_str().expect("a name").to_owned();
        (name, number("self"), number("total"))
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort();
    rows
}

fn json_of(output: &std::process::Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// A server that has the file.
fn server_with(file: &str, folder: &Path) -> Running {
    let data_dir = folder.join("data");
    let server = Running::start(&[
        "server",
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        data_dir.to_str().expect("a text"),
    ]);
    let url = server.url("");
    let pushed = run(&["push", file, "--service", "shop", "--server", &url]);
    assert!(pushed.status.success(), "{}", stderr(&pushed));
    server
}

/// `query top` of everything, whatever is asked.
fn top(arguments: &[&str]) -> Vec<(String, i64, i64)> {
    let common = ["query", "top", "--format", "json", "--limit", "0"];
    table_of(&json_of(&run(&[&common, arguments].concat())))
}

#[test]
fn one_list_is_one_question_everywhere() {
    if !support::has_tool("one_list_is_one_question_everywhere", "node") {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary directory");
    let file = file_of(&profile(), folder.path());
    let server = server_with(&file, folder.path());
    let url = server.url("");
    let everything = top(&[&file]);

    for list in AsInWindow::of(&url, &LISTS) {
        let text = &list.text;
        let of_api = list.asked(&server);
        let expected = table_of(&of_api);
        assert!(!expected.is_empty(), "{text}");
        assert_ne!(expected, everything, "{text}: it changes nothing");
        let own: i64 = expected.iter().map(|(_, own, _)| own).sum();
        // A stack of which no frame is left counts, and is nobody's.
        let whole = of_api["total"].as_i64().expect("a number");
        if text.contains("show=") {
            assert!(own <= whole, "{text}: {own} of {whole}");
        } else {
            assert_eq!(own, whole, "{text}: every value is somebody's");
        }
        for (name, _, total) in &expected {
            assert!(
                *total <= of_api["total"].as_i64().unwrap_or(0),
                "{text}: {name} counts twice"
            );
        }

        let flags = list.flags();
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let of_server = top(&[&["--server", &url], &flags[..]].concat());
        assert_eq!(of_server, expected, "{text}: against a server");
        let of_file = top(&[&[file.as_str()], &flags[..]].concat());
        assert_eq!(of_file, expected, "{text}: over a file");

        let program = format!("{} ", env!("CARGO_BIN_EXE_candela"));
        let copied = list.command.replacen("candela ", &program, 1);
        let of_copied = support::in_clean_environment("sh")
            .args(["-c", &format!("{copied} --format json --limit 0")])
            .output()
            .expect("a shell");
        assert_eq!(
            table_of(&json_of(&of_copied)),
            expected,
            "{text}: as copied from the window"
        );
    }
}

#[test]
fn presets_of_the_window_are_those_of_the_command_line() {
    let test = "presets_of_the_window_are_those_of_the_command_line";
    if !support::has_tool(test, "node") {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary directory");
    let file = file_of(&profile(), folder.path());
    let server = server_with(&file, folder.path());
    let everything = top(&[&file]);

    let presets = of_runner("e2e/filter-presets.mjs", &[]);
    let presets = presets.as_array().expect("a list").iter();
    let presets: Vec<[&str; 2]> = presets
        .map(|preset| ["id", "filters"].map(|field| preset[field].as_str().expect("a text")))
        .collect();
    assert_eq!(presets.len(), 6, "{presets:?}");
    let texts: Vec<&str> = presets.iter().map(|[_, filters]| *filters).collect();
    for ([id, _], list) in presets.iter().zip(AsInWindow::of(&server.url(""), &texts)) {
        let of_window = table_of(&list.asked(&server));
        assert!(!of_window.is_empty(), "{id} leaves nothing");
        assert_ne!(of_window, everything, "{id} changes nothing");
        assert_eq!(top(&[&file, "--preset", id]), of_window, "{id}");
    }

    let names = |preset: &str| -> Vec<String> {
        let rows = top(&[&file, "--preset", preset]).into_iter();
        rows.map(|row| row.0).collect()
    };
    let mine = names("my-code");
    assert!(mine.contains(&"shop::walk".to_owned()), "{mine:?}");
    assert!(!mine.contains(&"std::io::read".to_owned()), "{mine:?}");
    let busy = names("idle-runtimes");
    assert!(busy.contains(&"idle".to_owned()), "{busy:?}");
    assert!(!busy.contains(&"futex_wait".to_owned()), "{busy:?}");
    let unknown = run(&["query", "top", &file, "--preset", "nothing"]);
    assert_eq!(unknown.status.code(), Some(2), "{}", stderr(&unknown));
}
