//! Small tables as text, CSV and Markdown.

/// Rows under headings. Columns of numbers are aligned right in text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(headings: &[&'static str]) -> Self {
        Self {
            headings: headings.to_vec(),
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
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells
                .chain([self.headings[column].chars().count()])
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
        let headings: Vec<String> = self
            .headings
            .iter()
            .map(|heading| heading.to_uppercase())
            .collect();
        let mut text = line(&headings);
        for row in &self.rows {
            text.push_str(&line(row));
        }
        text
    }

    /// RFC 4180.
    pub(crate) fn to_csv(&self) -> String {
        let mut text = format!("{}\r\n", self.headings.join(","));
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(|cell| quote_csv(cell)).collect();
            text.push_str(&cells.join(","));
            text.push_str("\r\n");
        }
        text
    }

    pub(crate) fn to_markdown(&self) -> String {
        let mut text = format!("| {} |\n", self.headings.join(" | "));
        text.push_str(&format!("|{}\n", "---|".repeat(self.headings.len())));
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
            text.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
        text
    }
}

fn quote_csv(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", cell.replace('"', "\"\""));
    }
    cell.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_keeps_odd_cells_whole() {
        let mut table = Table::new(&["name", "note"]);
        table.push(vec!["a,b".to_owned(), "x|y".to_owned()]);
        assert_eq!(table.to_text(), "NAME  NOTE\na,b   x|y\n");
        assert_eq!(table.to_csv(), "name,note\r\n\"a,b\",x|y\r\n");
        assert_eq!(
            table.to_markdown(),
            "| name | note |\n|---|---|\n| a,b | x\\|y |\n"
        );
    }
}
