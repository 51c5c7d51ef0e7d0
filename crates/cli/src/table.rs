//! Small tables as text, CSV and Markdown.

use candela_formats::csv_field;
use candela_formats::printable;

/// Rows under headings. Columns of numbers are aligned right in text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    headings: Vec<String>,
    /// As they stand over a text.
    text_headings: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(headings: &[&'static str]) -> Self {
        Self {
            headings: headings.iter().map(ToString::to_string).collect(),
            text_headings: headings.iter().map(|name| name.to_uppercase()).collect(),
            rows: Vec::new(),
        }
    }

    /// Under names that somebody else chose, which stay as they are.
    pub(crate) fn with_names(names: Vec<String>) -> Self {
        Self {
            text_headings: names.iter().map(|name| printable(name)).collect(),
            headings: names,
            rows: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Keeps the first `limit` rows (0: all); how many were there.
    pub(crate) fn truncate(&mut self, limit: usize) -> usize {
        let count = self.rows.len();
        if limit > 0 {
            self.rows.truncate(limit);
        }
        count
    }

    /// Columns padded with spaces, the last one not.
    pub(crate) fn to_text(&self) -> String {
        let rows = self.printable_rows();
        let width = |column: usize| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells
                .chain([self.text_headings[column].chars().count()])
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.headings.len()).map(width).collect();
        let line = |cells: &[String]| {
            let padded: Vec<String> = cells
                .iter()
                .zip(&widths)
                .map(|(cell, width)| format!("{cell:<width$}"))
                .collect();
            format!("{}\n", padded.join("  ").trim_end())
        };
        let mut text = line(&self.text_headings);
        for row in &rows {
            text.push_str(&line(row));
        }
        text
    }

    /// RFC 4180, with the line ends that the rest of the output has.
    pub(crate) fn to_csv(&self) -> String {
        let headings: Vec<String> = self.headings.iter().map(|name| csv_field(name)).collect();
        let mut text = format!("{}\n", headings.join(","));
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(|cell| csv_field(cell)).collect();
            text.push_str(&cells.join(","));
            text.push('\n');
        }
        text
    }

    pub(crate) fn to_markdown(&self) -> String {
        let mut text = format!("| {} |\n", self.headings.join(" | "));
        text.push_str(&format!("|{}\n", "---|".repeat(self.headings.len())));
        for row in &self.printable_rows() {
            let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
            text.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
        text
    }

    /// Labels come from whoever pushed them: their escape sequences must not reach a terminal.
    fn printable_rows(&self) -> Vec<Vec<String>> {
        let rows = self.rows.iter();
        rows.map(|row| row.iter().map(|cell| printable(cell)).collect())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_do_not_reach_the_terminal() {
        let mut table = Table::new(&["value"]);
        table.push(vec!["\u{1b}[31mred\nline".to_owned()]);
        let clean = "\u{fffd}[31mred\u{fffd}line";
        assert_eq!(table.to_text(), format!("VALUE\n{clean}\n"));
        assert!(table.to_markdown().contains(clean));
    }

    #[test]
    fn each_form_keeps_odd_cells_whole() {
        let mut table = Table::new(&["name", "note"]);
        table.push(vec!["a,b".to_owned(), "x|y".to_owned()]);
        assert_eq!(table.to_text(), "NAME  NOTE\na,b   x|y\n");
        assert_eq!(table.to_csv(), "name,note\n\"a,b\",x|y\n");
        assert_eq!(
            table.to_markdown(),
            "| name | note |\n|---|---|\n| a,b | x\\|y |\n"
        );
    }
}
