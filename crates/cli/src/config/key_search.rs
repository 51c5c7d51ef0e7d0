//! Finding keys, and what somebody may have meant who wrote one that is none.

use super::keys::Key;
use super::keys::RESERVED_SECTIONS;
use super::keys::keys;

/// The key at a path; `storage` is an alias of `store`.
pub(crate) fn find(path: &str) -> Option<&'static Key> {
    let path = match path.strip_prefix("storage.") {
        Some(rest) => format!("store.{rest}"),
        None => path.to_owned(),
    };
    keys().find(|key| key.path == path)
}

/// Whether a path is a section or a part of one, which may be there and empty.
pub(crate) fn is_section(path: &str) -> bool {
    let is_above = |key: &Key| {
        let below = key.path.strip_prefix(path);
        below.is_some_and(|below| below.starts_with('.'))
    };
    path == "storage" || RESERVED_SECTIONS.contains(&path) || keys().any(is_above)
}

/// The known path most like a wrong one, if one is like it at all.
pub(crate) fn nearest(path: &str) -> Option<&'static str> {
    let nearest = nearest_of(path, keys().map(|key| key.path))?;
    // Sections that both are in make nothing alike.
    let shared = path.bytes().zip(nearest.bytes());
    let shared = shared.take_while(|(given, known)| given == known).count();
    let start = path[..shared].rfind('.').map_or(0, |dot| dot + 1);
    nearest_of(&path[start..], std::iter::once(&nearest[start..])).map(|_| nearest)
}

/// The word most like a wrong one, if one is like it at all.
pub(crate) fn nearest_of<'a>(given: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let (distance, nearest) = words.map(|word| (edit_distance(given, word), word)).min()?;
    (distance <= nearest.len() / 2).then_some(nearest)
}

/// Levenshtein distance, by characters.
fn edit_distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut previous: Vec<usize> = (0..=right.len()).collect();
    for (row, left_character) in left.chars().enumerate() {
        let mut current = vec![row + 1];
        for (column, right_character) in right.iter().enumerate() {
            let substituted = previous[column] + usize::from(left_character != *right_character);
            let inserted = current[column] + 1;
            let deleted = previous[column + 1] + 1;
            current.push(substituted.min(inserted).min(deleted));
        }
        previous = current;
    }
    previous[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_get_a_suggestion() {
        assert_eq!(nearest("server.listn"), Some("server.listen"));
        assert_eq!(nearest("agent.frequency_of_everything_at_all"), None);
        assert_eq!(nearest("agent.rat"), Some("agent.rate"));
        assert_eq!(nearest("agent.offcpu"), None, "only the section is right");
    }

    #[test]
    fn the_old_section_name_works() {
        assert_eq!(find("storage.sync").map(|key| key.path), Some("store.sync"));
        assert_eq!(
            find("store.sync").map(Key::variable).as_deref(),
            Some("CANDELA_STORE__SYNC")
        );
    }
}
