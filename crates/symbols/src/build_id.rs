//! The identity of an object file: GNU build id, Go build id, or a hash of its bytes.

use object::read::elf::{ElfFile, FileHeader};
use object::{Object, ObjectSection};
use sha2::{Digest, Sha256};
use std::fmt;
use std::fmt::Write as _;

/// Bytes taken from each end of a file for the hash of OpenTelemetry's
/// `process.executable.build_id.htlhash`.
const HASHED_END: usize = 4096;

/// Longest build id accepted, in bytes; linkers write 16 to 32, Go about 83.
const LONGEST_BUILD_ID: usize = 512;

/// What identifies the contents of an object file across paths, machines and restarts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BuildId {
    /// The `NT_GNU_BUILD_ID` note.
    Gnu(Box<[u8]>),
    /// The build id that Go's linker writes into `.note.go.buildid`.
    Go(Box<str>),
    /// SHA-256 of first 4 KiB, last 4 KiB and length (big-endian u64), cut to 16 bytes:
    /// OpenTelemetry's `htlhash`.
    Hash([u8; 16]),
}

impl BuildId {
    /// The id of the object in `data`: GNU note, else Go note, else hash.
    pub(crate) fn of_elf<'data, Header: FileHeader>(
        elf: &ElfFile<'data, Header>,
        data: &'data [u8],
    ) -> Self {
        if let Ok(Some(id)) = elf.build_id()
            && !id.is_empty()
            && id.len() <= LONGEST_BUILD_ID
        {
            return Self::Gnu(id.into());
        }
        match go_build_id(elf) {
            Some(id) => Self::Go(id.into()),
            None => Self::hash_of(data),
        }
    }

    /// The `htlhash` of a file's bytes (OpenTelemetry semantic conventions,
    /// `process.executable.build_id.htlhash`).
    pub fn hash_of(data: &[u8]) -> Self {
        let end = data.len().min(HASHED_END);
        let mut hasher = Sha256::new();
        hasher.update(&data[..end]);
        hasher.update(&data[data.len() - end..]);
        hasher.update((data.len() as u64).to_be_bytes());
        let mut id = [0; 16];
        id.copy_from_slice(&hasher.finalize()[..16]);
        Self::Hash(id)
    }

    /// The GNU build id of these hexadecimal digits; `None` when they are none.
    pub fn from_gnu_hex(digits: &str) -> Option<Self> {
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hex || digits.is_empty() || digits.len() > 2 * LONGEST_BUILD_ID {
            return None;
        }
        let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
        let value = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
        let bytes: Option<Vec<u8>> = pairs
            .iter()
            .map(|[high, low]| Some(value(*high)? << 4 | value(*low)?))
            .collect();
        rest.is_empty().then_some(Self::Gnu(bytes?.into()))
    }

    /// The lower-case hexadecimal digits of a GNU build id, as debuginfod and `.build-id`
    /// directories use them.
    pub fn gnu_hex(&self) -> Option<String> {
        match self {
            Self::Gnu(bytes) => Some(hex(bytes)),
            Self::Go(_) | Self::Hash(_) => None,
        }
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gnu(bytes) => formatter.write_str(&hex(bytes)),
            Self::Go(text) => formatter.write_str(text),
            Self::Hash(bytes) => formatter.write_str(&hex(bytes)),
        }
    }
}

/// Reads the GNU build id of the running kernel from `/sys/kernel/notes`.
///
/// # Errors
/// When the file cannot be read; `Ok(None)` when it holds no build id.
pub fn kernel_build_id() -> std::io::Result<Option<BuildId>> {
    let notes = std::fs::read("/sys/kernel/notes")?;
    Ok(gnu_note(&notes).map(|id| BuildId::Gnu(id.into())))
}

/// Finds the `NT_GNU_BUILD_ID` note in the bytes of a note segment of this machine's byte order.
fn gnu_note(notes: &[u8]) -> Option<&[u8]> {
    const NT_GNU_BUILD_ID: u32 = 3;
    let mut rest = notes;
    loop {
        let (header, body) = rest.split_at_checked(12)?;
        let word = |at: usize| header[at..at + 4].try_into().map(u32::from_ne_bytes).ok();
        let (name_size, description_size, kind) = (word(0)? as usize, word(4)? as usize, word(8)?);
        let (name, after_name) = body.split_at_checked(name_size.checked_next_multiple_of(4)?)?;
        let description = after_name.get(..description_size)?;
        if kind == NT_GNU_BUILD_ID && name.starts_with(b"GNU\0") {
            return Some(description);
        }
        rest = after_name.get(description_size.checked_next_multiple_of(4)?..)?;
    }
}

/// `.note.go.buildid`: name `Go\0\0`, type 4, description the id as text (`cmd/internal/buildid` of
/// Go).
fn go_build_id<'data, Header: FileHeader>(elf: &ElfFile<'data, Header>) -> Option<&'data str> {
    let note = elf
        .section_by_name_bytes(b".note.go.buildid")?
        .data()
        .ok()?;
    let (header, body) = note.split_at_checked(16)?;
    if &header[12..16] != b"Go\0\0" {
        return None;
    }
    let mut size = [0; 4];
    size.copy_from_slice(&header[4..8]);
    let size = if elf.is_little_endian() {
        u32::from_le_bytes(size)
    } else {
        u32::from_be_bytes(size)
    };
    let id = body.get(..size as usize)?;
    if id.is_empty() || id.len() > LONGEST_BUILD_ID {
        return None;
    }
    std::str::from_utf8(id).ok()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        write!(digits, "{byte:02x}").expect("writing to a String cannot fail");
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_follows_the_semantic_convention() {
        // `(head -c4096 f; tail -c4096 f; printf '\0\0\0\0\0\0\0\3') | sha256sum` for a file `abc`.
        let mut hasher = Sha256::new();
        hasher.update(b"abcabc\0\0\0\0\0\0\0\x03");
        let digest = hasher.finalize();
        assert_eq!(
            BuildId::hash_of(b"abc"),
            BuildId::Hash(digest[..16].try_into().expect("sixteen of 32 bytes"))
        );
    }

    #[test]
    fn hash_sees_both_ends_and_the_length() {
        let base = vec![0_u8; 20_000];
        let reference = BuildId::hash_of(&base);
        for changed_at in [0, 4095, 19_999, 20_000 - 4096] {
            let mut changed = base.clone();
            changed[changed_at] = 1;
            assert_ne!(BuildId::hash_of(&changed), reference, "byte {changed_at}");
        }
        let mut middle = base.clone();
        middle[10_000] = 1;
        assert_eq!(BuildId::hash_of(&middle), reference);
        assert_ne!(BuildId::hash_of(&base[1..]), reference);
    }

    #[test]
    fn hexadecimal_digits_are_a_gnu_id() {
        let id = BuildId::from_gnu_hex("00aBff").expect("six digits");
        assert_eq!(id, BuildId::Gnu(Box::new([0x00, 0xab, 0xff])));
        assert_eq!(id.to_string(), "00abff");
        for text in [
            "",
            "abc",
            "0g",
            "go/text",
            &"00".repeat(LONGEST_BUILD_ID + 1),
        ] {
            assert_eq!(BuildId::from_gnu_hex(text), None, "{text}");
        }
    }

    #[test]
    fn cut_notes_are_no_panic() {
        let note = [
            4_u32.to_ne_bytes(),
            8_u32.to_ne_bytes(),
            3_u32.to_ne_bytes(),
            *b"GNU\0",
            *b"abcd",
            *b"efgh",
        ]
        .concat();
        assert_eq!(gnu_note(&note), Some(&b"abcdefgh"[..]));
        for end in 0..note.len() {
            assert_eq!(gnu_note(&note[..end]), None);
        }
        assert_eq!(gnu_note(&[0xff; 64]), None);
    }

    mod host_tests {
        use super::*;

        #[test]
        fn the_kernel_has_a_build_id() {
            let Ok(id) = kernel_build_id() else {
                eprintln!("skipped: /sys/kernel/notes is not readable here");
                return;
            };
            let digits = id
                .and_then(|id| id.gnu_hex())
                .expect("Linux is linked with a build id");
            assert_eq!(digits.len(), 40, "{digits}");
        }
    }
}
