//! The windows of a source: one for each kind of sample that it takes.

use crate::kinds::Kind;
use crate::window::Window;

/// One window for each kind; those of kinds that are not taken stay empty.
#[derive(Debug)]
pub(crate) struct Windows([Window; Kind::ALL.len()]);

// === impl Windows ===

impl Windows {
    /// Empty windows. With `keeps_times` each sample is kept with its time and thread.
    pub(crate) fn new(keeps_times: bool) -> Self {
        Self(std::array::from_fn(|_| Window::new(keeps_times)))
    }

    pub(crate) fn of(&mut self, kind: Kind) -> &mut Window {
        &mut self.0[kind as usize]
    }
}
