//! Names of fields: the two spellings of one, and the one that was meant.

/// The name that protobuf's JSON gives a field: `perf_collector` is `perfCollector`.
///
/// An underscore goes, and the letter after it is a capital.
pub(crate) fn lower_camel(snake: &str) -> String {
    let mut camel = String::with_capacity(snake.len());
    let mut is_word_start = false;
    for character in snake.chars() {
        if character == '_' {
            is_word_start = true;
        } else if is_word_start {
            camel.push(character.to_ascii_uppercase());
            is_word_start = false;
        } else {
            camel.push(character);
        }
    }
    camel
}

/// The known name that a key spells, in either way.
pub(crate) fn known_name(key: &str, names: &[&'static str]) -> Option<&'static str> {
    let is_spelled = |name: &&&str| **name == key || lower_camel(name) == key;
    names.iter().find(is_spelled).copied()
}

/// ` (did you mean NAME?)`, or nothing when no name is near.
pub(crate) fn suggestion(key: &str, names: &[&'static str]) -> String {
    // What is compared is typed by hand; a long key is no typing error of a short one.
    if key.len() > 64 {
        return String::new();
    }
    let distance_of =
        |name: &str| edit_distance(key, name).min(edit_distance(key, &lower_camel(name)));
    let nearest = names.iter().map(|name| (distance_of(name), name)).min();
    match nearest {
        Some((distance, name)) if distance <= 1 + key.len() / 5 => {
            format!(" (did you mean {name}?)")
        }
        _ => String::new(),
    }
}

/// Letters to add, remove or replace until one is the other (Levenshtein).
fn edit_distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut previous: Vec<usize> = (0..=right.len()).collect();
    for (row, left_character) in left.chars().enumerate() {
        let mut current = vec![row + 1];
        for (column, right_character) in right.iter().enumerate() {
            let replaced = previous[column] + usize::from(left_character != *right_character);
            let added = current[column] + 1;
            let removed = previous[column + 1] + 1;
            current.push(replaced.min(added).min(removed));
        }
        previous = current;
    }
    previous[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 2] = ["perf_polling_frequency_hz", "call_graph"];

    #[test]
    fn both_spellings_are_one_name() {
        assert_eq!(
            lower_camel("perf_polling_frequency_hz"),
            "perfPollingFrequencyHz"
        );
        assert_eq!(lower_camel("cpu"), "cpu");
        assert_eq!(known_name("callGraph", &NAMES), Some("call_graph"));
        assert_eq!(known_name("call_graph", &NAMES), Some("call_graph"));
        assert_eq!(known_name("call_Graph", &NAMES), None);
    }

    #[test]
    fn typing_errors_get_a_suggestion() {
        let meant = " (did you mean call_graph?)";
        assert_eq!(suggestion("call_grpah", &NAMES), meant);
        assert_eq!(suggestion("callgraph", &NAMES), meant);
        assert_eq!(suggestion("nothing_alike", &NAMES), "");
        assert_eq!(suggestion(&"x".repeat(100), &NAMES), "");
    }
}
