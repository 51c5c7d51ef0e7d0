//! How a recording begins.

use crate::perf_data::bytes::Bytes;
use crate::perf_data::bytes::Endian;

/// Files begin with it as one number, so that machines of the other byte order write it backwards.
const MAGIC: [u8; 8] = *b"PERFILE2";
const MAGIC_BACKWARDS: [u8; 8] = *b"2ELIFREP";

/// Of version 1, which no perf writes any more: its header and events are laid out otherwise.
const FIRST_MAGIC: [u8; 8] = *b"PERFFILE";
const FIRST_MAGIC_BACKWARDS: [u8; 8] = *b"ELIFFREP";

/// The header of a file, bytes.
pub(crate) const FILE_HEADER_BYTES: usize = 104;

/// The header of what was written into a pipe, and the start of a file's, bytes.
pub(crate) const PIPE_HEADER_BYTES: usize = 16;

/// A part of the file, bytes from its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

/// Where the parts of a file are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    /// Bytes of an attribute and the section of its ids.
    pub(crate) attr_entry_bytes: u64,
    pub(crate) attrs: Section,
    pub(crate) data: Section,
    /// One bit for each feature that stands behind the data.
    features: [u64; 4],
}

/// The byte order that the first bytes tell; `None` when they are of no recording.
pub(crate) fn endian_of(first_bytes: &[u8]) -> Option<Endian> {
    match *first_bytes.first_chunk()? {
        MAGIC => Some(Endian::Little),
        MAGIC_BACKWARDS => Some(Endian::Big),
        _ => None,
    }
}

/// Whether the first bytes are of a recording in version 1.
pub(crate) fn is_of_version_1(first_bytes: &[u8]) -> bool {
    let magic = first_bytes.first_chunk();
    magic.is_some_and(|magic| [FIRST_MAGIC, FIRST_MAGIC_BACKWARDS].contains(magic))
}

/// The size that the header says it has: of a pipe's or of a file's.
pub(crate) fn header_size(first_bytes: &[u8], endian: Endian) -> Option<u64> {
    let mut bytes = Bytes::new(first_bytes, endian);
    bytes.take(MAGIC.len())?;
    bytes.u64()
}

impl Section {
    pub(crate) fn parse(bytes: &mut Bytes<'_>) -> Option<Self> {
        Some(Self {
            offset: bytes.u64()?,
            size: bytes.u64()?,
        })
    }

    /// The bytes of the section in `bytes`, which begin at `start` of the file; those that are there
    /// when it breaks off.
    pub(crate) fn of(self, bytes: &[u8], start: u64) -> &[u8] {
        let from = self.offset.checked_sub(start).map(usize::try_from);
        let Some(Ok(from)) = from else {
            return &[];
        };
        let rest = bytes.get(from..).unwrap_or(&[]);
        let size = usize::try_from(self.size).unwrap_or(usize::MAX);
        &rest[..size.min(rest.len())]
    }
}

impl FileHeader {
    /// The whole header, magic included.
    pub(crate) fn parse(header: &[u8], endian: Endian) -> Option<Self> {
        let mut bytes = Bytes::new(header, endian);
        bytes.take(PIPE_HEADER_BYTES)?;
        let attr_entry_bytes = bytes.u64()?;
        let attrs = Section::parse(&mut bytes)?;
        let data = Section::parse(&mut bytes)?;
        let _event_types = Section::parse(&mut bytes)?;
        let mut features = [0; 4];
        for word in &mut features {
            *word = bytes.u64()?;
        }
        Some(Self {
            attr_entry_bytes,
            attrs,
            data,
            features: in_words_of_64_bits(features, endian),
        })
    }

    /// The numbers of the features there are, in the order of their sections.
    pub(crate) fn features(&self) -> impl Iterator<Item = u32> + '_ {
        (0..256).filter(|number| self.features[(number / 64) as usize] >> (number % 64) & 1 != 0)
    }
}

/// Machines of 32 bits write the set in words of their own, which a big-endian one has the other way
/// round. All recordings name their host, so the bit of that tells.
fn in_words_of_64_bits(features: [u64; 4], endian: Endian) -> [u64; 4] {
    const HOST_NAME: u64 = 1 << 3;
    let swapped = features.map(|word| word.rotate_left(32));
    let is_swapped =
        endian == Endian::Big && features[0] & HOST_NAME == 0 && swapped[0] & HOST_NAME != 0;
    if is_swapped { swapped } else { features }
}
