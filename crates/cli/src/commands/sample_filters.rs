//! Which samples the agent keeps: keys of the configuration and flags of `record`.

use candela_agent::SampleFilters;
use candela_model::FilterKind;
use candela_model::Filters;
use candela_model::Selector;
use serde_json::Value as Node;

use crate::config::Settings;
use crate::errors::CliError;

const INCLUDE: &str = "agent.include";
const EXCLUDE: &str = "agent.exclude";
const HIDE: &str = "agent.hide";

/// The filters of the configuration.
///
/// # Errors
/// What is no selector or no filter, with its place.
pub(super) fn sample_filters(settings: &Settings) -> Result<SampleFilters, CliError> {
    let hide = texts(settings, HIDE)?;
    let hide: Vec<_> = hide
        .iter()
        .map(|text| (FilterKind::Hide, text.as_str()))
        .collect();
    let hide = Filters::parse(&hide);
    Ok(SampleFilters {
        processes: None,
        include: selectors(INCLUDE, &texts(settings, INCLUDE)?)?,
        exclude: selectors(EXCLUDE, &texts(settings, EXCLUDE)?)?,
        hide: hide.map_err(|error| CliError::usage(format!("{HIDE}: {error}")))?,
        min_samples: settings.integer("agent.min_samples").unsigned_abs(),
    })
}

/// Those of a recording.
///
/// # Errors
/// What is no selector.
pub(super) fn of_flags(include: &[String], exclude: &[String]) -> Result<SampleFilters, CliError> {
    Ok(SampleFilters {
        include: selectors("--include", include)?,
        exclude: selectors("--exclude", exclude)?,
        ..SampleFilters::default()
    })
}

fn selectors(place: &str, texts: &[String]) -> Result<Vec<Selector>, CliError> {
    let parsed = texts.iter().map(|text| {
        let selector: Result<Selector, _> = text.parse();
        selector.map_err(|error| CliError::usage(format!("{place}: {error}")))
    });
    parsed.collect()
}

/// The texts of a list, which may have commas in them.
fn texts(settings: &Settings, key: &str) -> Result<Vec<String>, CliError> {
    let Node::Array(items) = settings.structure(key) else {
        return Ok(Vec::new());
    };
    let texts = items.iter().enumerate().map(|(position, item)| match item {
        Node::String(text) => Ok(text.clone()),
        _ => Err(CliError::usage(format!(
            "{key}[{position}]: must be a text; put quotes around it, for YAML has braces of its own"
        ))),
    });
    texts.collect()
}

#[cfg(test)]
mod tests {
    use candela_model::Labels;

    use super::*;
    use crate::config::Inputs;
    use crate::config::load;

    fn filters(pairs: &[(&str, &str)]) -> Result<SampleFilters, CliError> {
        let pairs = pairs.iter();
        let environment = pairs.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let settings = load(&Inputs {
            environment: environment.collect(),
            ..Inputs::default()
        })?;
        sample_filters(&settings)
    }

    #[test]
    fn lists_of_selectors_are_read() {
        let filters = filters(&[
            (
                "CANDELA_AGENT__INCLUDE",
                r#"['{service_name=~"web-.*", namespace="shop"}', '{service_name="db"}']"#,
            ),
            ("CANDELA_AGENT__EXCLUDE", r#"['{container="sidecar"}']"#),
            ("CANDELA_AGENT__HIDE", r#"["^runtime[.]", "kind:kernel"]"#),
            ("CANDELA_AGENT__MIN_SAMPLES", "5"),
        ]);
        let filters = filters.expect("sound");
        assert_eq!((filters.include.len(), filters.exclude.len()), (2, 1));
        assert_eq!(filters.min_samples, 5);
        assert!(!filters.hide.keeps_stacks());
        assert!(filters.wants(&Labels::from_pairs([("service_name", "db")])));
        assert!(!filters.wants(&Labels::from_pairs([("service_name", "web-1")])));
    }

    #[test]
    fn without_keys_everything_is_kept() {
        let filters = filters(&[]).expect("sound");
        assert!(filters.wants(&Labels::default()) && filters.hide.keeps_stacks());
        assert_eq!(filters.min_samples, 1);
    }

    #[test]
    fn what_is_none_is_said_with_its_place() {
        for (key, value, part) in [
            (
                "CANDELA_AGENT__INCLUDE",
                "[{a: b}]",
                "agent.include[0]: must be a text",
            ),
            (
                "CANDELA_AGENT__EXCLUDE",
                "['{a=']",
                "agent.exclude: selector",
            ),
            ("CANDELA_AGENT__HIDE", "['((']", "agent.hide: hide=(("),
            (
                "CANDELA_AGENT__MIN_SAMPLES",
                "0",
                "CANDELA_AGENT__MIN_SAMPLES: 0 is not",
            ),
            ("CANDELA_AGENT__INCLUDE", "x", "must be a list"),
        ] {
            let error = filters(&[(key, value)]).expect_err(value).to_string();
            assert!(error.contains(part), "{value}: {error}");
        }
        let error = of_flags(&["{a~b}".to_owned()], &[]).expect_err("no selector");
        assert!(error.to_string().starts_with("--include: "), "{error}");
    }
}
