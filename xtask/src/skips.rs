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
    let lines = text.lines().map(str::trim);
    let expected: BTreeSet<&str> = lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    skipped
        .iter()
        .filter(|outcome| !expected.contains(outcome.test.as_str()))
        .map(|outcome| {
            let Outcome { test, reason } = outcome;
            format!("{test} is skipped and not in {EXPECTED}: {reason}")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_skip_is_told_and_an_expected_one_is_not() {
        let outcome = |test: &str| Outcome {
            test: test.to_owned(),
            reason: "skipped: no go".to_owned(),
        };
        let text = "# no older Go is packaged\ncandela-agent::it host::languages::old_go\n\n";
        let skipped = [
            outcome("candela-agent::it host::languages::old_go"),
            outcome("candela-agent::it host::languages::go"),
        ];
        let wanted = "candela-agent::it host::languages::go is skipped and not in \
            .config/expected-skips: skipped: no go";
        assert_eq!(missing_in(text, &skipped), [wanted]);
        assert_eq!(missing_in("", &[]), Vec::<String>::new());
    }
}
