//! Small ELF images made by hand, for what no compiler writes.

/// `SHT_PROGBITS`.
pub(crate) const BYTES: u32 = 1;
/// `SHT_NOBITS`: a size without bytes.
pub(crate) const NO_BYTES: u32 = 8;
/// `SHF_ALLOC | SHF_EXECINSTR`.
pub(crate) const CODE: u64 = 6;
/// `SHF_ALLOC`.
pub(crate) const LOADED: u64 = 2;
/// `SHF_COMPRESSED`.
pub(crate) const COMPRESSED: u64 = 0x800;

/// A section of an image.
pub(crate) struct Section {
    pub(crate) name: &'static str,
    pub(crate) kind: u32,
    pub(crate) flags: u64,
    pub(crate) address: u64,
    pub(crate) bytes: Vec<u8>,
    /// The size that the header claims.
    pub(crate) size: u64,
}

impl Section {
    pub(crate) fn new(name: &'static str, flags: u64, address: u64, bytes: Vec<u8>) -> Section {
        Section {
            name,
            kind: BYTES,
            flags,
            address,
            size: bytes.len() as u64,
            bytes,
        }
    }
}

/// An x86-64 shared object of these sections, without segments.
pub(crate) fn elf(sections: &[Section]) -> Vec<u8> {
    const HEADER: usize = 64;
    let mut names = vec![0];
    let mut body = Vec::new();
    let mut headers = vec![0; 64];
    for section in sections {
        let name = names.len() as u32;
        names.extend(section.name.bytes().chain([0]));
        let offset = (HEADER + body.len()) as u64;
        body.extend(&section.bytes);
        headers.extend(section_header(name, section, offset));
    }
    let name = names.len() as u32;
    names.extend(b".shstrtab\0");
    let mut names = Section::new(".shstrtab", 0, 0, names);
    names.kind = 3;
    headers.extend(section_header(name, &names, (HEADER + body.len()) as u64));
    body.extend(names.bytes);

    let mut image = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    image.extend([3, 0, 62, 0, 1, 0, 0, 0]);
    image.extend([0; 16]);
    image.extend(((HEADER + body.len()) as u64).to_le_bytes());
    let section_count = sections.len() as u16 + 2;
    image.extend([0; 4]);
    for half in [64, 56, 0, 64, section_count, section_count - 1] {
        image.extend(u16::to_le_bytes(half));
    }
    image.extend(body);
    image.extend(headers);
    image
}

fn section_header(name: u32, section: &Section, offset: u64) -> Vec<u8> {
    let mut header = Vec::new();
    header.extend(name.to_le_bytes());
    header.extend(section.kind.to_le_bytes());
    for word in [
        section.flags,
        section.address,
        offset,
        section.size,
        0,
        1,
        0,
    ] {
        header.extend(word.to_le_bytes());
    }
    header
}

/// `.eh_frame` of functions given by start, length and call frame instructions; at entry the CFA is
/// rsp + 8.
pub(crate) fn eh_frame(functions: &[(u64, u64, &[u8])]) -> Vec<u8> {
    // Version 1, "zR", code alignment 1, data alignment -8, return address 16, absolute pointers.
    let cie = [
        0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0, 0x0c, 7, 8, 0x90, 1,
    ];
    let mut section = Vec::new();
    section.extend((cie.len() as u32).to_le_bytes());
    section.extend(cie);
    for (start, length, instructions) in functions {
        let entry_length = 4 + 16 + 1 + instructions.len() as u32;
        section.extend(entry_length.to_le_bytes());
        section.extend((section.len() as u32).to_le_bytes());
        section.extend(start.to_le_bytes());
        section.extend(length.to_le_bytes());
        section.push(0);
        section.extend(*instructions);
    }
    section.extend([0; 4]);
    section
}

/// A Go function: its offset in the text, its name, and its stack heights as in the file.
pub(crate) struct GoFunction {
    pub(crate) offset: u32,
    pub(crate) name: &'static str,
    pub(crate) heights: &'static [u8],
}

/// `.gopclntab` as Go 1.20 writes it, of functions that end at `text_start + end`.
pub(crate) fn pclntab(text_start: u64, functions: &[GoFunction], end: u32) -> Vec<u8> {
    const RECORD: usize = 44;
    let mut names = Vec::new();
    let mut heights = vec![0];
    let mut records = Vec::new();
    let mut entries = Vec::new();
    let entries_size = 8 * functions.len() + 4;
    for (number, function) in functions.iter().enumerate() {
        entries.extend(function.offset.to_le_bytes());
        entries.extend(((entries_size + RECORD * number) as u32).to_le_bytes());
        let pcsp = heights.len() as u32;
        for field in [function.offset, names.len() as u32, 0, 0, pcsp] {
            records.extend(field.to_le_bytes());
        }
        records.extend([0; RECORD - 20]);
        names.extend(function.name.bytes().chain([0]));
        heights.extend(function.heights);
    }
    entries.extend(end.to_le_bytes());
    let names_at = 72;
    let heights_at = names_at + names.len();
    let functions_at = heights_at + heights.len();
    let mut table = vec![0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8];
    for word in [
        functions.len() as u64,
        0,
        text_start,
        names_at as u64,
        0,
        0,
        heights_at as u64,
        functions_at as u64,
    ] {
        table.extend(word.to_le_bytes());
    }
    for part in [names, heights, entries, records] {
        table.extend(part);
    }
    table
}

/// `contents` as a compressed section that claims to unpack to `size` bytes. The stream is zlib
/// with one stored block.
pub(crate) fn compressed(contents: &[u8], size: u64) -> Vec<u8> {
    let mut section = vec![1, 0, 0, 0, 0, 0, 0, 0];
    section.extend(size.to_le_bytes());
    section.extend(1_u64.to_le_bytes());
    let length = u16::try_from(contents.len()).expect("a test's section is small");
    section.extend([0x78, 0x01, 0x01]);
    section.extend(length.to_le_bytes());
    section.extend((!length).to_le_bytes());
    section.extend(contents);
    let (mut low, mut high) = (1_u32, 0_u32);
    for byte in contents {
        low = (low + u32::from(*byte)) % 65521;
        high = (high + low) % 65521;
    }
    section.extend((high << 16 | low).to_be_bytes());
    section
}
