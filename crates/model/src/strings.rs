//! Interned strings in one arena.

use crate::ids::StringId;
use crate::interner::PositionIndex;

/// Each distinct string once, back to back in one allocation. Id 0 is the empty string.
#[derive(Clone, Debug)]
pub struct StringTable {
    text: String,
    /// `ends[i]` is where string `i` ends; it starts where its predecessor ends.
    ends: Vec<u32>,
    index: PositionIndex,
}

impl Default for StringTable {
    fn default() -> Self {
        let mut table = Self {
            text: String::new(),
            ends: Vec::new(),
            index: PositionIndex::default(),
        };
        table.intern("");
        table
    }
}

impl StringTable {
    /// The id of `string`, which is copied when it is new.
    ///
    /// # Panics
    /// When all strings together would exceed 4 GiB; readers cap their input far below.
    pub fn intern(&mut self, string: &str) -> StringId {
        let hash = self.index.seed().hash_bytes(string.as_bytes());
        let (text, ends) = (&self.text, &self.ends);
        let (position, is_new) = self
            .index
            .find_or_insert(hash, ends.len(), |i| slice(text, ends, i) == string);
        if is_new {
            self.text.push_str(string);
            let end = u32::try_from(self.text.len()).expect("readers cap their input below 4 GiB");
            self.ends.push(end);
        }
        StringId(position)
    }

    /// The string with this id.
    ///
    /// # Panics
    /// When the id is of another table and out of range.
    #[inline]
    #[must_use]
    pub fn get(&self, id: StringId) -> &str {
        slice(&self.text, &self.ends, id.index())
    }

    /// The id of `string`, if it is here.
    #[must_use]
    pub fn find(&self, string: &str) -> Option<StringId> {
        let hash = self.index.seed().hash_bytes(string.as_bytes());
        self.index
            .find(hash, |i| slice(&self.text, &self.ends, i) == string)
            .map(StringId)
    }

    /// How many strings there are, the empty one included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Never: the empty string is always there.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All strings in the order of their ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.ends.len()).map(|i| slice(&self.text, &self.ends, i))
    }

    /// Bytes of text held.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        self.text.len()
    }
}

#[inline]
fn slice<'a>(text: &'a str, ends: &[u32], index: usize) -> &'a str {
    let start = if index == 0 {
        0
    } else {
        ends[index - 1] as usize
    };
    &text[start..ends[index] as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_share_an_id() {
        let mut table = StringTable::default();
        let first = table.intern("main");
        assert_eq!(table.intern("main"), first);
        assert_ne!(table.intern("mainly"), first);
        assert_eq!(table.get(first), "main");
        assert_eq!(table.len(), 3);
    }

    #[test]
    fn id_zero_is_the_empty_string() {
        let mut table = StringTable::default();
        assert_eq!(table.intern(""), StringId(0));
        assert_eq!(table.get(StringId(0)), "");
        assert_eq!(table.find("absent"), None);
    }
}
