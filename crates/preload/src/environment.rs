//! Numbers in the environment that the program was started with.
//!
//! Read from `/proc`: the C library's own copy may not be there yet when the first allocation is made, and
//! may be changed by the program.

/// Looks for `NAME=` with a number in bytes that come one by one, each variable ended by a NUL.
pub(crate) struct NumberOf {
    name: &'static [u8],
    /// How much of the name this variable has begun with; `None` when it is another one.
    matched: Option<usize>,
    number: u64,
    digits: u32,
    found: Option<u64>,
}

// === impl NumberOf ===

impl NumberOf {
    pub(crate) const fn new(name: &'static str) -> Self {
        Self {
            name: name.as_bytes(),
            matched: Some(0),
            number: 0,
            digits: 0,
            found: None,
        }
    }

    /// The value, once all bytes were taken; `None` without the variable and where it is no number.
    pub(crate) fn found(&self) -> Option<u64> {
        self.found
    }

    pub(crate) fn take(&mut self, byte: u8) {
        if byte == 0 {
            if self
                .matched
                .is_some_and(|matched| matched > self.name.len())
                && self.digits > 0
            {
                self.found = Some(self.number);
            }
            (self.matched, self.number, self.digits) = (Some(0), 0, 0);
            return;
        }
        let Some(matched) = self.matched else {
            return;
        };
        match self.name.get(matched) {
            Some(&expected) => self.matched = (expected == byte).then_some(matched + 1),
            None if matched == self.name.len() => {
                self.matched = (byte == b'=').then_some(matched + 1);
            }
            None if byte.is_ascii_digit() => {
                let digit = u64::from(byte - b'0');
                self.number = self.number.saturating_mul(10).saturating_add(digit);
                self.digits += 1;
            }
            None => self.matched = None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number_in(environment: &str) -> Option<u64> {
        let mut number = NumberOf::new("NAME");
        environment.bytes().for_each(|byte| number.take(byte));
        number.found()
    }

    #[test]
    fn the_number_is_that_of_the_variable() {
        assert_eq!(number_in("A=1\0NAME=20\0NAMES=3\0"), Some(20));
        assert_eq!(number_in("NAME=0\0"), Some(0));
        assert_eq!(number_in("NAME=99999999999999999999999\0"), Some(u64::MAX));
    }

    #[test]
    fn what_is_no_number_is_none() {
        for environment in [
            "",
            "NAME=\0",
            "NAME=4k\0",
            "MYNAME=1\0",
            "NAM=1\0",
            "NAME\0",
        ] {
            assert_eq!(number_in(environment), None, "{environment:?}");
        }
    }
}
