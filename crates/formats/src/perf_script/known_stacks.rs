//! Stacks by all of their text. The same stacks come again and again, and to compare a text with one
//! that is known is several times quicker than to go through its lines.

use candela_model::StackId;
use hashbrown::HashMap;

use crate::error::ReadError;
use crate::text_lines::TextLines;

/// The texts that are kept take no more than this. Those that come often come early.
const MAX_TEXT_BYTES: usize = 16 << 20;
/// A stack of 127 frames with long names of C++ has some 30 KB.
const MAX_STACK_BYTES: usize = 64 << 10;
/// Some texts have no empty lines, or none behind stacks: after so many looks in vain one in as many is enough.
const LOOKS_IN_VAIN: u32 = 64;

#[derive(Debug, Default)]
pub(crate) struct KnownStacks {
    stacks: HashMap<Box<[u8]>, KnownStack>,
    text_bytes: usize,
    /// How many headers came since the last stack that was known, or was kept.
    in_vain: u32,
    /// The text that is read now, line by line.
    unknown: Vec<u8>,
    /// Lines that were repaired before it.
    repaired_before: u64,
}

#[derive(Clone, Copy, Debug)]
struct KnownStack {
    stack: StackId,
    lines: u64,
}

impl KnownStacks {
    /// Takes the frames of a sample and the empty line behind them if they are known as a whole.
    pub(crate) fn take(&mut self, lines: &mut TextLines<'_>) -> Result<Option<StackId>, ReadError> {
        self.unknown.clear();
        self.in_vain = self.in_vain.saturating_add(1);
        if self.in_vain > LOOKS_IN_VAIN && !self.in_vain.is_multiple_of(LOOKS_IN_VAIN) {
            return Ok(None);
        }
        self.repaired_before = lines.repaired();
        let Some(text) = lines.paragraph_ahead(MAX_STACK_BYTES) else {
            return Ok(None);
        };
        let Some(&known) = self.stacks.get(text) else {
            self.unknown.extend_from_slice(text);
            return Ok(None);
        };
        self.in_vain = 0;
        let length = text.len();
        lines.skip_paragraph(length, known.lines)?;
        Ok(Some(known.stack))
    }

    /// Keeps the text of a stack that came to its end line by line, if these are all of its lines but
    /// for the empty one: `frame_lines` left nothing to report.
    pub(crate) fn keep(&mut self, stack: StackId, frame_lines: u64, lines: &TextLines<'_>) {
        let line_feeds = memchr::memchr_iter(b'\n', &self.unknown).count() as u64;
        let is_understood =
            line_feeds == frame_lines + 1 && lines.repaired() == self.repaired_before;
        if is_understood {
            self.in_vain = 0;
        }
        if is_understood && self.text_bytes + self.unknown.len() <= MAX_TEXT_BYTES {
            self.text_bytes += self.unknown.len();
            let known = KnownStack {
                stack,
                lines: line_feeds,
            };
            self.stacks.insert(self.unknown.as_slice().into(), known);
        }
        self.unknown.clear();
    }
}
