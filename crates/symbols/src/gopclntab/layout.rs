//! The header of a pclntab (`runtime.pcHeader`): its version and where its parts start.

use super::bytes::Bytes;

/// The layout's generation, by the Go version that brought it. They are `Go116PCLnTabMagic` and so
/// on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// Go 1.16 and 1.17: addresses of pointer size.
    Go116,
    /// Go 1.18 and 1.19: 32-bit offsets from the start of the text.
    Go118,
    /// Go 1.20 and later: functions know their first line.
    Go120,
}

/// Offsets are from the start of the table, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub(super) version: Version,
    /// Bytes per unit of an address step: 1 on x86, 4 on most others.
    pub(super) quantum: u8,
    pub(super) pointer_size: usize,
    pub(super) function_count: usize,
    pub(super) names: usize,
    pub(super) units: usize,
    pub(super) files: usize,
    pub(super) pc_tables: usize,
    /// `ftab` and, at offsets from the same start, the functions' records.
    pub(super) functions: usize,
}

impl Layout {
    pub(super) fn parse(data: Bytes<'_>) -> Option<Self> {
        let version = match data.u32(0)? {
            0xffff_fffa => Version::Go116,
            0xffff_fff0 => Version::Go118,
            0xffff_fff1 => Version::Go120,
            _ => return None,
        };
        let (quantum, pointer_size) = (data.u8(6)?, usize::from(data.u8(7)?));
        let is_sound = data.u8(4)? == 0
            && data.u8(5)? == 0
            && matches!(quantum, 1 | 2 | 4)
            && matches!(pointer_size, 4 | 8);
        if !is_sound {
            return None;
        }
        let word = |index: usize| {
            let value = data.pointer(8 + index * pointer_size, pointer_size)?;
            usize::try_from(value)
                .ok()
                .filter(|value| *value <= data.0.len())
        };
        // Words 0 and 1 count functions and files; since 1.18 word 2 is the start of the text,
        // which a position-independent executable leaves zero and Go 1.26 does not write any more.
        let parts = if version == Version::Go116 { 2 } else { 3 };
        Some(Self {
            version,
            quantum,
            pointer_size,
            function_count: word(0)?,
            names: word(parts)?,
            units: word(parts + 1)?,
            files: word(parts + 2)?,
            pc_tables: word(parts + 3)?,
            functions: word(parts + 4)?,
        })
    }

    /// Bytes of a function's entry in its record.
    pub(super) fn entry_size(&self) -> usize {
        if self.version == Version::Go116 {
            self.pointer_size
        } else {
            4
        }
    }

    /// Bytes of a function's record up to its `PCDATA` offsets; the last byte counts its
    /// `FUNCDATA`.
    pub(super) fn record_size(&self) -> usize {
        let fields = if self.version == Version::Go120 { 9 } else { 8 };
        self.entry_size() + fields * 4 + 4
    }

    /// Entry of function `index`; the one behind the last is the end of the last.
    pub(super) fn function_entry(&self, data: Bytes<'_>, index: usize) -> Option<u64> {
        let size = self.entry_size();
        data.pointer(
            self.functions.checked_add(index.checked_mul(2 * size)?)?,
            size,
        )
    }

    /// Offset of the record of function `index` from [`functions`](Self::functions).
    pub(super) fn function_offset(&self, data: Bytes<'_>, index: usize) -> Option<usize> {
        let size = self.entry_size();
        let at = self
            .functions
            .checked_add(index.checked_mul(2 * size)?)?
            .checked_add(size)?;
        usize::try_from(data.pointer(at, size)?).ok()
    }
}
