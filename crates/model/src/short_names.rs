//! Short names of profile types, and the choice among several that match.

use crate::profile_type::ProfileType;

/// Short names of the contract with the identifier prefixes that each stands for.
pub const SHORT_NAMES: [(&str, &[&str]); 13] = [
    ("cpu", &["process_cpu:"]),
    ("off_cpu", &["off_cpu:"]),
    ("wall", &["wall:"]),
    ("lock", &["mutex:"]),
    ("alloc", &["memory:alloc_"]),
    ("inuse", &["memory:inuse_"]),
    ("fault", &["page_faults:"]),
    ("growth", &["memory_growth:"]),
    ("io", &["block_io:"]),
    ("runq", &["runq:"]),
    ("goroutine", &["goroutine:", "goroutines:"]),
    ("block", &["block:"]),
    ("exception", &["exception:", "exceptions:"]),
];

/// Units in the order in which they win when several types match.
const UNIT_ORDER: [&str; 3] = ["nanoseconds", "bytes", "count"];

/// A `type` parameter that names no single profile type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TypeResolutionError {
    /// Nothing that is stored matches.
    #[error("no profile type matches {pattern:?}")]
    NoMatch {
        /// The parameter.
        pattern: String,
    },
    /// More than one matches and no unit decides.
    #[error("profile type {pattern:?} is ambiguous: {}", candidates.join(", "))]
    Ambiguous {
        /// The parameter.
        pattern: String,
        /// The identifiers that match.
        candidates: Vec<String>,
    },
}

/// The one of `available` that `pattern` (an identifier, a short name or a prefix) means:
/// nanoseconds win over bytes, bytes over counts.
///
/// # Errors
/// When nothing matches, or several do and the unit does not decide.
pub fn resolve_profile_type<'a>(
    pattern: &str,
    available: impl IntoIterator<Item = &'a ProfileType>,
) -> Result<&'a ProfileType, TypeResolutionError> {
    let mut matching: Vec<&ProfileType> = available
        .into_iter()
        .filter(|profile_type| matches(pattern, profile_type))
        .collect();
    matching.sort();
    matching.dedup();
    for unit in UNIT_ORDER {
        let of_unit: Vec<&ProfileType> = matching
            .iter()
            .copied()
            .filter(|profile_type| profile_type.sample_unit == unit)
            .collect();
        if let [only] = of_unit[..] {
            return Ok(only);
        }
        if !of_unit.is_empty() {
            return Err(ambiguous(pattern, &of_unit));
        }
    }
    match matching[..] {
        [] => Err(TypeResolutionError::NoMatch {
            pattern: pattern.to_owned(),
        }),
        [only] => Ok(only),
        _ => Err(ambiguous(pattern, &matching)),
    }
}

/// The short name of a type, if it has one.
#[must_use]
pub fn short_name(profile_type: &ProfileType) -> Option<&'static str> {
    let id = profile_type.to_string();
    SHORT_NAMES
        .iter()
        .find(|(_, prefixes)| prefixes.iter().any(|prefix| id.starts_with(prefix)))
        .map(|&(short, _)| short)
}

fn matches(pattern: &str, profile_type: &ProfileType) -> bool {
    let id = profile_type.to_string();
    if id == pattern {
        return true;
    }
    let short = SHORT_NAMES.iter().find(|&&(short, _)| short == pattern);
    if let Some((_, prefixes)) = short {
        return prefixes.iter().any(|prefix| id.starts_with(prefix));
    }
    // A prefix ends between two parts: `mem` must not silently mean `memory`.
    id.strip_prefix(pattern)
        .is_some_and(|rest| pattern.ends_with(':') || rest.starts_with(':'))
}

fn ambiguous(pattern: &str, candidates: &[&ProfileType]) -> TypeResolutionError {
    TypeResolutionError::Ambiguous {
        pattern: pattern.to_owned(),
        candidates: candidates.iter().map(ToString::to_string).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types(ids: &[&str]) -> Vec<ProfileType> {
        ids.iter().map(|id| id.parse().expect("valid id")).collect()
    }

    #[test]
    fn nanoseconds_win_over_counts() {
        let available = types(&[
            "process_cpu:samples:count:cpu:nanoseconds",
            "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
        ]);
        let chosen = resolve_profile_type("cpu", &available).expect("one of them");
        assert_eq!(chosen.sample_type, "cpu");
        assert_eq!(short_name(chosen), Some("cpu"));
    }

    #[test]
    fn prefixes_end_at_a_part() {
        let available = types(&["memory:alloc_space:bytes:space:bytes"]);
        assert!(resolve_profile_type("memory:alloc_space", &available).is_ok());
        assert!(resolve_profile_type("alloc", &available).is_ok());
        let error =
            resolve_profile_type("memory:alloc", &available).expect_err("no part ends here");
        assert_eq!(
            error.to_string(),
            r#"no profile type matches "memory:alloc""#
        );
    }

    #[test]
    fn what_stays_ambiguous_is_listed() {
        let available = types(&["x:a:bytes:p:q", "x:b:bytes:p:q"]);
        let error = resolve_profile_type("x", &available).expect_err("two of one unit");
        assert_eq!(
            error.to_string(),
            r#"profile type "x" is ambiguous: x:a:bytes:p:q, x:b:bytes:p:q"#
        );
    }
}
