//! What to say when nothing matches.

use std::collections::BTreeSet;

use candela_model::MatchOperator;
use candela_model::Selector;

use crate::plan::available_types;
use crate::plan::type_names;
use crate::query::Query;
use crate::sources::Source;

/// Values that a hint lists at most.
const MAX_VALUES: usize = 5;

/// One line on why nothing matches and what is near.
pub(crate) fn hint(query: &Query, sources: &[Source]) -> String {
    let mut labels = BTreeSet::new();
    for source in sources {
        let rows = source.profiles.rows.iter();
        for row in rows.filter(|row| query.range.contains(row.start_ns)) {
            labels.insert(&source.profiles.series[row.series as usize]);
        }
    }
    if labels.is_empty() {
        return "there are no profiles in this time range".to_owned();
    }
    for matcher in query.selector.matchers() {
        if !matches!(
            matcher.operator(),
            MatchOperator::Equal | MatchOperator::Regex
        ) {
            continue;
        }
        let values: BTreeSet<&str> = labels
            .iter()
            .filter_map(|labels| labels.get(matcher.name()))
            .collect();
        if values.is_empty() {
            let names: BTreeSet<&str> = labels
                .iter()
                .flat_map(|labels| labels.iter().map(|(name, _)| name))
                .collect();
            let near = nearest(matcher.name(), &names);
            return format!("no series has a label {}; near: {near}", matcher.name());
        }
        if !values.iter().any(|value| matcher.matches(value)) {
            let near = nearest(matcher.value(), &values);
            return format!(
                "no {} is {:?}; near: {near}",
                matcher.name(),
                matcher.value()
            );
        }
    }
    let matching = available_types(sources, &query.selector, query.range);
    if matching.is_empty() {
        return "each matcher matches some series, but none matches all".to_owned();
    }
    let all = available_types(sources, &Selector::default(), query.range);
    let types = if matching.is_empty() { all } else { matching };
    format!(
        "no profiles of type {} here; there are {}",
        query.profile_type,
        type_names(&types)
    )
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
