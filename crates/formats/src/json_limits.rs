//! How much some JSON is, before any of it takes memory.

use crate::error::ReadError;
use crate::options::Limits;

/// A message has fields, which are values of their own in JSON.
const VALUES_PER_MESSAGE: usize = 2;

/// How many values there may still be in the pieces of JSON that some input has inside of it.
#[derive(Debug)]
pub(crate) struct ValueBudget {
    left: usize,
    limit: usize,
}

impl ValueBudget {
    pub(crate) fn new(limits: &Limits) -> Self {
        let limit = limits.max_messages.saturating_mul(VALUES_PER_MESSAGE);
        Self { left: limit, limit }
    }

    /// Pays for a piece before it takes memory.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<(), ReadError> {
        let left = self.left.checked_sub(count_values(bytes));
        self.left = left.ok_or(ReadError::TooLarge {
            what: "the number of values in the JSON",
            limit: self.limit,
        })?;
        Ok(())
    }
}

/// Refuses JSON of more values than may be: one of two bytes takes up to a hundred in memory.
pub(crate) fn check_value_count(bytes: &[u8], limits: &Limits) -> Result<(), ReadError> {
    ValueBudget::new(limits).take(bytes)
}

/// How many values some JSON has at least: the separators and brackets outside of its strings.
fn count_values(bytes: &[u8]) -> usize {
    let mut count = 0;
    let mut is_in_string = false;
    let mut is_escaped = false;
    for &byte in bytes {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_in_string,
            b'"' => is_in_string = !is_in_string,
            b',' | b'{' | b'[' if !is_in_string => count += 1,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_strings_is_not_counted() {
        assert_eq!(count_values(br#"{"a,[": [1, 2, "\",{"], "b": {}}"#), 6);
        let limits = Limits {
            max_messages: 3,
            ..Limits::default()
        };
        assert!(check_value_count(b"[[],[],[]]", &limits).is_ok());
        let error = check_value_count(b"[[],[],[],[]]", &limits).expect_err("eight");
        assert!(error.to_string().contains("limit of 6"), "{error}");
        let mut budget = ValueBudget::new(&limits);
        budget.take(b"[[],[]]").expect("four");
        assert!(budget.take(b"[[]]").is_ok());
        assert!(budget.take(b"[[]]").is_err(), "pieces add up");
    }
}
