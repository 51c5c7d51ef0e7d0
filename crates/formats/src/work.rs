//! A bound on what references within an input make a reader do again.

use crate::error::ReadError;
use crate::options::Limits;

/// Steps that a reader may still take for what is written down once and referred to often: a stack
/// that thousands of samples name, a table that each record brings to mind. What stands in the input
/// itself is paid for by its bytes.
#[derive(Debug)]
pub(crate) struct Work {
    left: usize,
    limit: usize,
}

/// What a source line that a location keeps takes: so much more than a frame of a stack.
pub(crate) const STEPS_PER_LINE: usize = 4;

/// The same for an entry of a table that is made of references only, with its place in an index.
pub(crate) const STEPS_PER_ENTRY: usize = 32;

impl Work {
    /// As many steps as the input may have bytes.
    pub(crate) fn new(limits: &Limits) -> Self {
        let limit = limits.inflated_bytes();
        Self { left: limit, limit }
    }

    /// Adds the bytes of a piece of input, for readers that hold no more of it than the piece: their
    /// input may be longer than the limit, and what it makes them do may grow with it.
    pub(crate) fn earn(&mut self, bytes: usize) {
        self.left = self.left.saturating_add(bytes);
    }

    /// Pays for steps before they are taken.
    ///
    /// # Errors
    /// When not as many are left.
    pub(crate) fn spend(&mut self, steps: usize) -> Result<(), ReadError> {
        let left = self.left.checked_sub(steps);
        self.left = left.ok_or(ReadError::TooLarge {
            what: "the work that references within the input make",
            limit: self.limit,
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_taken_until_none_are_left() {
        let limits = Limits {
            max_inflated_bytes: 3,
            ..Limits::default()
        };
        let mut work = Work::new(&limits);
        work.spend(2).expect("two of three");
        work.spend(1).expect("the third");
        let error = work.spend(1).expect_err("no fourth").to_string();
        assert!(error.contains("the limit of 3"), "{error}");
        work.earn(2);
        work.spend(2).expect("two that were earned");
        assert!(work.spend(1).is_err());
    }
}
