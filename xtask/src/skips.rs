//! Skips that are expected. A test that does nothing where it cannot run is green, so one that begins to do nothing must not be.

use std::collections::BTreeSet;
use std::fs;

use crate::process::root;
use crate::report::Outcome;

const EXPECTED: &str = ".config/expected-skips";

/// The skips that the file does not have, each as a line for whoever reads the end of the log.
pub(crate) fn unexpected(skipped: &[Outcome]) -> Result<Vec<String>, String> {
    let path = root().join(EXPECTED);
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(missing_in(&text, skipped))
}

fn missing_in(text: &str, skipped: &[Outcome]) -> Vec<String> {
    let expected = expected_in(text);
    let is_expected = |outcome: &&Outcome| {
        let mut reasons = expected.iter().filter(|(test, _)| *test == outcome.test);
        reasons.any(|(_, reason)| outcome.reason.contains(reason))
    };
    let unexpected = skipped.iter().filter(|outcome| !is_expected(outcome));
    let line = |Outcome { test, reason }: &Outcome| {
        format!("{test} is skipped and not in {EXPECTED}: {reason}")
    };
    unexpected.map(line).collect()
}

/// Each test with what its reason must have in it, which stands in brackets above.
fn expected_in(text: &str) -> BTreeSet<(&str, &str)> {
    let mut reason = "";
    let mut expected = BTreeSet::new();
    for line in text.lines().map(str::trim) {
        let header = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        if let Some(header) = header {
            reason = header;
        } else if !line.is_empty() && !line.starts_with('#') {
            expected.insert((line, reason));
        }
    }
    expected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_skip_or_another_reason_is_told_and_an_expected_one_is_not() {
        let outcome = |test: &str, reason: &str| Outcome {
            test: test.to_owned(),
            reason: reason.to_owned(),
        };
        let text =
            "# A corpus lies beside some checkouts only.\n[no corpus]\na::it read\na::it write\n";
        let skipped = [
            outcome("a::it read", "skipped: no corpus at /x"),
            outcome("a::it write", "skipped: no go"),
            outcome("a::it new", "skipped: no corpus at /x"),
        ];
        let wanted = [
            "a::it write is skipped and not in .config/expected-skips: skipped: no go",
            "a::it new is skipped and not in .config/expected-skips: skipped: no corpus at /x",
        ];
        assert_eq!(missing_in(text, &skipped), wanted);
        assert_eq!(missing_in("", &[]), Vec::<String>::new());
    }
}
