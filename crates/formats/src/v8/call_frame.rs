//! The function that a node stands for.

use candela_model::FrameKind;
use candela_model::FunctionId;
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

/// A function and what kind of code it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScriptFunction {
    id: FunctionId,
    kind: FrameKind,
}

/// What DevTools calls functions without a name.
const ANONYMOUS: &str = "(anonymous)";

impl CallFrame {
    /// Whether it is the node above all stacks.
    pub(crate) fn is_root(&self) -> bool {
        self.name() == "(root)" && self.file().is_empty()
    }

    /// The frame at the position of its function: in minified files the column is all that tells
    /// functions apart.
    pub(crate) fn location(&self, stacks: &mut NamedStacks<'_>) -> LocationId {
        let (start_line, start_column) = self.start();
        let function = self.function(stacks);
        function.at(start_line, start_column, stacks)
    }

    /// The function, for nodes that were found at many lines.
    pub(crate) fn function(&self, stacks: &mut NamedStacks<'_>) -> ScriptFunction {
        let name = stacks.cut(self.name());
        let file = stacks.cut(self.file());
        // (program), (idle), (garbage collector) are no functions of a script.
        let is_state = name.starts_with('(') && name != ANONYMOUS && file.is_empty();
        let kind = if is_state {
            FrameKind::Unknown
        } else {
            FrameKind::V8js
        };
        let (start_line, _) = self.start();
        let symbols = &mut stacks.profile.symbols;
        let id = symbols.intern_function(name, "", file, start_line);
        ScriptFunction { id, kind }
    }

    /// Line and column where the function begins, counted from 1; 0 when unknown.
    fn start(&self) -> (u32, u32) {
        match counted_from_one(self.line_number) {
            0 => (0, 0),
            line => (line, counted_from_one(self.column_number)),
        }
    }

    fn name(&self) -> &str {
        let name = self.function_name.as_deref().unwrap_or("");
        if name.is_empty() { ANONYMOUS } else { name }
    }

    fn file(&self) -> &str {
        self.url.as_deref().unwrap_or("")
    }
}

impl ScriptFunction {
    /// A place in it.
    pub(crate) fn at(self, line: u32, column: u32, stacks: &mut NamedStacks<'_>) -> LocationId {
        let symbols = &mut stacks.profile.symbols;
        symbols.intern_location(&Location::new(self.kind, 0), &[(self.id, line, column)])
    }
}

fn counted_from_one(number: Option<f64>) -> u32 {
    // As a cast saturates, -1 and what is no number are 0.
    (number.unwrap_or(-1.0) + 1.0) as u32
}
