//! Stacks whose walk ended before the entry of the thread: how, and in which code.

use std::collections::BTreeMap;

use candela_unwind::WalkResult;
use hashbrown::HashMap;
use serde::Serialize;

use crate::window::Space;
use crate::window::Window;

/// Samples of a window whose walk ended too soon.
#[derive(Debug, Default)]
pub(crate) struct ShortWalks {
    /// By how, and by the space of the outermost frame.
    counts: HashMap<(WalkResult, u32), u64>,
}

/// Samples whose stack ended too soon, and in which code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ShortStacks {
    /// The name of the result code.
    pub result: String,
    /// The file of the outermost frame that was found; empty for code without a file.
    pub mapping: String,
    /// How many.
    pub samples: u64,
}

// === impl ShortWalks ===

impl ShortWalks {
    pub(crate) fn add(&mut self, result: WalkResult, space: u32) {
        if !matches!(result, WalkResult::Complete | WalkResult::KernelOnly) {
            *self.counts.entry((result, space)).or_default() += 1;
        }
    }
}

// === impl ShortStacks ===

impl ShortStacks {
    /// Those of some windows together.
    pub(crate) fn of<'a>(windows: impl Iterator<Item = &'a Window>) -> Vec<Self> {
        let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for window in windows {
            for (&(result, space), samples) in &window.short.counts {
                let mapping = match &window.spaces[space as usize] {
                    Space::Kernel => "[kernel]",
                    Space::Object(object) => object.path.as_str(),
                    Space::Process { .. } | Space::Separator => "",
                };
                *counts.entry((result.name(), mapping)).or_default() += samples;
            }
        }
        let short = counts.into_iter().map(|((result, mapping), samples)| Self {
            result: result.to_owned(),
            mapping: mapping.to_owned(),
            samples,
        });
        short.collect()
    }
}
