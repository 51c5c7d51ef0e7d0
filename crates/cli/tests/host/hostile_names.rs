//! Names that would drive a terminal or a spreadsheet, in everything that prints them.

use candela_formats::PprofOptions;
use candela_model::FrameKind;
use candela_model::Labels;
use candela_model::Location;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::ProfileType;
use candela_model::Sample;

use crate::support;

/// Clears the screen by ASCII's and by C1's form, rings, and is shown in another order.
const NAME: &str = "main\u{1b}[2J\u{9b}2J\u{7}\u{202e}niam\u{2066}";
const FORMULA: &str = "=HYPERLINK(\"http://127.0.0.1:1/\")";

/// The profile as a file: the name calls the formula.
fn profile_file(folder: &tempfile::TempDir) -> String {
    let mut profile = Profile::default();
    let mut labels = Labels::default();
    labels.set("service_name", NAME);
    let cpu = ProfileType::new("process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds");
    let mut series = ProfileSeries::new(labels, cpu);
    let mut location = |name: &str, line: u32| {
        let function = profile.symbols.intern_function(name, "", NAME, line);
        let place = Location::new(FrameKind::Native, u64::from(line));
        profile
            .symbols
            .intern_location(&place, &[(function, line, 0)])
    };
    let stack = [location(FORMULA, 2), location(NAME, 1)];
    let stack = profile.stacks.intern(&stack);
    series.samples.push(Sample::new(stack, 1_000_000_000));
    profile.series.push(series);
    let mut bytes = Vec::new();
    candela_formats::write_pprof(&profile, &mut bytes, &PprofOptions::default())
        .expect("a valid profile");
    let path = folder.path().join("names.pb");
    std::fs::write(&path, bytes).expect("the folder is there");
    path.to_str().expect("a text").to_owned()
}

/// What the program writes to a terminal of its own.
fn on_terminal(arguments: &[&str]) -> String {
    let candela = support::candela();
    let mut line = format!("'{}'", candela.get_program().display());
    for argument in arguments {
        line.push_str(&format!(" '{argument}'"));
    }
    let output = support::on_terminal(&line).output().expect("script starts");
    let text = String::from_utf8(output.stdout).expect("the program writes UTF-8");
    assert!(output.status.success(), "{line}: {text:?}");
    text
}

#[test]
fn names_do_not_drive_a_terminal_in_any_format() {
    let test = "names_do_not_drive_a_terminal_in_any_format";
    if !support::has_tool(test, "script") {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = profile_file(&folder);
    let commands: [&[&str]; 16] = [
        &["query", "top", &file],
        &["query", "top", &file, "--format", "csv"],
        &["query", "top", &file, "--format", "markdown"],
        &["query", "top", &file, "--format", "json"],
        &["query", "tree", &file],
        &["query", "callers", "HYPERLINK", &file],
        &["query", "labels", "service_name", &file],
        &["convert", &file, "--to", "folded"],
        &["convert", &file, "--to", "text"],
        &["convert", &file, "--to", "svg"],
        &["convert", &file, "--to", "speedscope"],
        &["convert", &file, "--to", "callgrind"],
        &["convert", &file, "--to", "perf-script"],
        &["convert", &file, "--to", "folded", "-o", "/dev/stdout"],
        &["convert", &file, "--to", "folded", "-o", "/dev/tty"],
        &["diff", &file, &file],
    ];
    for arguments in commands {
        let text = on_terminal(arguments);
        assert!(
            text.contains("main") || text.contains("HYPERLINK"),
            "{arguments:?}: {text:?}"
        );
        let drives = |character: char| match character {
            // The terminal adds the first.
            '\r' | '\n' | '\t' => false,
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
            other => other.is_control(),
        };
        assert!(!text.contains(drives), "{arguments:?}: {text:?}");
    }
}

#[test]
fn a_pipe_has_the_names_as_they_are_and_a_spreadsheet_no_formula() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = profile_file(&folder);
    let output = support::run(&["convert", &file, "--to", "folded"]);
    support::expect_code(&output, 0);
    let folded = support::stdout(&output);
    assert!(
        folded.contains(NAME) && folded.contains(FORMULA),
        "{folded:?}"
    );

    let output = support::run(&["query", "top", &file, "--format", "csv"]);
    support::expect_code(&output, 0);
    let csv = support::stdout(&output);
    assert!(csv.contains(NAME), "{csv:?}");
    let quoted = "\"'=HYPERLINK(\"\"http://127.0.0.1:1/\"\")\",";
    assert!(csv.lines().any(|line| line.starts_with(quoted)), "{csv:?}");
}
