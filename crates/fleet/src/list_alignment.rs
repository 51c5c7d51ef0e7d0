//! Which element of a list became which: equal ones first, then those that are alike.

use crate::json::Json;

/// Comparisons of elements that a list may cost; beyond them places decide.
const MOST_COMPARISONS: usize = 1 << 20;

/// What became of an element. In the order of both lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aligned {
    /// Only in the old list, at this index.
    Removed(usize),
    /// Only in the new list, at this index.
    Added(usize),
    /// In both, perhaps changed.
    Paired { old_index: usize, new_index: usize },
}

/// The longest run of equal elements stays; between them, alike elements are taken for one that changed.
pub(crate) fn aligned(old: &[Json], new: &[Json]) -> Vec<Aligned> {
    let mut steps = Vec::with_capacity(old.len().max(new.len()));
    let (mut old_start, mut new_start) = (0, 0);
    for (old_index, new_index) in equal_pairs(old, new) {
        fill_gap(
            old,
            new,
            (old_start, old_index),
            (new_start, new_index),
            &mut steps,
        );
        steps.push(Aligned::Paired {
            old_index,
            new_index,
        });
        (old_start, new_start) = (old_index + 1, new_index + 1);
    }
    fill_gap(
        old,
        new,
        (old_start, old.len()),
        (new_start, new.len()),
        &mut steps,
    );
    steps
}

fn fill_gap(
    old: &[Json],
    new: &[Json],
    (mut old_index, old_end): (usize, usize),
    (mut new_index, new_end): (usize, usize),
    steps: &mut Vec<Aligned>,
) {
    while old_index < old_end {
        // Only ahead within the gap: pairs never cross.
        let alike = (new_index..new_end).find(|index| are_alike(&old[old_index], &new[*index]));
        let Some(alike) = alike else {
            steps.push(Aligned::Removed(old_index));
            old_index += 1;
            continue;
        };
        steps.extend((new_index..alike).map(Aligned::Added));
        steps.push(Aligned::Paired {
            old_index,
            new_index: alike,
        });
        old_index += 1;
        new_index = alike + 1;
    }
    steps.extend((new_index..new_end).map(Aligned::Added));
}

/// Objects are alike by their `name`, as those of others have, and by the body that they hold.
fn are_alike(old: &Json, new: &Json) -> bool {
    let (Json::Object(old), Json::Object(new)) = (old, new) else {
        return !matches!((old, new), (Json::Object(_), _) | (_, Json::Object(_)));
    };
    let same = |key: &str| old.contains_key(key) == new.contains_key(key);
    old.get("name") == new.get("name") && same("perf_collector") && same("perfetto_daemon")
}

/// The longest common subsequence.
fn equal_pairs(old: &[Json], new: &[Json]) -> Vec<(usize, usize)> {
    let prefix = old
        .iter()
        .zip(new)
        .take_while(|(old, new)| old == new)
        .count();
    let (old_rest, new_rest) = (&old[prefix..], &new[prefix..]);
    let from_behind = old_rest.iter().rev().zip(new_rest.iter().rev());
    let suffix = from_behind.take_while(|(old, new)| old == new).count();
    let old_middle = &old_rest[..old_rest.len() - suffix];
    let new_middle = &new_rest[..new_rest.len() - suffix];
    let mut pairs: Vec<(usize, usize)> = (0..prefix).map(|index| (index, index)).collect();
    if old_middle.len().saturating_mul(new_middle.len()) <= MOST_COMPARISONS {
        let middle = longest_common(old_middle, new_middle);
        pairs.extend(
            middle
                .into_iter()
                .map(|(old, new)| (old + prefix, new + prefix)),
        );
    }
    let ends = (old.len() - suffix..old.len()).zip(new.len() - suffix..new.len());
    pairs.extend(ends);
    pairs
}

fn longest_common(old: &[Json], new: &[Json]) -> Vec<(usize, usize)> {
    let width = new.len() + 1;
    // The length from here to both ends.
    let mut lengths = vec![0_u32; (old.len() + 1) * width];
    for old_index in (0..old.len()).rev() {
        for new_index in (0..new.len()).rev() {
            let place = old_index * width + new_index;
            lengths[place] = if old[old_index] == new[new_index] {
                lengths[place + width + 1] + 1
            } else {
                lengths[place + width].max(lengths[place + 1])
            };
        }
    }
    let mut pairs = Vec::new();
    let (mut old_index, mut new_index) = (0, 0);
    while old_index < old.len() && new_index < new.len() {
        let place = old_index * width + new_index;
        if old[old_index] == new[new_index] {
            pairs.push((old_index, new_index));
            old_index += 1;
            new_index += 1;
        } else if lengths[place + width] >= lengths[place + 1] {
            old_index += 1;
        } else {
            new_index += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<Json> {
        serde_json::from_str(text).unwrap()
    }

    fn paired(old_index: usize, new_index: usize) -> Aligned {
        Aligned::Paired {
            old_index,
            new_index,
        }
    }

    #[test]
    fn what_is_equal_stays_together() {
        let steps = aligned(&list("[1,2,3,4]"), &list("[1,3,5,4]"));
        // 2 is gone, 5 is new: both lie in gaps of one side only.
        let expected = [
            paired(0, 0),
            Aligned::Removed(1),
            paired(2, 1),
            Aligned::Added(2),
            paired(3, 3),
        ];
        assert_eq!(steps, expected);
    }

    #[test]
    fn alike_elements_are_one_that_changed() {
        let old = list(r#"[{"name":"a","x":1},{"name":"b"}]"#);
        let new = list(r#"[{"name":"c"},{"name":"a","x":2},{"name":"b"}]"#);
        let expected = [Aligned::Added(0), paired(0, 1), paired(1, 2)];
        assert_eq!(aligned(&old, &new), expected);
        let kinds = aligned(
            &list(r#"[{"perf_collector":{}}]"#),
            &list(r#"[{"perfetto_daemon":{}}]"#),
        );
        assert_eq!(kinds, [Aligned::Removed(0), Aligned::Added(0)]);
    }

    #[test]
    fn long_lists_are_compared_by_place() {
        let numbers = |start: u64| (start..start + 2000).map(|number| Json::Number(number.into()));
        let old: Vec<Json> = numbers(0).collect();
        let new: Vec<Json> = numbers(5000).collect();
        let steps = aligned(&old, &new);
        assert_eq!(steps.len(), 2000);
        assert_eq!(steps[7], paired(7, 7));
    }
}
