//! The text reports of `go tool pprof`: `-top`, `-tree`, `-peek` and `-traces`, line by line as it
//! prints them, for those who know them by heart and for scripts that cut them up.
//!
//! A function is a name, as there: equal names of different binaries are one. What has no name is its
//! binary in brackets. Lines about the file that the model does not keep (comments, its documentation's
//! address) are not there.

mod call_graph;
mod header;
mod names;
mod report;
mod traces;
mod values;

pub use crate::pprof_text::report::PprofTextOptions;
pub use crate::pprof_text::report::write_peek;
pub use crate::pprof_text::report::write_pprof_top;
pub use crate::pprof_text::report::write_pprof_tree;
pub use crate::pprof_text::traces::write_traces;

/// Which text a profile becomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextLayout {
    /// Our own table of functions, a value a function in the unit that fits it.
    #[default]
    Table,
    /// The table of functions of `pprof -top`.
    Top,
    /// Each function with its callers and callees: `pprof -tree`.
    Tree,
    /// The same of functions whose name matches, nothing left out: `pprof -peek`.
    Peek,
    /// Each sample with its labels and its stack: `pprof -traces`.
    Traces,
}

/// What the writer of text is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextOptions {
    /// Which text.
    pub layout: TextLayout,
    /// The regular expression of [`TextLayout::Peek`]; an empty one matches all functions.
    pub functions: String,
}

impl TextLayout {
    /// Every layout.
    pub const ALL: [Self; 5] = [Self::Table, Self::Top, Self::Tree, Self::Peek, Self::Traces];

    /// What it is called on command lines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Top => "top",
            Self::Tree => "tree",
            Self::Peek => "peek",
            Self::Traces => "traces",
        }
    }

    /// The layout with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|layout| layout.name() == name)
    }
}
