//! `/proc/PID/maps`, read fast: the agent does it for every process that it samples, and some have a
//! hundred thousand mappings.

use std::fs::File;
use std::io;
use std::io::Read;

/// The largest file read, bytes: about four hundred thousand mappings.
const LARGEST_MAPS: u64 = 64 << 20;

/// One line of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MapsLine<'a> {
    /// First address.
    pub(crate) start: u64,
    /// First address behind it.
    pub(crate) end: u64,
    /// Whether code may run there.
    pub(crate) is_executable: bool,
    /// Offset in the file, bytes.
    pub(crate) file_offset: u64,
    /// Device of the file, major and minor number.
    pub(crate) device: (u32, u32),
    /// Inode number; 0 for memory without file.
    pub(crate) inode: u64,
    /// Path, `[name]`, or nothing. A line feed in a path stands as `\012`.
    pub(crate) path: &'a [u8],
}

/// Reads the maps file of a process into `buffer`, as much of it as is read of any.
pub(crate) fn read_maps(pid: u32, buffer: &mut Vec<u8>) -> io::Result<()> {
    buffer.clear();
    let file = File::open(format!("/proc/{pid}/maps"))?;
    file.take(LARGEST_MAPS).read_to_end(buffer)?;
    // One process with very many mappings must not cost its size for ever.
    buffer.shrink_to(buffer.len().max(1 << 20));
    Ok(())
}

/// The lines of a maps file; lines of another form are skipped.
pub(crate) fn parse_maps(text: &[u8]) -> impl Iterator<Item = MapsLine<'_>> {
    text.split(|&byte| byte == b'\n').filter_map(parse_line)
}

fn parse_line(line: &[u8]) -> Option<MapsLine<'_>> {
    let mut cursor = Cursor { rest: line };
    let start = cursor.hexadecimal(b'-')?;
    let end = cursor.hexadecimal(b' ')?;
    let (permissions, rest) = cursor.rest.split_at_checked(5)?;
    cursor.rest = rest;
    let file_offset = cursor.hexadecimal(b' ')?;
    let major = cursor.hexadecimal(b':')?;
    let minor = cursor.hexadecimal(b' ')?;
    let inode = cursor.decimal()?;
    Some(MapsLine {
        start,
        end,
        is_executable: permissions[2] == b'x',
        file_offset,
        device: (u32::try_from(major).ok()?, u32::try_from(minor).ok()?),
        inode,
        path: cursor.rest.trim_ascii_start(),
    })
}

struct Cursor<'a> {
    rest: &'a [u8],
}

impl Cursor<'_> {
    /// A hexadecimal number and the byte that ends it.
    fn hexadecimal(&mut self, end: u8) -> Option<u64> {
        let mut value: u64 = 0;
        for (position, &byte) in self.rest.iter().enumerate() {
            let digit = match byte {
                b'0'..=b'9' => byte - b'0',
                b'a'..=b'f' => byte - b'a' + 10,
                _ if byte == end && (1..=16).contains(&position) => {
                    self.rest = &self.rest[position + 1..];
                    return Some(value);
                }
                _ => return None,
            };
            value = value << 4 | u64::from(digit);
        }
        None
    }

    fn decimal(&mut self) -> Option<u64> {
        let digits = self
            .rest
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let (number, rest) = self.rest.split_at(digits);
        self.rest = rest;
        std::str::from_utf8(number).ok()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_of_the_kernel() {
        let text = b"55d0c1a5e000-55d0c1a64000 r-xp 00002000 fe:00 247278                     /usr/bin/head\n\
            7f0000000000-7f0000001000 rwxp 00000000 00:00 0 \n\
            7f0000002000-7f0000003000 r-xp 00000000 00:01 1026   /memfd:doublemapper (deleted)\n\
            7ffe3b5fd000-7ffe3b5ff000 r-xp 00000000 00:00 0                          [vdso]\n\
            ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n";
        let lines: Vec<_> = parse_maps(text).collect();
        assert_eq!(lines.len(), 5);
        assert_eq!(lines[0].file_offset, 0x2000);
        assert_eq!(lines[0].device, (0xfe, 0));
        assert_eq!(lines[0].inode, 247_278);
        assert_eq!(lines[0].path, b"/usr/bin/head");
        assert!(lines[0].is_executable);
        assert_eq!(lines[1].path, b"");
        assert_eq!(lines[2].path, b"/memfd:doublemapper (deleted)");
        assert_eq!(lines[3].path, b"[vdso]");
        assert_eq!(lines[4].start, 0xffff_ffff_ff60_0000);
    }

    #[test]
    fn our_own_maps_have_our_code() {
        let text = std::fs::read("/proc/self/maps").expect("our own maps");
        let lines = text
            .split(|&byte| byte == b'\n')
            .filter(|line| !line.is_empty());
        assert_eq!(parse_maps(&text).count(), lines.count());
        let here = our_own_maps_have_our_code as fn() as usize as u64;
        let line = parse_maps(&text).find(|line| (line.start..line.end).contains(&here));
        assert!(line.expect("a mapping of this function").is_executable);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(text in proptest::collection::vec(any::<u8>(), 0..400)) {
            parse_maps(&text).count();
        }

        #[test]
        fn addresses_round_trip(start: u64, end: u64, offset: u64, inode: u64) {
            let text = format!("{start:x}-{end:x} r-xp {offset:08x} 08:1f {inode} /a b\n");
            let line = parse_maps(text.as_bytes()).next().expect("a line");
            prop_assert_eq!((line.start, line.end, line.file_offset), (start, end, offset));
            prop_assert_eq!((line.inode, line.path), (inode, &b"/a b"[..]));
        }
    }
}
