//! Text in the form of `candela doctor`.

/// What was looked at, line by line.
#[derive(Debug, Default)]
pub(super) struct DoctorText(String);

// === impl DoctorText ===

impl DoctorText {
    pub(super) fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    /// One thing, and the command that mends it. Both may hold names that strangers chose.
    pub(super) fn check(&mut self, mark: &str, name: &str, detail: &str, fix: &str) {
        let detail = candela_formats::printable(detail);
        self.line(&format!("{mark:<4}  {name:<20} {detail}"));
        if !fix.is_empty() {
            let fix = candela_formats::printable(fix);
            self.line(&format!("      {:<20} fix: {fix}", ""));
        }
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }
}
