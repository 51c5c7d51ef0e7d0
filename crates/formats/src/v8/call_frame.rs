//! The function that a node stands for.

use candela_model::FrameKind;
use candela_model::Location;
use candela_model::LocationId;
use serde::Deserialize;

use crate::named_stacks::NamedStacks;

/// `Runtime.CallFrame`. Line and column are those where the function begins, counted from 0; what V8
/// itself does has -1.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct CallFrame {
    pub(crate) function_name: Option<String>,
    pub(crate) url: Option<String>,
    pub(crate) line_number: Option<f64>,
    pub(crate) column_number: Option<f64>,
}

/// What DevTools calls functions without a name.
const ANONYMOUS: &str = "(anonymous)";

impl CallFrame {
    /// Whether it is the node above all stacks.
    pub(crate) fn is_root(&self) -> bool {
        self.name() == "(root)" && self.file().is_empty()
    }

    /// The frame, at this line where it is known. Otherwise the position is that of the function:
    /// in minified files the column is all that tells functions apart.
    pub(crate) fn location(&self, line: Option<u32>, stacks: &mut NamedStacks<'_>) -> LocationId {
        let name = stacks.cut(self.name());
        let file = stacks.cut(self.file());
        let start_line = counted_from_one(self.line_number);
        let start_column = match start_line {
            0 => 0,
            _ => counted_from_one(self.column_number),
        };
        // (program), (idle), (garbage collector) are no functions of a script.
        let is_state = name.starts_with('(') && name != ANONYMOUS && file.is_empty();
        let kind = if is_state {
            FrameKind::Unknown
        } else {
            FrameKind::V8js
        };
        let symbols = &mut stacks.profile.symbols;
        let function = symbols.intern_function(name, "", file, start_line);
        let position = match line {
            Some(line) => (function, line, 0),
            None => (function, start_line, start_column),
        };
        symbols.intern_location(&Location::new(kind, 0), &[position])
    }

    fn name(&self) -> &str {
        let name = self.function_name.as_deref().unwrap_or("");
        if name.is_empty() { ANONYMOUS } else { name }
    }

    fn file(&self) -> &str {
        self.url.as_deref().unwrap_or("")
    }
}

fn counted_from_one(number: Option<f64>) -> u32 {
    // As a cast saturates, -1 and what is no number are 0.
    (number.unwrap_or(-1.0) + 1.0) as u32
}
