//! `candela convert`, `push`, `open` and `diff`, and `query` over files.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Output;
use std::process::Stdio;

use crate::support::Running;
use crate::support::candela;
use crate::support::expect_code;
use crate::support::get_json;
use crate::support::run;
use crate::support::stderr;
use crate::support::stdout;
use candela_formats::Format;
use candela_formats::PprofOptions;
use candela_formats::ReadOptions;
use serde_json::Value;

/// 2020-06-01, long before any retention of ours begins.
const LONG_AGO_SECONDS: u64 = 1_590_969_600;

fn written(folder: &tempfile::TempDir, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, content).expect("the folder is there");
    let file = fs::File::options()
        .write(true)
        .open(&path)
        .expect("just written");
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(LONG_AGO_SECONDS);
    file.set_modified(time).expect("it is ours");
    path
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a text")
}

/// The program ended well; its standard output.
#[track_caller]
fn printed(arguments: &[&str]) -> String {
    let output = run(arguments);
    expect_code(&output, 0);
    stdout(&output)
}

/// The program ended with this code and these words.
#[track_caller]
fn refused(arguments: &[&str], code: i32, words: &str) {
    let output = run(arguments);
    expect_code(&output, code);
    assert!(stderr(&output).contains(words), "{}", stderr(&output));
}

fn with_input(arguments: &[&str], input: &Path) -> Output {
    let input = fs::File::open(input).expect("the input");
    let child = candela()
        .args(arguments)
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    child
        .expect("candela starts")
        .wait_with_output()
        .expect("it ends")
}

#[test]
fn convert_goes_by_content_and_name() {
    let folder = folder();
    let input = written(&folder, "misleading.pb.gz", "main;read 3\nmain;write 4\n");
    let pprof = folder.path().join("out.pb.gz");
    printed(&["convert", text(&input), "-o", text(&pprof)]);
    assert!(
        fs::read(&pprof)
            .expect("written")
            .starts_with(&[0x1f, 0x8b])
    );
    let folded = printed(&["convert", text(&pprof), "--to", "folded"]);
    assert_eq!(folded, "main;read 3\nmain;write 4\n");
    let piped = with_input(&["convert", "-", "--to", "folded", "-o", "-"], &pprof);
    assert_eq!(stdout(&piped), folded);
}

#[test]
fn a_result_goes_where_a_link_or_the_name_of_standard_output_leads() {
    let folder = folder();
    let input = written(&folder, "in.folded", "main;read 3\n");
    let target = written(&folder, "target.folded", "old");
    let link = folder.path().join("link.folded");
    std::os::unix::fs::symlink(&target, &link).expect("a link");
    printed(&["convert", text(&input), "--to", "folded", "-o", text(&link)]);
    assert!(link.is_symlink());
    let content = || fs::read_to_string(&target).expect("written");
    assert_eq!(content(), "main;read 3\n");

    // What a shell opens for `>>`.
    let appended = fs::File::options().append(true).open(&target);
    let status = candela()
        .args(["convert", text(&input), "--to", "folded", "-o", "/dev/fd/1"])
        .stdout(appended.expect("it is there"))
        .status();
    assert!(status.expect("candela starts").success());
    assert_eq!(content(), "main;read 3\nmain;read 3\n");
}

#[test]
fn convert_merges_filters_and_says_what_is_lost() {
    let folder = folder();
    let one = written(&folder, "one.folded", "main;read 3\nmain;write 4\n");
    let two = written(&folder, "two.folded", "main;read 10\nidle 5\n");
    let (one, two) = (text(&one), text(&two));
    let arguments = ["convert", one, two, "--to", "folded", "--ignore", "idle"];
    let output = run(&arguments);
    expect_code(&output, 0);
    assert_eq!(stdout(&output), "main;read 13\nmain;write 4\n");
    let lost = "note: folded has no place for: start and duration";
    assert!(stderr(&output).contains(lost), "{}", stderr(&output));
    let silent = run(&[&arguments[..], &["-q"]].concat());
    assert_eq!(stderr(&silent), "");
}

/// As `convert` does, where nobody says which type it shall be.
#[test]
fn files_without_cpu_show_their_most_telling_type() {
    let folder = folder();
    let heap = "heap profile: 1: 10 [2: 300] @ heap/1\n1: 10 [2: 300] @ 0x10\n\
                \nMAPPED_LIBRARIES:\n0-1000 r-xp 00000000 00:00 0 /app\n";
    let heap = written(&folder, "app.heap", heap);
    let output = run(&["query", "top", text(&heap)]);
    expect_code(&output, 0);
    let note = "note: this is memory:inuse_space:bytes:space:bytes; --type chooses another: ";
    assert!(stderr(&output).starts_with(note), "{}", stderr(&output));
    let silent = run(&["query", "top", "-q", text(&heap)]);
    assert_eq!(stderr(&silent), "");
    let chosen = printed(&["query", "top", "--type", "inuse_objects", text(&heap)]);
    assert!(chosen.contains("inuse"), "{chosen}");
    refused(
        &["query", "top", "--type", "cpu", text(&heap)],
        2,
        "--type \"cpu\" names none of the profile types here",
    );
    let same = run(&["diff", text(&heap), text(&heap)]);
    expect_code(&same, 0);
}

/// Which type is shown first, and free text, are the choice of who wrote the profile.
#[test]
fn what_a_profile_says_of_itself_is_kept() {
    let folder = folder();
    let heap = "heap profile: 1: 10 [2: 300] @ heap/1\n1: 10 [2: 300] @ 0x10\n";
    let options = ReadOptions::default();
    let (profile, _) =
        candela_formats::read(Format::LegacyText, heap.as_bytes(), &options).expect("it is sound");
    let said = PprofOptions {
        comments: vec!["built on a Friday".to_owned()],
        default_sample_type: Some("alloc_space".to_owned()),
        ..PprofOptions::default()
    };
    let mut bytes = Vec::new();
    candela_formats::write_pprof(&profile, &mut bytes, &said).expect("it is sound");
    let file = written(&folder, "heap.pb.gz", &bytes);

    let again = folder.path().join("again.pb.gz");
    printed(&["convert", "-q", text(&file), "-o", text(&again)]);
    let bytes = fs::read(&again).expect("just written");
    let (_, report) = candela_formats::read_pprof(&bytes[..], &options).expect("it is sound");
    assert_eq!(report.comments, said.comments);
    assert_eq!(report.default_sample_type, said.default_sample_type);

    let folded = printed(&["convert", "-q", text(&file), "--to", "folded"]);
    assert!(folded.ends_with(" 300\n"), "{folded}");
    let told = run(&["convert", text(&file), "--to", "folded"]);
    let told = stderr(&told);
    assert!(
        told.contains("folded has no place for: ") && told.contains("comments"),
        "{told}"
    );
    let output = run(&["query", "top", text(&file)]);
    let note = "note: this is memory:alloc_space:bytes:space:bytes; --type chooses another: ";
    assert!(stderr(&output).starts_with(note), "{}", stderr(&output));
    let filtered = ["convert", "-q", text(&file), "--to", "folded"];
    let filtered = printed(&[&filtered[..], &["--sample-type", "inuse_space"]].concat());
    assert!(filtered.ends_with(" 10\n"), "{filtered}");
}

#[test]
fn text_has_the_layouts_of_pprof() {
    let folder = folder();
    let input = written(&folder, "in.folded", "main;call;read 3\nmain;write 5\n");
    let layout = |rest: &[&str]| {
        let arguments = ["convert", "-q", text(&input), "--to", "text", "--layout"];
        let output = printed(&[&arguments[..], rest].concat());
        // The head names the time at which the file was read.
        output
            .lines()
            .skip(2)
            .map(|line| format!("{line}\n"))
            .collect::<String>()
    };
    let top = layout(&["top"]);
    assert!(
        top.contains("         5 62.50% 62.50%          5 62.50%  write\n"),
        "{top}"
    );
    let peek = layout(&["peek", "--functions", "^call$"]);
    assert!(
        peek.contains("                                                 3   100% |   read\n"),
        "{peek}"
    );
    assert!(!peek.contains("write"), "{peek}");
    let traces = layout(&["traces"]);
    assert!(
        traces.contains("         3   read\n             call\n             main\n"),
        "{traces}"
    );
    assert!(layout(&["tree"]).contains("100%                | main\n"));
    let arguments = [
        "convert",
        text(&input),
        "--to",
        "text",
        "--layout",
        "table-top",
    ];
    refused(&arguments, 2, "is none of table, top, tree, peek, traces");
}

#[test]
fn convert_refuses_what_makes_no_sense() {
    let folder = folder();
    let good = written(&folder, "good.folded", "main 1\n");
    let noise = written(&folder, "noise.bin", [0x7f; 100]);
    let empty = written(&folder, "empty.folded", "");
    let broken = written(
        &folder,
        "broken.folded",
        "main 1\nmain;read 2\nmain;no count\n",
    );
    let (good, noise) = (text(&good), text(&noise));
    let to = ["--to", "folded"];
    let convert = |rest: &[&'static str], input: &str| -> Vec<String> {
        let arguments = ["convert", input].into_iter();
        arguments
            .chain(rest.iter().copied())
            .map(str::to_owned)
            .collect()
    };
    let refused_with = |arguments: Vec<String>, code, words| {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        refused(&arguments, code, words);
    };
    refused_with(convert(&[], good), 2, "name the format of the result");
    refused_with(convert(&["--to", "tar"], good), 2, "is none of");
    refused_with(
        convert(&["--from", "svg", "--to", "dot"], good),
        2,
        "--from \"svg\" is none of",
    );
    refused_with(convert(&to, noise), 1, "no profile format that can be read");
    refused_with(convert(&to, text(&empty)), 1, "it is empty");
    refused_with(convert(&to, "/no/such/file"), 1, "No such file");
    refused_with(convert(&to, text(folder.path())), 1, "it is a folder");
    let types = ["--to", "folded", "--sample-type", "cycles"];
    refused_with(
        convert(&types, good),
        2,
        "names none of the profile types here",
    );
    let none = ["--to", "folded", "--focus", "absent"];
    refused_with(convert(&none, good), 5, "nothing passes the filters");
    refused_with(
        convert(&["--to", "folded", "--strict"], text(&broken)),
        1,
        "refused with --strict",
    );
    let lenient = run(&["convert", text(&broken), "--to", "folded"]);
    assert_eq!(stdout(&lenient), "main 1\nmain;read 2\n");
}

#[test]
fn diff_tells_what_changed() {
    let folder = folder();
    let before = written(&folder, "before.folded", "main;old 10\nmain;same 40\n");
    let after = written(&folder, "after.folded", "main;new 25\nmain;same 41\n");
    let (before, after) = (text(&before), text(&after));
    let table = printed(&["diff", before, after]);
    assert!(table.starts_with("Total"), "{table}");
    assert!(
        table.contains("50 before, 66 after: +16 (+32.00%)"),
        "{table}"
    );
    let json = printed(&["diff", before, after, "--format", "json", "--focus", "same"]);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["schema"], "candela/diff/v1");
    assert_eq!(
        (&json["before"]["total"], &json["after"]["total"]),
        (&40.into(), &41.into())
    );
    let csv = folder.path().join("out.csv");
    printed(&["diff", before, after, "-o", text(&csv)]);
    let csv = fs::read_to_string(csv).expect("written");
    let mut lines = csv.lines();
    let head = lines.next().expect("a head line");
    let new = lines.next().expect("a function");
    assert!(new.starts_with("new,,,,0,25,0,25,count,,"), "{new}");
    let columns = head.split(',').zip(new.split(','));
    let of_change: Vec<_> = columns
        .filter(|(name, _)| name.ends_with("class") || name.ends_with("confirmation"))
        .collect();
    let one_file_against_one = [
        ("class", "new"),
        ("confirmation", "too_few"),
        ("total_class", "new"),
        ("total_confirmation", "too_few"),
    ];
    assert_eq!(of_change, one_file_against_one, "{new}");
    let cut = run(&["diff", before, after, "--format", "csv", "--limit", "1"]);
    assert_eq!(stdout(&cut).lines().count(), 2);
    assert_eq!(stderr(&cut), "1 of 4 rows; --limit 0 prints all\n");
    let page = folder.path().join("out.html");
    let output = run(&["diff", before, after, "--negate", "-o", text(&page)]);
    if output.status.success() {
        let page = fs::read_to_string(page).expect("written");
        let heading = format!("{before} → {after}");
        assert!(page.contains(&heading), "it says what it compares");
    } else {
        // Built without the window.
        assert!(stderr(&output).contains("cargo xtask ui"));
    }
    refused(&["diff", before, "/no/such/file"], 1, "No such file");
    refused(
        &["diff", before, after, "-o", "out.xyz"],
        2,
        "tells no form",
    );
    refused(&["diff", before, "{}@yesterday"], 2, "FROM..TO");
}

#[test]
fn files_are_pushed_and_compared_on_a_server() {
    let folder = folder();
    let data = folder.path().join("data");
    let server = [
        "server",
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        text(&data),
    ];
    let server = Running::start(&server);
    let url = server.url("");
    let before = written(&folder, "before.folded", "main;old 10\n");
    let after = written(&folder, "after.folded", "main;new 25\n");
    for (file, version) in [(&before, "version=1"), (&after, "version=2")] {
        fs::File::options()
            .write(true)
            .open(file)
            .and_then(|file| file.set_modified(std::time::SystemTime::now()))
            .expect("it is ours");
        let arguments = ["push", text(file), "--service", "shop", "--label", version];
        let output = run(&[&arguments[..], &["--server", &url]].concat());
        expect_code(&output, 0);
        assert!(
            stderr(&output).contains("1 profiles, 1 samples as shop"),
            "{}",
            stderr(&output)
        );
    }
    let sides = ["{version=\"1\"}@now-1h..now", "{version=\"2\"}"];
    let arguments = [
        "diff", sides[0], sides[1], "--type", "samples", "--format", "json",
    ];
    let diff = printed(&[&arguments[..], &["--server", &url]].concat());
    let diff: Value = serde_json::from_str(&diff).expect("JSON");
    assert_eq!(
        (&diff["before"]["total"], &diff["after"]["total"]),
        (&10.into(), &25.into())
    );
    // One of two that cannot be read: the other is there, and the exit code tells.
    let noise = written(&folder, "noise.bin", [0x7f; 100]);
    let arguments = ["push", text(&noise), text(&after), "--service", "both"];
    let output = run(&[&arguments[..], &["--server", &url]].concat());
    expect_code(&output, 1);
    let services = get_json(&server.url("/api/v1/label-values?label=service_name"));
    let services = services["values"].to_string();
    assert_eq!(services, "[\"both\",\"shop\"]");
    refused(&["push", text(&after)], 2, "--service");
    let label = ["push", text(&after), "--service", "x", "--label", "novalue"];
    refused(&label, 2, "NAME=VALUE");
    let nobody = ["--server", "http://127.0.0.1:1"];
    let arguments = ["push", text(&after), "--service", "x"];
    refused(&[&arguments[..], &nobody].concat(), 7, "does not answer");
}

#[test]
fn files_are_opened_whatever_their_age() {
    let folder = folder();
    let one = written(&folder, "one.folded", "main;read 3\n");
    let two = written(&folder, "two.folded", "main;write 4\n");
    let window = Running::start(&["open", "--no-browser", text(&one), text(&two)]);
    let link = window.url("");
    let (address, parameters) = link.split_once("/?").expect("an address with a view");
    assert!(parameters.contains("from=1590969600000"), "{parameters}");
    let range = "from=1590969600000&to=1590969601000";
    let values = format!("{address}/api/v1/label-values?label=service_name&{range}");
    assert_eq!(
        get_json(&values)["values"].to_string(),
        "[\"one.folded\",\"two.folded\"]"
    );
    let top = format!("{address}/api/v1/top?type=samples&{range}");
    assert_eq!(get_json(&top)["total"], 7);
    assert_eq!(window.terminate(), Some(0));
}

#[test]
fn files_are_asked_for_labels_and_series() {
    let folder = folder();
    let speedscope = r#"{"$schema":"https://www.speedscope.app/file-format-schema.json",
        "shared":{"frames":[{"name":"main"}]},
        "profiles":[
            {"type":"sampled","name":"red","unit":"none","startValue":0,"endValue":2,
             "samples":[[0],[0]],"weights":[1,1]},
            {"type":"sampled","name":"blue","unit":"none","startValue":0,"endValue":5,
             "samples":[[0]],"weights":[5]}]}"#;
    let file = written(&folder, "two.json", speedscope);
    let file = text(&file);
    assert!(printed(&["query", "labels", file]).contains("thread_name"));
    let values = printed(&["query", "labels", "thread_name", file]);
    assert_eq!(values, "VALUE\nblue\nred\n");
    let focus = [
        "query",
        "labels",
        "thread_name",
        file,
        "--tagfocus",
        "thread_name=red",
    ];
    assert_eq!(printed(&focus), "VALUE\nred\n");
    let series = [
        "query",
        "series",
        file,
        "--group-by",
        "thread_name",
        "--format",
        "json",
    ];
    let series: Value = serde_json::from_str(&printed(&series)).expect("JSON");
    assert_eq!(series["series"][0]["labels"]["thread_name"], "blue");
    assert_eq!(
        series["series"][0]["points"],
        serde_json::json!([[1_590_969_600_000_u64, 5]])
    );
    let recording = serde_json::json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": {"frames": [{"name": "main"}]},
        "profiles": [{"type": "sampled", "name": "all", "unit": "seconds", "startValue": 0, "endValue": 4,
            "samples": [[0]], "weights": [4]}]
    });
    let recording = written(&folder, "four.json", recording.to_string());
    let step = [
        "--step",
        "3600",
        "--aggregation",
        "rate",
        "--format",
        "json",
    ];
    let rate = [&["query", "series", text(&recording)], &step[..]].concat();
    let rate: Value = serde_json::from_str(&printed(&rate)).expect("JSON");
    assert_eq!(
        rate["series"][0]["points"][0][1], 1e9,
        "a second in each of the four that it took"
    );
    let average = ["query", "series", file, "--aggregation", "avg"];
    refused(&average, 2, "files have sum and rate");
}
