//! Reader of `.gopclntab`, the function table of Go 1.16 and later.
//!
//! Layouts: Go's `runtime/symtab.go` (pcHeader), `runtime/runtime2.go` (_func) and
//! `internal/abi/symtab.go`. Numbers are little-endian; pointers have 8 bytes.

use std::borrow::Cow;
use std::ops::Range;

/// `pad1, pad2, minLC, ptrSize` after the magic number: x86-64 has instructions of one byte and
/// pointers of eight.
const AFTER_MAGIC: [u8; 4] = [0, 0, 1, 8];

/// The functions that matter have shorter names, and damaged tables have endless ones.
const MAX_NAME: usize = 64;

/// Which layout a table has, by its magic number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Layout {
    /// Go 1.16 and 1.17: absolute addresses.
    Go116,
    /// Go 1.18 and 1.19: addresses relative to the start of the text.
    Go118,
    /// Go 1.20 and later; since 1.26 the start of the text is no longer in the header.
    Go120,
}

impl Layout {
    fn of(magic: u32) -> Option<Layout> {
        match magic {
            0xffff_fffa => Some(Layout::Go116),
            0xffff_fff0 => Some(Layout::Go118),
            0xffff_fff1 => Some(Layout::Go120),
            _ => None,
        }
    }
}

/// A function as the table describes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Function<'data> {
    /// Its first [`MAX_NAME`] bytes.
    pub(super) name: &'data [u8],
    /// Offset of its stack height table in pctab; 0 means it has none.
    pub(super) pcsp: u32,
    flags: u8,
}

impl Function<'_> {
    /// The outermost frame of a stack (`abi.FuncFlagTopFrame`).
    pub(super) fn is_top_frame(&self) -> bool {
        self.flags & 1 != 0
    }

    /// The function writes to SP in ways the table does not follow (`abi.FuncFlagSPWrite`).
    pub(super) fn writes_stack_pointer(&self) -> bool {
        self.flags & 2 != 0
    }
}

/// A parsed header and the parts of the table behind it.
#[derive(Debug)]
pub(super) struct Pclntab<'data> {
    data: Cow<'data, [u8]>,
    layout: Layout,
    function_count: usize,
    text_start: u64,
    names: usize,
    pctab: usize,
    functions: usize,
}

impl<'data> Pclntab<'data> {
    /// Whether `data` starts like a table that [`Pclntab::parse`] reads.
    pub(super) fn is_header(data: &[u8]) -> bool {
        u32_at(data, 0).and_then(Layout::of).is_some() && data.get(4..8) == Some(&AFTER_MAGIC)
    }

    pub(super) fn parse(data: Cow<'data, [u8]>) -> Option<Pclntab<'data>> {
        if !Pclntab::is_header(&data) {
            return None;
        }
        let layout = Layout::of(u32_at(&data, 0)?)?;
        let word = |number: usize| u64_at(&data, 8 + 8 * number);
        let function_count = usize::try_from(word(0)?).ok()?;
        // Word 1 is the number of files. Go 1.16 has no word for the start of the text.
        let (text_start, offsets) = if layout == Layout::Go116 {
            (0, 2)
        } else {
            (word(2)?, 3)
        };
        let offset = |number: usize| usize::try_from(word(offsets + number)?).ok();
        let names = offset(0)?;
        let pctab = offset(3)?;
        let functions = offset(4)?;
        let entry_size = if layout == Layout::Go116 { 8 } else { 4 };
        // Every function has two entries, and one more closes the table.
        let functab_size = function_count
            .checked_mul(2)?
            .checked_add(1)?
            .checked_mul(entry_size)?;
        let is_inside = names <= data.len()
            && pctab <= data.len()
            && functions.checked_add(functab_size)? <= data.len();
        is_inside.then_some(Pclntab {
            data,
            layout,
            function_count,
            text_start,
            names,
            pctab,
            functions,
        })
    }

    pub(super) fn layout(&self) -> Layout {
        self.layout
    }

    pub(super) fn function_count(&self) -> usize {
        self.function_count
    }

    pub(super) fn text_start(&self) -> u64 {
        self.text_start
    }

    pub(super) fn set_text_start(&mut self, text_start: u64) {
        self.text_start = text_start;
    }

    /// The address at which function `number` starts; for `function_count` the end of the last.
    pub(super) fn entry(&self, number: usize) -> Option<u64> {
        if self.layout == Layout::Go116 {
            return u64_at(&self.data, self.functions.checked_add(16 * number)?);
        }
        let offset = u32_at(&self.data, self.functions.checked_add(8 * number)?)?;
        self.text_start.checked_add(u64::from(offset))
    }

    pub(super) fn function(&self, number: usize) -> Option<Function<'_>> {
        let (record, entry_size) = if self.layout == Layout::Go116 {
            (
                u64_at(&self.data, self.functions.checked_add(16 * number + 8)?)?,
                8,
            )
        } else {
            (
                u64::from(u32_at(
                    &self.data,
                    self.functions.checked_add(8 * number + 4)?,
                )?),
                4,
            )
        };
        let record = self.functions.checked_add(usize::try_from(record).ok()?)?;
        let fields = self.data.get(record..)?.get(entry_size..)?;
        let name_offset = usize::try_from(u32_at(fields, 0)?).ok()?;
        let name = self.data.get(self.names.checked_add(name_offset)?..)?;
        let name = &name[..name.len().min(MAX_NAME)];
        let name = name.split(|byte| *byte == 0).next()?;
        let flags_at = if self.layout == Layout::Go120 { 37 } else { 33 };
        Some(Function {
            name,
            pcsp: u32_at(fields, 12)?,
            flags: *fields.get(flags_at)?,
        })
    }

    /// The stack heights of a function that occupies `addresses`: pairs of the address up to
    /// which a height holds and the height in bytes.
    pub(super) fn stack_heights(&self, pcsp: u32, addresses: &Range<u64>) -> StackHeights<'_> {
        let start = self.pctab.saturating_add(pcsp as usize);
        let bytes = if pcsp == 0 {
            &[]
        } else {
            self.data.get(start..).unwrap_or(&[])
        };
        StackHeights {
            bytes,
            address: addresses.start,
            end: addresses.end,
            height: -1,
            is_first: true,
        }
    }
}

/// Iterates over a pc-value table (`runtime.step`): a zigzag delta of the value, then a delta of
/// the address.
#[derive(Debug)]
pub(super) struct StackHeights<'data> {
    bytes: &'data [u8],
    address: u64,
    end: u64,
    height: i64,
    is_first: bool,
}

impl Iterator for StackHeights<'_> {
    type Item = (u64, i64);

    fn next(&mut self) -> Option<(u64, i64)> {
        if self.address >= self.end {
            return None;
        }
        let zigzag = self.varint()?;
        if zigzag == 0 && !self.is_first {
            return None;
        }
        self.is_first = false;
        self.height += i64::from((zigzag >> 1) as i32 ^ -((zigzag & 1) as i32));
        let advance = self.varint()?;
        // A step that stands still is damage; going on could cost unbounded time.
        if advance == 0 {
            return None;
        }
        self.address = self.address.checked_add(u64::from(advance))?;
        Some((self.address, self.height))
    }
}

impl StackHeights<'_> {
    fn varint(&mut self) -> Option<u32> {
        let mut value = 0u32;
        for shift in (0..32).step_by(7) {
            let (byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            value |= u32::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}

pub(super) fn u32_at(data: &[u8], offset: usize) -> Option<u32> {
    let bytes = data.get(offset..offset.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

pub(super) fn u64_at(data: &[u8], offset: usize) -> Option<u64> {
    let bytes = data.get(offset..offset.checked_add(8)?)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stack_heights_follow_the_runtimes_encoding() {
        // height 0 for 4 bytes, 8 for 3, 72 for 128, 0 for 1, end.
        let bytes = [0x02, 4, 0x10, 3, 0x80, 0x01, 0x80, 0x01, 0x8f, 0x01, 1, 0];
        let heights = StackHeights {
            bytes: &bytes,
            address: 100,
            end: 300,
            height: -1,
            is_first: true,
        };
        assert_eq!(
            heights.collect::<Vec<_>>(),
            [(104, 0), (107, 8), (235, 72), (236, 0)]
        );
    }

    #[test]
    fn a_step_that_stands_still_ends_the_table() {
        let bytes = [0x02, 0, 0x10, 3];
        let mut heights = StackHeights {
            bytes: &bytes,
            address: 0,
            end: 300,
            height: -1,
            is_first: true,
        };
        assert_eq!(heights.next(), None);
    }
}
