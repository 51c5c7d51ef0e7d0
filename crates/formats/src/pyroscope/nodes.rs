//! The encoding that trees and tries of bytes have in common: nodes in pre-order, each a name with its
//! length in front, a value and the number of its children, all numbers as varints.

use crate::count::Count;
use crate::error::ReadError;
use crate::protobuf::reader::Reader;
use crate::protobuf::reader::WireError;

/// A node; its children follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) value: i64,
    /// How many nodes are above it.
    pub(crate) depth: usize,
}

/// Reads nodes one after the other, without recursion.
#[derive(Debug)]
pub(crate) struct Nodes<'a> {
    format: &'static str,
    bytes: &'a [u8],
    reader: Reader<'a>,
    /// Children still to come of each node on the way to the next one. A number that lies is found
    /// out by the end of the bytes.
    pending: Vec<u64>,
}

impl<'a> Nodes<'a> {
    pub(crate) fn new(format: &'static str, bytes: &'a [u8]) -> Self {
        Self {
            format,
            bytes,
            reader: Reader::new(bytes),
            pending: vec![1],
        }
    }

    /// The next node; `None` behind the last one.
    pub(crate) fn next(&mut self) -> Result<Option<Node<'a>>, ReadError> {
        while self.pending.pop_if(|left| *left == 0).is_some() {}
        let Some(left) = self.pending.last_mut() else {
            return Ok(None);
        };
        *left -= 1;
        let depth = self.pending.len() - 1;
        let format = self.format;
        let named = |error: WireError| error.named(format);
        let length = self.reader.varint().map_err(named)?;
        let name = self.reader.take(length).map_err(named)?;
        let value_offset = self.reader.position();
        let value = self.reader.varint().map_err(named)?;
        self.pending.push(self.reader.varint().map_err(named)?);
        let value = i64::try_from(value).map_err(|_| ReadError::Corrupt {
            format,
            problem: format!("a node has the value {value}, at most {} may be", i64::MAX),
            offset: value_offset,
        })?;
        Ok(Some(Node {
            name: &self.bytes[name.range()],
            value,
            depth,
        }))
    }

    /// Bytes behind the last node.
    pub(crate) fn bytes_left(&self) -> usize {
        self.bytes.len() - self.reader.position()
    }
}

impl Node<'_> {
    pub(crate) fn count(&self) -> Count {
        Count::whole(self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Result<Vec<(usize, i64)>, ReadError> {
        let mut nodes = Nodes::new("tree", bytes);
        let mut found = Vec::new();
        while let Some(node) = nodes.next()? {
            found.push((node.depth, node.value));
        }
        Ok(found)
    }

    #[test]
    fn depths_follow_the_numbers_of_children() {
        let bytes = [
            0, 0, 2, // the root
            1, b'a', 1, 1, // its first child
            1, b'b', 2, 0, // below
            1, b'c', 3, 0, // its second child
        ];
        assert_eq!(
            all(&bytes).expect("whole"),
            [(0, 0), (1, 1), (2, 2), (1, 3)]
        );
    }

    #[test]
    fn what_breaks_off_is_an_error_with_its_place() {
        for (bytes, problem) in [
            (&[][..], "tree: a number is cut off at byte 0"),
            (&[5, b'a'], "tree: a length points behind the end at byte 1"),
            (&[0, 0, 1], "tree: a number is cut off at byte 3"),
            (
                &[0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0],
                "tree: a node has the value 18446744073709551615, at most 9223372036854775807 may be \
                 at byte 1",
            ),
        ] {
            assert_eq!(all(bytes).expect_err("broken").to_string(), problem);
        }
    }
}
