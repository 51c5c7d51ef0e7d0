//! Stacks that come again are recognised by their whole text if that lies in memory. What is read must
//! not depend on where the buffer of the input ends.

use std::io::BufReader;
use std::io::Cursor;

use crate::common::found_files;
use candela_formats::Limits;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_formats::read_perf_script;
use candela_formats::write_perf_script;
use candela_model::Profile;

/// As many times as a text is read in a row.
const TIMES: usize = 3;

/// Fails if a reader that never sees a whole stack ahead understands the text in another way.
fn assert_same_with_any_buffer(name: &str, text: &[u8], limits: &Limits) {
    let options = ReadOptions {
        limits: *limits,
        now_ns: 1_700_000_000_000_000_000,
        ..ReadOptions::default()
    };
    let repeated = text.repeat(TIMES);
    let whole = read_perf_script(Cursor::new(&repeated), &options);
    let in_parts = read_perf_script(BufReader::with_capacity(7, &repeated[..]), &options);
    match (whole, in_parts) {
        (Ok((profile, report)), Ok((expected, expected_report))) => {
            assert_same(name, (&profile, &report), (&expected, &expected_report));
        }
        (whole, in_parts) => {
            let error = |read: Result<_, candela_formats::ReadError>| read.unwrap_err().to_string();
            assert_eq!(error(whole), error(in_parts), "{name}");
        }
    }
}

fn assert_same(name: &str, found: (&Profile, &Report), expected: (&Profile, &Report)) {
    assert_eq!(found.0.series, expected.0.series, "{name}");
    assert_eq!(found.1, expected.1, "{name}");
    let text = |profile| {
        let mut text = Vec::new();
        write_perf_script(profile, &mut text).unwrap();
        text
    };
    assert!(text(found.0) == text(expected.0), "{name}: texts differ");
}

#[test]
fn real_files_do_not_depend_on_the_buffer() {
    for file in found_files("perf-script") {
        assert_same_with_any_buffer(&file.name, &file.bytes, &Limits::default());
    }
}

#[test]
fn stacks_in_disorder_do_not_depend_on_the_buffer() {
    const HEADER: &str = "a 1 2.0: 3 cycles: \n";
    let long = "f".repeat(40);
    let stacks = [
        // An empty line too many, and one too few.
        "\n\t1 f (x)\n\n".to_owned(),
        "\t1 f (x)\n".to_owned(),
        // Carriage returns, and spaces on an empty line.
        "\t1 f (x)\r\n\r\n".to_owned(),
        "\t1 f (x)\n \n\t2 g (x)\n\n".to_owned(),
        // A line that is no frame, a comment, a line that is cut.
        "\t1 f (x)\nwhat is this\n\n".to_owned(),
        "\t1 f (x)\n# hostname : h\n\n".to_owned(),
        format!("\t1 {long} (x)\n\n"),
        // Inlined frames, source lines, too many frames.
        "\t1 g (inlined)\n\t1 f (x)\n\n".to_owned(),
        "\t1 f (x)\n  a.c:3\n\t2 g (x)\n\n".to_owned(),
        "\t1 f (x)\n\t2 g (x)\n\t3 h (x)\n\t4 i (x)\n\n".to_owned(),
        // No indentation, of all frames or of some.
        "1 f (x)\n2 g (x)\n\n".to_owned(),
        "1 f (x)\n\t2 g (x)\nfeed me\n\n".to_owned(),
        // No end at all.
        "\t1 f (x)".to_owned(),
    ];
    let limits = Limits {
        max_string_bytes: 30,
        max_stack_depth: 3,
        ..Limits::default()
    };
    let mut all = String::new();
    for stack in stacks {
        let text = format!("{HEADER}{stack}");
        assert_same_with_any_buffer(&stack, text.as_bytes(), &limits);
        all.push_str(&text);
    }
    for header in ["a 1\n", "cycles: \n", "a 2.0: \n"] {
        let bare = all.replace(HEADER, header);
        assert_same_with_any_buffer(header, bare.as_bytes(), &limits);
        all.push_str(&bare);
    }
    assert_same_with_any_buffer("all", all.as_bytes(), &limits);
    let broken = [HEADER.as_bytes(), b"\t1 f\xff (x)\n\n"].concat();
    assert_same_with_any_buffer("no UTF-8", &broken, &limits);
}
