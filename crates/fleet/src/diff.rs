//! What one document has and another has not, in lines (CH-41).

use std::fmt;

use serde::Serialize;

use crate::document::FleetDocument;
use crate::json::Json;
use crate::list_alignment::Aligned;
use crate::list_alignment::aligned;
use crate::path::DocumentPath;

/// All differences, in an order in which they can be applied one after the other.
///
/// In lists elements are removed first, from the last to the first, then added, from the first to the
/// last; so the index of what is removed counts in the old list and all others in the new one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct DocumentDiff {
    /// One a place.
    pub differences: Vec<Difference>,
}

/// One value that was added, removed, or replaced by another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Where.
    pub path: DocumentPath,
    /// What stood there; `None` where something is added.
    pub removed: Option<Json>,
    /// What stands there now; `None` where something is removed.
    pub added: Option<Json>,
}

impl DocumentDiff {
    /// What leads from one document to another: of their written forms.
    #[must_use]
    pub fn between(old: &FleetDocument, new: &FleetDocument) -> Self {
        let mut diff = Self::default();
        diff.compare(&DocumentPath::top(), &old.to_json(), &new.to_json());
        diff
    }

    /// Whether nothing is to be changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.differences.is_empty()
    }

    fn compare(&mut self, path: &DocumentPath, old: &Json, new: &Json) {
        match (old, new) {
            (Json::Object(old), Json::Object(new)) => {
                // Sorted, as both are written.
                let mut keys: Vec<&String> = old.keys().chain(new.keys()).collect();
                keys.sort();
                keys.dedup();
                for key in keys {
                    match (old.get(key), new.get(key)) {
                        (Some(old), Some(new)) => self.compare(&path.key(key), old, new),
                        (old, new) => self.push(path.key(key), old, new),
                    }
                }
            }
            (Json::List(old), Json::List(new)) => self.compare_lists(path, old, new),
            (old, new) if old == new => (),
            (old, new) => self.push(path.clone(), Some(old), Some(new)),
        }
    }

    fn compare_lists(&mut self, path: &DocumentPath, old: &[Json], new: &[Json]) {
        let steps = aligned(old, new);
        for step in steps.iter().rev() {
            if let Aligned::Removed(index) = *step {
                self.push(path.index(index), Some(&old[index]), None);
            }
        }
        for step in &steps {
            if let Aligned::Added(index) = *step {
                self.push(path.index(index), None, Some(&new[index]));
            }
        }
        for step in &steps {
            if let Aligned::Paired {
                old_index,
                new_index,
            } = *step
            {
                self.compare(&path.index(new_index), &old[old_index], &new[new_index]);
            }
        }
    }

    fn push(&mut self, path: DocumentPath, removed: Option<&Json>, added: Option<&Json>) {
        self.differences.push(Difference {
            path,
            removed: removed.cloned(),
            added: added.cloned(),
        });
    }
}

/// ```text
/// @ ["observability_daemons",0,"perf_collector","perf_polling_frequency_hz"]
/// - 99
/// + 49
/// ```
impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = serde_json::to_string(&self.path).map_err(|_| fmt::Error)?;
        write!(formatter, "@ {path}")?;
        if let Some(removed) = &self.removed {
            write!(formatter, "\n- {removed}")?;
        }
        if let Some(added) = &self.added {
            write!(formatter, "\n+ {added}")?;
        }
        Ok(())
    }
}

/// Each difference on lines of its own; nothing when there is none.
impl fmt::Display for DocumentDiff {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, difference) in self.differences.iter().enumerate() {
            let line_break = if index == 0 { "" } else { "\n" };
            write!(formatter, "{line_break}{difference}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(daemons: &str) -> FleetDocument {
        let text = format!(r#"{{"observability_daemons": {daemons}}}"#);
        FleetDocument::read(&text).unwrap().document
    }

    const FIRST: &str =
        r#"{"perf_collector": {"export_to": "s3://bucket", "perf_polling_frequency_hz": 99}}"#;
    const OTHER: &str = r#"{"perf_collector": {"export_to": "s3://other"}}"#;

    #[test]
    fn a_changed_value_has_its_path_and_both_values() {
        let old = document(&format!("[{FIRST}]"));
        let new = document(&format!("[{}]", FIRST.replace("99", "49")));
        let lines = "@ [\"observability_daemons\",0,\"perf_collector\",\"perf_polling_frequency_hz\"]\n- 99\n+ 49";
        assert_eq!(DocumentDiff::between(&old, &new).to_string(), lines);
        assert!(DocumentDiff::between(&old, &old).is_empty());
        assert_eq!(DocumentDiff::between(&old, &old).to_string(), "");
    }

    #[test]
    fn elements_are_added_and_removed_whole() {
        let old = document(&format!("[{FIRST}]"));
        let new = document(&format!("[{OTHER}, {FIRST}]"));
        let added = "@ [\"observability_daemons\",0]\n+ {\"perf_collector\":{\"export_to\":\"s3://other\"}}";
        assert_eq!(DocumentDiff::between(&old, &new).to_string(), added);
        let removed = "@ [\"observability_daemons\",0]\n- {\"perf_collector\":{\"export_to\":\"s3://other\"}}";
        assert_eq!(DocumentDiff::between(&new, &old).to_string(), removed);
    }

    #[test]
    fn presence_is_a_difference() {
        let none = FleetDocument::default();
        let empty = document("[]");
        let added = "@ [\"observability_daemons\"]\n+ []";
        assert_eq!(DocumentDiff::between(&none, &empty).to_string(), added);
    }
}
