//! What to say when nothing matches.

use std::collections::BTreeSet;

use candela_model::LabelSetId;
use candela_model::Labels;
use candela_model::MatchOperator;

use crate::budget::Meter;
use crate::error::QueryError;
use crate::matching::value_text;
use crate::plan::available_types;
use crate::plan::resolve_type;
use crate::plan::type_names;
use crate::query::Query;
use crate::sources::Source;

/// Values that a hint lists at most.
const MAX_VALUES: usize = 5;

/// One line on why nothing matches and what is near.
pub(crate) fn hint(query: &Query, sources: &[Source], meter: &Meter) -> Result<String, QueryError> {
    let mut series: BTreeSet<&Labels> = BTreeSet::new();
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for source in sources {
        meter.check_time()?;
        let rows = source.profiles.rows.iter();
        for row in rows.filter(|row| query.range.contains(row.start_ns)) {
            series.insert(&source.profiles.series[row.series as usize]);
        }
        names.extend(source.sample_labels.iter().map(String::as_str));
    }
    if series.is_empty() {
        return Ok("there are no profiles in this time range".to_owned());
    }
    names.extend(
        series
            .iter()
            .flat_map(|labels| labels.iter().map(|(name, _)| name)),
    );
    for matcher in query.selector.matchers() {
        if !matches!(
            matcher.operator(),
            MatchOperator::Equal | MatchOperator::Regex
        ) {
            continue;
        }
        if !names.contains(matcher.name()) {
            let near = nearest(matcher.name(), &names);
            return Ok(format!(
                "nothing has a label {}; near: {near}",
                matcher.name()
            ));
        }
        let of_samples = sample_values(sources, matcher.name());
        let of_series = series
            .iter()
            .filter_map(|labels| labels.get(matcher.name()));
        let mut values: BTreeSet<&str> = of_series.collect();
        values.extend(of_samples.iter().map(String::as_str));
        if !values.iter().any(|value| matcher.matches(value)) {
            let near = nearest(matcher.value(), &values);
            return Ok(format!(
                "no {} is {:?}; near: {near}",
                matcher.name(),
                matcher.value()
            ));
        }
    }
    let matching = available_types(sources, query, query.range, meter)?;
    let is_here = matches!(resolve_type(&query.profile_type, &matching), Ok(Some(_)));
    if matching.types.is_empty() || is_here {
        let reason = if !query.profiles.is_empty() {
            "there are profiles, but none has this id"
        } else if !query.links.is_empty() {
            "there are samples, but none is of these traces and spans"
        } else if query.filters.keeps_samples() {
            "each matcher matches something, but nothing matches all"
        } else {
            "there are samples, but none has labels that pass tagfocus and tagignore"
        };
        return Ok(reason.to_owned());
    }
    Ok(format!(
        "no profiles of type {} here; there are {}",
        query.profile_type,
        type_names(&matching.types)
    ))
}

/// The values of a sample label. A block whose labels cannot be read has been left out before.
fn sample_values(sources: &[Source], name: &str) -> BTreeSet<String> {
    let mut values = BTreeSet::new();
    for source in sources {
        if !source.sample_labels.iter().any(|known| known == name) {
            continue;
        }
        let read = source.with_sample_labels(|labels| {
            let sets = (0..labels.sets.len()).map(LabelSetId::from_index);
            let all = sets.flat_map(|set| labels.sets.get(set));
            let named = all.filter(|label| labels.strings.get(label.key) == name);
            values.extend(named.map(|label| value_text(label, labels.strings)));
        });
        if read.is_err() {
            continue;
        }
    }
    values
}

/// The values that are most like a text, most alike first.
fn nearest(wanted: &str, values: &BTreeSet<&str>) -> String {
    let wanted = wanted.to_lowercase();
    let mut ranked: Vec<(usize, &str)> = values
        .iter()
        .map(|&value| (distance(&wanted, &value.to_lowercase()), value))
        .collect();
    ranked.sort_unstable();
    let near: Vec<&str> = ranked
        .into_iter()
        .take(MAX_VALUES)
        .map(|(_, value)| value)
        .collect();
    near.join(", ")
}

/// Edit distance; 0 when one contains the other, for people leave out prefixes and suffixes.
fn distance(left: &str, right: &str) -> usize {
    if !left.is_empty() && (right.contains(left) || left.contains(right)) {
        return 0;
    }
    let right: Vec<char> = right.chars().take(64).collect();
    let mut costs: Vec<usize> = (0..=right.len()).collect();
    for (row, from) in left.chars().take(64).enumerate() {
        let mut diagonal = costs[0];
        costs[0] = row + 1;
        for (column, &to) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(from != to);
            diagonal = costs[column + 1];
            let shifted = costs[column].min(diagonal) + 1;
            costs[column + 1] = replaced.min(shifted);
        }
    }
    costs[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_likeliest_comes_first() {
        let values = BTreeSet::from(["billing", "checkout", "checkout-canary", "search"]);
        assert!(nearest("chekout", &values).starts_with("checkout, "));
        assert!(nearest("bill", &values).starts_with("billing, "));
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
