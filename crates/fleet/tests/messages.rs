//! Every rule of the document with its message: `tests/messages.txt` holds cases of a name, a document,
//! and what is said of it.
//!
//! `UPDATE_GOLDEN=1 cargo test -p candela-fleet messages` writes the answers anew; then read the
//! diff.

use std::fmt::Write as _;
use std::fs;

use candela_fleet::FleetDocument;

const CASE: &str = "=== ";
const ANSWER: &str = "---\n";

fn answer(document: &str) -> String {
    match FleetDocument::read(document) {
        Ok(accepted) => {
            let mut answer = "accepted\n".to_owned();
            for note in &accepted.notes {
                writeln!(answer, "{:?}: {note}", note.kind).expect("a text takes all");
            }
            answer
        }
        Err(problems) => format!("{problems}\n"),
    }
}

#[test]
fn every_rule_says_cause_and_cure() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/messages.txt");
    let written = fs::read_to_string(path).unwrap();
    let mut expected = String::new();
    for case in written.split(CASE).skip(1) {
        let (name, rest) = case.split_once('\n').unwrap();
        let document = rest
            .split_once(ANSWER)
            .map_or(rest, |(document, _)| document);
        let answer = answer(document);
        writeln!(expected, "{CASE}{name}\n{document}{ANSWER}{answer}").unwrap();
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(path, &expected).unwrap();
        return;
    }
    assert_eq!(written, expected, "UPDATE_GOLDEN=1 writes it anew");
}

#[test]
fn messages_are_one_line_without_a_stop() {
    let written = include_str!("messages.txt");
    for case in written.split(CASE).skip(1) {
        let (_, rest) = case.split_once('\n').unwrap();
        let (document, _) = rest.split_once(ANSWER).unwrap();
        let Err(problems) = FleetDocument::read(document) else {
            continue;
        };
        for problem in problems.0 {
            let message = problem.message;
            assert!(
                !message.contains('\n') && !message.ends_with('.'),
                "{message}"
            );
        }
    }
}
