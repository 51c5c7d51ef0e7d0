//! What a run of cargo-nextest says of its tests, by the report in JUnit's form that it leaves: who failed and why, who
//! passed only when it was tried again, what was skipped, and what was measured.

use std::fs;
use std::path::Path;

use candela_testing::FIGURE;
use roxmltree::Document;
use roxmltree::Node;

/// How tests begin the line with the reason for a skip.
const SKIPS: [&str; 2] = ["skipped", "SKIP "];
/// So much of a reason is told.
const REASON_LINES: usize = 4;

/// What a report has besides tests that just passed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) failed: Vec<Outcome>,
    /// Passed when tried again, with the reason of the first failure.
    pub(crate) flaky: Vec<Outcome>,
    pub(crate) skipped: Vec<Outcome>,
    /// What tests have measured, each figure with its bound.
    pub(crate) figures: Vec<Outcome>,
    pub(crate) tests: usize,
}

/// A test, and why it did not just pass or what it has measured.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Outcome {
    /// `PACKAGE::PROGRAM MODULE::FUNCTION`, as cargo-nextest prints it.
    pub(crate) test: String,
    pub(crate) reason: String,
}

impl Report {
    /// Reads what the last run has left.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let text =
            fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Self::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn parse(text: &str) -> Result<Self, roxmltree::Error> {
        let document = Document::parse(text)?;
        let mut report = Self::default();
        for case in document
            .descendants()
            .filter(|node| node.has_tag_name("testcase"))
        {
            report.tests += 1;
            report.take(case);
        }
        report.skipped.sort();
        Ok(report)
    }

    fn take(&mut self, case: Node<'_, '_>) {
        let attribute = |name| case.attribute(name).unwrap_or_default();
        let test = format!("{} {}", attribute("classname"), attribute("name"));
        let outcome = |reason: String| Outcome {
            test: test.clone(),
            reason,
        };
        let child = |names: &[&str]| {
            let mut children = case.children();
            children.find(|node| names.contains(&node.tag_name().name()))
        };
        let figures = lines(case).filter_map(|line| line.strip_prefix(FIGURE));
        let figures = figures.map(|figure| outcome(figure.to_owned()));
        self.figures.extend(figures);
        if let Some(failure) = child(&["failure", "error"]) {
            self.failed.push(outcome(reason(failure)));
        } else if let Some(failure) = child(&["flakyFailure", "flakyError"]) {
            self.flaky.push(outcome(reason(failure)));
        } else if let Some(line) = skip(case) {
            self.skipped.push(outcome(line));
        }
    }
}

/// The first lines of a panic, or what the report has in its place.
fn reason(failure: Node<'_, '_>) -> String {
    let text = failure.text().unwrap_or_default();
    let panic = text.find("panicked at").map(|start| &text[start..]);
    let message = failure.attribute("message").unwrap_or_default();
    let told = panic.unwrap_or(if message.is_empty() { text } else { message });
    let lines = told.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.take(REASON_LINES).collect::<Vec<_>>().join(" | ")
}

/// The line of a test that says why it did nothing.
fn skip(case: Node<'_, '_>) -> Option<String> {
    let line = lines(case).find(|line| SKIPS.iter().any(|start| line.starts_with(start)));
    line.map(str::to_owned)
}

/// What the test printed.
fn lines<'a>(case: Node<'a, '_>) -> impl Iterator<Item = &'a str> {
    let is_output =
        |node: &Node<'_, '_>| ["system-out", "system-err"].contains(&node.tag_name().name());
    let outputs = case.children().filter(is_output);
    let lines = outputs.flat_map(|output| output.text().unwrap_or_default().lines());
    // With one processor the harness begins the line with the test's name.
    lines.map(|line| line.rsplit(" ... ").next().unwrap_or(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As cargo-nextest 0.9.148 writes it, shortened.
    const WRITTEN: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="gate" tests="4" failures="1">
  <testsuite name="candela-store::it" tests="4">
    <testcase name="life::a" classname="candela-store::it" time="0.1"/>
    <testcase name="life::b" classname="candela-store::it" time="0.1">
      <failure message="test failed" type="test failure">
thread 'life::b' (7) panicked at crates/store/tests/life.rs:5:9:
assertion `left == right` failed
  left: 1
 right: 2
more</failure>
    </testcase>
    <testcase name="life::c" classname="candela-store::it" time="0.1">
      <flakyFailure message="timed out" type="test timeout"/>
      <system-out>skipped: not told, as it was tried again</system-out>
    </testcase>
    <testcase name="life::d" classname="candela-store::it" time="0.1">
      <system-out>test life::d ... skipped: needs root</system-out>
      <system-err>no line of this kind</system-err>
    </testcase>
    <testcase name="life::e" classname="candela-store::it" time="0.1">
      <system-out>test life::e ... measured: seconds: 2.5 (at most 15)
measured: share: 0.99 (at least 0.98)
ok</system-out>
    </testcase>
  </testsuite>
</testsuites>"#;

    #[test]
    fn failures_retries_and_skips_have_their_reasons_and_figures_their_bounds() {
        let outcome = |name: &str, reason: &str| Outcome {
            test: format!("candela-store::it life::{name}"),
            reason: reason.to_owned(),
        };
        let panic = "panicked at crates/store/tests/life.rs:5:9: | assertion `left == right` failed | left: 1 | \
            right: 2";
        let wanted = Report {
            failed: vec![outcome("b", panic)],
            flaky: vec![outcome("c", "timed out")],
            skipped: vec![outcome("d", "skipped: needs root")],
            figures: vec![
                outcome("e", "seconds: 2.5 (at most 15)"),
                outcome("e", "share: 0.99 (at least 0.98)"),
            ],
            tests: 5,
        };
        assert_eq!(Report::parse(WRITTEN), Ok(wanted));
    }
}
