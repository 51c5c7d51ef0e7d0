//! What is wrong with a document, what was done to it, and what its author may not expect.

use std::fmt;

use serde::Serialize;

use crate::path::DocumentPath;

/// Nobody reads more, and each takes far more room than what it is about.
const MOST_REMARKS: usize = 100;

/// A place in a text: of the document where its JSON is broken, else of a `config_text`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct TextPosition {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

/// Why a document is refused: cause and cure, in one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
pub struct Problem {
    /// Where in the document; empty when it is no JSON at all.
    pub path: DocumentPath,
    /// Where in the text at that place.
    pub position: Option<TextPosition>,
    /// What is wrong there and what to do; lower case, no final stop.
    pub message: String,
}

/// Everything that is wrong with a document; at least one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(transparent)]
pub struct Problems(pub Vec<Problem>);

/// What kind of note it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// The document that was accepted differs from what was given, in this.
    Adjustment,
    /// Accepted as it is, but hardly meant so.
    Warning,
}

/// What the author of an accepted document should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// What kind of note it is.
    pub kind: NoteKind,
    /// Where in the document.
    pub path: DocumentPath,
    /// Where in the text at that place.
    pub position: Option<TextPosition>,
    /// In one line; lower case, no final stop.
    pub message: String,
}

/// Collects while a document is read, so that all problems are told at once.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) problems: Vec<Problem>,
    pub(crate) notes: Vec<Note>,
    /// Problems that were found when there were enough.
    untold_problems: usize,
    untold_notes: usize,
    is_applied: bool,
}

impl Report {
    /// Of a document that was applied once.
    pub(crate) fn of_applied() -> Self {
        Self {
            is_applied: true,
            ..Self::default()
        }
    }

    /// What a rule refuses that is younger than documents that are applied: those go on as they did, as a node whose
    /// document is refused runs nothing at all.
    pub(crate) fn problem_unless_applied(
        &mut self,
        path: DocumentPath,
        message: impl Into<String>,
    ) {
        if self.is_applied {
            self.warning(path, message);
        } else {
            self.problem(path, message);
        }
    }

    pub(crate) fn problem(&mut self, path: DocumentPath, message: impl Into<String>) {
        self.problem_in_text(path, None, message);
    }

    pub(crate) fn problem_in_text(
        &mut self,
        path: DocumentPath,
        position: Option<TextPosition>,
        message: impl Into<String>,
    ) {
        if self.problems.len() >= MOST_REMARKS {
            self.untold_problems += 1;
            return;
        }
        let message = message.into();
        self.problems.push(Problem {
            path,
            position,
            message,
        });
    }

    /// All that was found; the last says how many more there are than are told.
    pub(crate) fn into_problems(mut self) -> Problems {
        if self.untold_problems > 0 {
            let message = format!(
                "has {} more problems; mend these first",
                self.untold_problems
            );
            self.problems.push(Problem {
                path: DocumentPath::top(),
                position: None,
                message,
            });
        }
        Problems(self.problems)
    }

    /// As [`Report::into_problems`], of what was accepted.
    pub(crate) fn into_notes(mut self) -> Vec<Note> {
        if self.untold_notes > 0 {
            let message = format!("has {} more notes like these", self.untold_notes);
            self.notes.push(Note {
                kind: NoteKind::Warning,
                path: DocumentPath::top(),
                position: None,
                message,
            });
        }
        self.notes
    }

    /// A value that must be there. One that is there and was refused is not missed as well.
    pub(crate) fn missing(&mut self, path: DocumentPath, message: &str) {
        if !self.problems.iter().any(|problem| problem.path == path) {
            self.problem(path, message);
        }
    }

    pub(crate) fn warning(&mut self, path: DocumentPath, message: impl Into<String>) {
        self.note(NoteKind::Warning, path, None, message);
    }

    pub(crate) fn note(
        &mut self,
        kind: NoteKind,
        path: DocumentPath,
        position: Option<TextPosition>,
        message: impl Into<String>,
    ) {
        if self.notes.len() >= MOST_REMARKS {
            self.untold_notes += 1;
            return;
        }
        let message = message.into();
        self.notes.push(Note {
            kind,
            path,
            position,
            message,
        });
    }
}

impl fmt::Display for TextPosition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}, column {}", self.line, self.column)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_line(formatter, &self.path, self.position, &self.message)
    }
}

/// One line a problem.
impl fmt::Display for Problems {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            let line_break = if index == 0 { "" } else { "\n" };
            write!(formatter, "{line_break}{problem}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Note {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_line(formatter, &self.path, self.position, &self.message)
    }
}

fn write_line(
    formatter: &mut fmt::Formatter<'_>,
    path: &DocumentPath,
    position: Option<TextPosition>,
    message: &str,
) -> fmt::Result {
    let is_top = path.segments().is_empty();
    match (is_top, position) {
        (true, None) => write!(formatter, "the document: {message}"),
        (true, Some(position)) => write!(formatter, "{position}: {message}"),
        (false, None) => write!(formatter, "{path}: {message}"),
        (false, Some(position)) => write!(formatter, "{path}, {position}: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_value_is_not_missed_as_well() {
        let mut report = Report::default();
        let path = DocumentPath::top().key("export_to");
        report.problem(path.clone(), "is 1, not a text");
        report.missing(path, "is required");
        report.missing(DocumentPath::top().key("trigger"), "is required");
        assert_eq!(report.problems.len(), 2);
    }

    #[test]
    fn of_very_many_problems_the_first_are_told() {
        let mut report = Report::default();
        for index in 0..5000 {
            let path = DocumentPath::top().key("a").index(index);
            report.problem(path.clone(), "is wrong");
            report.missing(path, "is required");
            report.warning(DocumentPath::top(), "is odd");
        }
        let notes = std::mem::take(&mut report.notes);
        assert_eq!(notes.len(), MOST_REMARKS);
        let problems = report.into_problems();
        assert_eq!(problems.0.len(), MOST_REMARKS + 1);
        let last = problems.0[MOST_REMARKS].to_string();
        // Of the first hundred none is missed as well.
        assert_eq!(
            last,
            "the document: has 9800 more problems; mend these first"
        );
    }

    #[test]
    fn problems_are_lines() {
        let mut report = Report::default();
        let path = DocumentPath::top().key("a");
        let position = TextPosition { line: 3, column: 7 };
        report.problem(path.clone(), "one");
        report.problem_in_text(path, Some(position), "two");
        report.problem_in_text(DocumentPath::top(), Some(position), "three");
        report.problem(DocumentPath::top(), "four");
        let lines = "a: one\na, line 3, column 7: two\nline 3, column 7: three\nthe document: four";
        assert_eq!(Problems(report.problems).to_string(), lines);
    }
}
