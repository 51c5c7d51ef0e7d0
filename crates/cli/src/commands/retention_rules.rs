//! `store.retention_rules` as the store takes them.

use std::collections::BTreeMap;
use std::time::Duration;

use candela_model::Selector;
use candela_store::RetentionRule;

use crate::config::Settings;
use crate::config::Value;
use crate::config::keys::Kind;
use crate::errors::CliError;

/// Of a rule that nobody has said anything about yet.
#[derive(Default)]
struct Parts {
    keep: Option<Duration>,
    selector: Selector,
    profile_type: Option<String>,
    tenant: Option<String>,
}

/// The rules, by their names.
///
/// # Errors
/// When an entry is none of a rule's, or a rule does not say how long.
pub(crate) fn retention_rules(settings: &Settings) -> Result<Vec<RetentionRule>, CliError> {
    let mut rules: BTreeMap<String, Parts> = BTreeMap::new();
    for (path, text) in settings.map("store.retention_rules") {
        let wrong =
            |reason: String| CliError::usage(format!("store.retention_rules: {path}: {reason}"));
        let Some((name, part)) = path.rsplit_once('.') else {
            return Err(wrong("must be a part below the name of a rule".to_owned()));
        };
        let parts = rules.entry(name.to_owned()).or_default();
        match part {
            "keep" => {
                let kind = Kind::Duration(Duration::from_secs(3600), Duration::MAX);
                let value = Value::parse(kind, &text).map_err(wrong)?;
                parts.keep = match value {
                    Value::Duration(keep) => Some(keep),
                    _ => None,
                };
            }
            "selector" => {
                let selector = text.parse::<Selector>();
                parts.selector = selector.map_err(|error| wrong(error.to_string()))?;
            }
            "profile_type" => parts.profile_type = Some(text),
            "tenant" => parts.tenant = Some(text),
            other => {
                return Err(wrong(format!(
                    "{other} is no part of a rule; there are keep, selector, profile_type, tenant"
                )));
            }
        }
    }
    let rules = rules.into_iter().map(|(name, parts)| {
        let keep = parts.keep.ok_or_else(|| {
            CliError::usage(format!(
                "store.retention_rules: {name} does not say how long: add keep"
            ))
        })?;
        Ok(RetentionRule {
            tenant: parts.tenant,
            selector: parts.selector,
            profile_type: parts.profile_type,
            keep,
        })
    });
    rules.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Inputs;
    use crate::config::load;

    fn rules(text: &str) -> Result<Vec<RetentionRule>, CliError> {
        let name = "CANDELA_STORE__RETENTION_RULES".to_owned();
        let settings = load(&Inputs {
            environment: [(name, text.to_owned())].into_iter().collect(),
            ..Inputs::default()
        });
        retention_rules(&settings.expect("valid"))
    }

    #[test]
    fn rules_are_in_the_order_of_their_names() {
        let rules = rules(r#"b.keep=3d,a.keep=1h,a.selector={service_name="x"},a.tenant=t"#);
        let rules = rules.expect("valid");
        let keeps: Vec<u64> = rules.iter().map(|rule| rule.keep.as_secs()).collect();
        assert_eq!(keeps, [3600, 3 * 24 * 3600]);
        assert_eq!(rules[0].tenant.as_deref(), Some("t"));
        assert!(rules[0].selector.matches(|_| "x"));
        assert!(!rules[0].selector.matches(|_| "y"));
    }

    #[test]
    fn what_is_no_rule_is_said() {
        let cases = [
            ("a.selector={}", "a does not say how long"),
            ("a.keep=soon", "a.keep: \"soon\""),
            ("a.keep=1s", "a.keep:"),
            ("a.kept=1d", "kept is no part of a rule"),
            ("keep=1d", "must be a part below the name of a rule"),
            ("a.keep=1d,a.selector={x}", "a.selector:"),
        ];
        for (text, part) in cases {
            let error = rules(text).expect_err(text).to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
