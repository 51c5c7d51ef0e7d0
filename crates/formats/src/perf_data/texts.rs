//! Texts of the recording, within bounds.

use candela_model::StringId;
use candela_model::StringTable;

use crate::error::ReadError;
use crate::options::Limits;
use crate::report::Report;

/// Each text once.
#[derive(Debug)]
pub(crate) struct Texts {
    pub(crate) strings: StringTable,
    limits: Limits,
    cut: u64,
    repaired: u64,
}

impl Texts {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            strings: StringTable::default(),
            limits,
            cut: 0,
            repaired: 0,
        }
    }

    pub(crate) fn intern(&mut self, bytes: &[u8]) -> StringId {
        let text = String::from_utf8_lossy(bytes);
        self.repaired += u64::from(text.len() != bytes.len());
        let kept = self.limits.cut(&text);
        self.cut += u64::from(kept.len() < text.len());
        self.strings.intern(kept)
    }

    /// Records are read one by one without an end; what is kept of them has one.
    pub(crate) fn check(&self) -> Result<(), ReadError> {
        let limit = self.limits.inflated_bytes();
        if self.strings.text_bytes() <= limit {
            return Ok(());
        }
        Err(ReadError::TooLarge {
            what: "the number of bytes of all names",
            limit,
        })
    }

    pub(crate) fn note(&self, report: &mut Report) {
        report.note_many(
            "strings_cut",
            "strings longer than the limit were cut at their end",
            self.cut,
        );
        report.note_repaired(self.repaired);
    }
}
