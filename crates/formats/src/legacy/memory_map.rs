//! The files mapped into the process, as `/proc/PID/maps` and shorter tables tell it.
//!
//! Profilers write these tables behind their samples, under a heading or without one. Only code is
//! kept: addresses of samples are in nothing else.

use std::borrow::Cow;

use candela_model::Mapping;
use candela_model::MappingId;
use candela_model::SymbolTables;

use crate::error::ReadError;
use crate::legacy::lines::Lines;
use crate::options::Limits;
use crate::report::Report;
use crate::work::Work;

/// The ranges of code, that of the program first.
#[derive(Debug, Default)]
pub(crate) struct MemoryMap {
    ranges: Vec<CodeRange>,
    /// Positions of the ranges, by start.
    by_start: Vec<usize>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct CodeRange {
    start: u64,
    limit: u64,
    file_offset: u64,
    file: String,
    build_id: String,
}

/// A name for a part of paths.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Abbreviation {
    /// With the `$` that stands in front where it is used.
    name: String,
    value: String,
}

/// What stands in front of such a table where something else comes before it.
const HEADINGS: [&str; 2] = ["--- Memory map: ---", "MAPPED_LIBRARIES:"];

/// Paths are no longer on Linux.
const MAX_PATH_BYTES: usize = 4096;

/// Tables that shorten paths can blow up; real ones stay far below.
const MAX_ALL_PATH_BYTES: usize = 16 << 20;

/// Names for parts of paths; real tables have one.
const MAX_ABBREVIATIONS: usize = 16;

/// Where Linux puts programs that are not position independent.
const USUAL_START: u64 = 0x40_0000;

/// Whether a line is the heading of a table.
pub(crate) fn is_heading(line: &str) -> bool {
    HEADINGS.iter().any(|heading| line.contains(heading))
}

/// The table behind a heading in `lines`; empty without one.
pub(crate) fn read_behind_heading(
    lines: &mut Lines<'_>,
    limits: &Limits,
    report: &mut Report,
) -> MemoryMap {
    let _ = lines.find(|line| is_heading(line.text));
    MemoryMap::read(lines.rest(), limits, report)
}

impl MemoryMap {
    /// Reads a table. Lines that are none of it are passed over: it is the last thing in a file, and
    /// the samples before it are worth more than its last line.
    pub(crate) fn read(text: &str, limits: &Limits, report: &mut Report) -> Self {
        let mut ranges: Vec<CodeRange> = Vec::new();
        let mut abbreviations: Vec<Abbreviation> = Vec::new();
        let mut work = Work::new(limits);
        let most_path_bytes = MAX_ALL_PATH_BYTES.min(limits.inflated_bytes());
        let mut path_bytes = 0;
        for line in Lines::new(text) {
            let line = without_log_prefix(line.text);
            let Ok(line) = expanded(line, &abbreviations, &mut work) else {
                note_cut_off(report);
                break;
            };
            let Some(range) = parse_line(&line, limits) else {
                if abbreviations.len() < MAX_ABBREVIATIONS {
                    abbreviations.extend(Abbreviation::parse(&line));
                }
                continue;
            };
            let Some(range) = range else {
                continue;
            };
            path_bytes += range.file.len() + range.build_id.len();
            if path_bytes > most_path_bytes {
                note_cut_off(report);
                break;
            }
            match ranges.last_mut() {
                Some(last) if last.continues_in(&range) => last.take_in(range),
                _ => ranges.push(range),
            }
        }
        Self::of(ranges)
    }

    fn of(mut ranges: Vec<CodeRange>) -> Self {
        if let Some(main) = ranges.iter().position(CodeRange::may_be_the_program) {
            ranges.swap(0, main);
        }
        if ranges.len() > 1
            && ranges[0].file.starts_with("/anon_hugepage")
            && ranges[0].limit == ranges[1].start
        {
            // The text of a program that was moved to huge pages; what follows is its file.
            ranges.remove(0);
        }
        if let Some(main) = ranges.first_mut()
            && main.start.checked_sub(main.file_offset) == Some(USUAL_START)
        {
            main.start = USUAL_START;
            main.file_offset = 0;
        }
        let mut by_start: Vec<usize> = (0..ranges.len()).collect();
        by_start.sort_by_key(|&position| ranges[position].start);
        Self { ranges, by_start }
    }

    /// The ids of the mappings of these addresses. All ranges become mappings, used or not.
    pub(crate) fn mappings_of(
        mut self,
        addresses: &[u64],
        symbols: &mut SymbolTables,
    ) -> Vec<MappingId> {
        let positions: Vec<Option<usize>> = addresses
            .iter()
            .map(|&address| self.position_of(address))
            .collect();
        let mut ids = Vec::with_capacity(self.ranges.len());
        for range in &self.ranges {
            let mapping = Mapping {
                memory_start: range.start,
                memory_limit: range.limit,
                file_offset: range.file_offset,
                file: symbols.strings.intern(&range.file),
                build_id: symbols.strings.intern(&range.build_id),
            };
            ids.push(symbols.intern_mapping(mapping));
        }
        let of_position = |position: Option<usize>| position.map_or(MappingId(0), |at| ids[at]);
        positions.into_iter().map(of_position).collect()
    }

    /// The range that holds an address. Where the first part of a file is missing from the table, the
    /// part behind it grows to where the file begins.
    fn position_of(&mut self, address: u64) -> Option<usize> {
        let ranges = &mut self.ranges;
        let behind = self
            .by_start
            .partition_point(|&position| ranges[position].start <= address);
        let before = behind.checked_sub(1).map(|at| self.by_start[at]);
        if let Some(position) = before
            && address < ranges[position].limit
        {
            return Some(position);
        }
        let position = *self.by_start.get(behind)?;
        let range = &mut ranges[position];
        let file_start = range.start.checked_sub(range.file_offset)?;
        if range.file_offset == 0 || address < file_start {
            return None;
        }
        range.start = file_start;
        range.file_offset = 0;
        Some(position)
    }
}

impl Abbreviation {
    /// `build=/path/of/the/build`. Names and values are cut to what may come of them, as lines repeat
    /// them. A name has no further `$`, so that to look for names takes one step for each byte.
    fn parse(line: &str) -> Option<Self> {
        let (name, value) = line.split_once('=')?;
        let name = name.trim();
        let is_name = !name.is_empty() && name.len() < MAX_PATH_BYTES && !name.contains('$');
        is_name.then(|| Self {
            name: format!("${name}"),
            value: cut_path(value.trim()).to_owned(),
        })
    }
}

impl CodeRange {
    /// Whether the next line of a table goes on with the same file.
    fn continues_in(&self, next: &Self) -> bool {
        let differ = |one: &str, other: &str| !one.is_empty() && !other.is_empty() && one != other;
        if differ(&self.file, &next.file) || differ(&self.build_id, &next.build_id) {
            return false;
        }
        let length = self.limit.wrapping_sub(self.start);
        let offsets_fit = self.file_offset == 0
            || next.file_offset == 0
            || self.file_offset.wrapping_add(length) == next.file_offset;
        self.limit == next.start && offsets_fit
    }

    fn take_in(&mut self, next: Self) {
        self.limit = next.limit;
        if !next.file.is_empty() {
            self.file = next.file;
        }
        if !next.build_id.is_empty() {
            self.build_id = next.build_id;
        }
    }

    /// Whether it is neither a library nor something of the kernel.
    fn may_be_the_program(&self) -> bool {
        let is_library = self.file.ends_with(".so")
            || [".so.", ".so_"].iter().any(|infix| {
                let mut places = self.file.match_indices(infix);
                places.any(|(at, _)| {
                    let behind = self.file.as_bytes().get(at + infix.len());
                    behind.is_some_and(u8::is_ascii_digit)
                })
            });
        !self.file.is_empty() && !self.file.starts_with('[') && !is_library
    }
}

/// A line of any of the tables: `None` when it is none, `Some(None)` when it is not of code.
///
/// Known are `START-END PERMISSIONS OFFSET DEVICE INODE PATH` (Linux) and
/// `START-END[:] [PERMISSIONS] PATH [(@OFFSET)] [BUILD_ID]`, numbers with or without `0x`.
fn parse_line(line: &str, limits: &Limits) -> Option<Option<CodeRange>> {
    let (start, rest) = hex_number(line.trim_start())?;
    let rest = rest.trim_start();
    let (limit, rest) = hex_number(rest.strip_prefix('-').unwrap_or(rest).trim_start())?;
    let mut rest = rest.strip_prefix(':').unwrap_or(rest);
    if !rest.is_empty() && !rest.starts_with(char::is_whitespace) {
        return None;
    }
    let (word, behind) = split_word(rest);
    let has_permissions = word.len() >= 3 && word.bytes().all(|byte| b"-rwxps".contains(&byte));
    if has_permissions {
        if !word.contains('x') {
            return Some(None);
        }
        rest = behind;
    }
    let mut range = CodeRange {
        start,
        limit,
        ..CodeRange::default()
    };
    if let Some((file_offset, path)) = linux_columns(rest) {
        range.file_offset = file_offset;
        let path = path.trim();
        let path = path.strip_suffix(" (deleted)").unwrap_or(path);
        range.file = limits.cut(cut_path(path)).to_owned();
        return Some(Some(range));
    }
    let (file, mut rest) = split_word(rest);
    range.file = limits.cut(cut_path(file)).to_owned();
    let (word, behind) = split_word(rest);
    if let Some(digits) = word
        .strip_prefix("(@")
        .and_then(|word| word.strip_suffix(')'))
    {
        range.file_offset = u64::from_str_radix(digits, 16).ok()?;
        rest = behind;
    }
    let (build_id, _) = split_word(rest);
    if build_id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        range.build_id = limits.cut(cut_path(build_id)).to_ascii_lowercase();
    }
    Some(Some(range))
}

/// Offset in the file and path of `OFFSET DEVICE INODE PATH`.
fn linux_columns(rest: &str) -> Option<(u64, &str)> {
    let (offset, rest) = split_word(rest);
    let (device, rest) = split_word(rest);
    let (inode, path) = split_word(rest);
    let (major, minor) = device.split_once(':')?;
    let is_hex = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_inode = !inode.is_empty() && inode.bytes().all(|byte| byte.is_ascii_digit());
    let is_row = is_hex(major) && is_hex(minor) && is_inode;
    let file_offset = u64::from_str_radix(offset, 16).ok()?;
    is_row.then_some((file_offset, path))
}

/// The first word and what is behind it.
fn split_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()))
}

fn hex_number(text: &str) -> Option<(u64, &str)> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let end = digits
        .bytes()
        .position(|byte| !byte.is_ascii_hexdigit())
        .unwrap_or(digits.len());
    let (digits, rest) = digits.split_at(end);
    Some((u64::from_str_radix(digits, 16).ok()?, rest))
}

/// Tables that went through a log have `FILE:LINE] ` in front of each line.
fn without_log_prefix(line: &str) -> &str {
    let Some((prefix, rest)) = line.split_once("] ") else {
        return line;
    };
    let number = prefix.rsplit_once(':').map_or("", |(_, number)| number);
    let is_prefix = !prefix.contains('[')
        && !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit());
    if is_prefix { rest } else { line }
}

/// As much of a path as is of use.
fn cut_path(path: &str) -> &str {
    &path[..path.floor_char_boundary(MAX_PATH_BYTES)]
}

fn note_cut_off(report: &mut Report) {
    report.note(
        "mappings_left_out",
        "a table of mapped files with too long paths was cut off",
    );
}

/// A line with what its abbreviations stand for, no longer than is of use.
fn expanded<'t>(
    line: &'t str,
    abbreviations: &[Abbreviation],
    work: &mut Work,
) -> Result<Cow<'t, str>, ReadError> {
    if abbreviations.is_empty() || !line.contains('$') {
        return Ok(Cow::Borrowed(line));
    }
    let mut expanded = String::new();
    let mut rest = line;
    while let Some(place) = rest.find('$')
        && expanded.len() < MAX_PATH_BYTES
    {
        let (before, from) = rest.split_at(place);
        expanded.push_str(before);
        let known = abbreviations
            .iter()
            .find(|known| from.starts_with(&known.name));
        let (value, length) = known.map_or(("$", 1), |known| (&known.value, known.name.len()));
        work.spend(value.len())?;
        expanded.push_str(value);
        rest = &from[length..];
    }
    expanded.push_str(rest);
    Ok(Cow::Owned(expanded))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, limit: u64, file_offset: u64, file: &str, build_id: &str) -> CodeRange {
        CodeRange {
            start,
            limit,
            file_offset,
            file: file.to_owned(),
            build_id: build_id.to_owned(),
        }
    }

    fn read(text: &str) -> Vec<CodeRange> {
        MemoryMap::read(text, &Limits::default(), &mut Report::default()).ranges
    }

    #[test]
    fn lines_of_all_tables_are_read() {
        let cases = [
            (
                "7f00-8f00 r-xp 00001000 08:01 123   /lib/a b.so (deleted)",
                range(0x7f00, 0x8f00, 0x1000, "/lib/a b.so", ""),
            ),
            (
                "  7f00-8f00: /lib/a.so",
                range(0x7f00, 0x8f00, 0, "/lib/a.so", ""),
            ),
            (
                "0x40 0x80 r-x /bin/x (@FF00) ABC123456",
                range(0x40, 0x80, 0xff00, "/bin/x", "abc123456"),
            ),
            (
                "maps.cc:12] 40-80 /bin/x abcd",
                range(0x40, 0x80, 0, "/bin/x", "abcd"),
            ),
            ("40-80: [vdso]", range(0x40, 0x80, 0, "[vdso]", "")),
            ("40-80", range(0x40, 0x80, 0, "", "")),
        ];
        for (line, expected) in cases {
            assert_eq!(read(line), [expected], "{line}");
        }
        for none in [
            "40-80 rw-p 0 08:01 1 /bin/x",
            "",
            "cat-dog x",
            "40",
            "40-80x y",
        ] {
            assert_eq!(read(none), [], "{none}");
        }
    }

    #[test]
    fn parts_of_a_file_are_one_and_the_program_comes_first() {
        let text = "\
            build=/builds/7\n\
            100-200 r-xp 00000000 00:00 1 /lib/c.so.6\n\
            300-400 r-xp 00001000 00:00 1 $build/program\n\
            400-500 r-xp 00001100 00:00 1 $build/program\n\
            500-600 r-xp 00009000 00:00 1 $build/program\n";
        let expected = [
            range(0x300, 0x500, 0x1000, "/builds/7/program", ""),
            range(0x100, 0x200, 0, "/lib/c.so.6", ""),
            range(0x500, 0x600, 0x9000, "/builds/7/program", ""),
        ];
        assert_eq!(read(text), expected);
    }

    #[test]
    fn addresses_before_the_known_part_of_a_file_are_of_it() {
        let mut symbols = SymbolTables::default();
        let text = "5000-6000 r-xp 00001000 00:00 1 /bin/x\n";
        let map = MemoryMap::read(text, &Limits::default(), &mut Report::default());
        let ids = map.mappings_of(&[0x3fff, 0x4000, 0x5fff, 0x6000], &mut symbols);
        assert_eq!(ids, [0, 1, 1, 0].map(MappingId));
        assert_eq!(symbols.mapping(MappingId(1)).memory_start, 0x4000);
        assert_eq!(symbols.mapping(MappingId(1)).file_offset, 0);
    }

    #[test]
    fn abbreviations_do_not_blow_up() {
        let mut text = "a=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n".to_owned();
        for name in "bcdefghijklmnopqrstuvwxyz".chars() {
            let before = char::from(name as u8 - 1);
            text.push_str(&format!("{name}={}\n", format!("${before}").repeat(40)));
        }
        text.push_str("10-20 $z\n10-20 $o$o$o\n");
        assert!(
            read(&text)
                .iter()
                .all(|range| range.file.len() <= MAX_PATH_BYTES)
        );
    }

    #[test]
    fn abbreviations_pay_for_what_they_repeat() {
        let text = format!("a={}\n{}", "/x".repeat(50), "10-20 $a\n".repeat(100));
        let read = |max_inflated_bytes| {
            let limits = Limits {
                max_inflated_bytes,
                ..Limits::default()
            };
            let mut report = Report::default();
            let map = MemoryMap::read(&text, &limits, &mut report);
            (map.ranges.len(), report.count("mappings_left_out"))
        };
        assert_eq!(read(100 * 100), (100, 0));
        assert_eq!(read(100 * 100 - 1), (99, 1));
    }

    #[test]
    fn values_are_no_longer_than_paths() {
        let line = format!("a={}", "x".repeat(1 << 20));
        let cut = Abbreviation::parse(&line).expect("a definition");
        assert_eq!(cut.value.len(), MAX_PATH_BYTES);
        for none in ["$$=x", " =x", "a"] {
            assert_eq!(Abbreviation::parse(none), None, "{none}");
        }
    }
}
