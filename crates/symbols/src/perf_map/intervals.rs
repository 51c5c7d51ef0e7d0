//! The map itself: address ranges with names, where a later line replaces what it overlaps.

use crate::frame::{FrameLanguage, SourceFrame};
use std::collections::BTreeMap;
use std::ops::Range;

/// Longest name kept, in bytes; the rest is cut.
const LONGEST_NAME: usize = 4096;

/// Names below this many bytes are not worth compacting.
const SMALLEST_COMPACTION: usize = 64 * 1024;

/// The code that covers an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JitSymbol<'map> {
    /// The name as the runtime wrote it.
    pub name: &'map str,
    /// Where the code starts.
    pub address: u64,
}

impl JitSymbol<'_> {
    /// The symbol as a frame, with the runtime guessed from the name's form.
    pub fn to_frame(self) -> SourceFrame {
        SourceFrame::named(self.name, runtime_of(self.name))
    }
}

/// Address ranges with names, none overlapping.
#[derive(Debug, Default)]
pub struct PerfMap {
    by_start: BTreeMap<u64, Code>,
    names: String,
    /// Bytes of `names` that some range still refers to; two halves of a cut range count twice.
    live_name_bytes: usize,
    malformed_lines: u64,
}

#[derive(Debug, Clone, Copy)]
struct Code {
    end: u64,
    name_at: u32,
    name_size: u32,
}

impl Code {
    fn name_range(&self) -> Range<usize> {
        let start = self.name_at as usize;
        start..start + self.name_size as usize
    }
}

impl PerfMap {
    /// Takes over one line: start and size in hexadecimal, then the name, which may hold spaces. A
    /// line of another form is counted and skipped.
    pub fn add_line(&mut self, line: &str) {
        let Some((start, end, name)) = parse_line(line) else {
            self.malformed_lines += 1;
            return;
        };
        self.insert(start, end, name);
    }

    /// The code that covers `address`.
    pub fn find(&self, address: u64) -> Option<JitSymbol<'_>> {
        let (start, code) = self.by_start.range(..=address).next_back()?;
        (address < code.end).then(|| JitSymbol {
            name: &self.names[code.name_range()],
            address: *start,
        })
    }

    /// Number of ranges.
    pub fn len(&self) -> usize {
        self.by_start.len()
    }

    /// Whether there is no range.
    pub fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }

    /// Lines that were not of the format.
    pub fn malformed_lines(&self) -> u64 {
        self.malformed_lines
    }

    /// Estimated heap in bytes.
    pub fn heap_bytes(&self) -> usize {
        // A B-tree's nodes are two thirds full on average.
        self.names.capacity() + self.by_start.len() * (size_of::<u64>() + size_of::<Code>()) * 3 / 2
    }

    fn insert(&mut self, start: u64, end: u64, name: &str) {
        self.clear_range(start, end);
        let Ok(name_at) = u32::try_from(self.names.len()) else {
            return;
        };
        self.names.push_str(name);
        self.add_code(
            start,
            Code {
                end,
                name_at,
                name_size: name.len() as u32,
            },
        );
        if self.names.len() > SMALLEST_COMPACTION && self.live_name_bytes < self.names.len() / 2 {
            self.compact_names();
        }
    }

    /// Cuts `start..end` out of what is there.
    fn clear_range(&mut self, start: u64, end: u64) {
        if let Some((before, code)) = self.by_start.range(..start).next_back()
            && code.end > start
        {
            let (before, code) = (*before, *code);
            self.add_code(before, Code { end: start, ..code });
            if code.end > end {
                self.add_code(end, code);
            }
        }
        while let Some((inside, code)) = self.by_start.range(start..end).next() {
            let (inside, code) = (*inside, *code);
            self.remove_code(inside);
            if code.end > end {
                self.add_code(end, code);
            }
        }
    }

    fn add_code(&mut self, start: u64, code: Code) {
        self.remove_code(start);
        self.live_name_bytes += code.name_size as usize;
        self.by_start.insert(start, code);
    }

    fn remove_code(&mut self, start: u64) {
        if let Some(removed) = self.by_start.remove(&start) {
            self.live_name_bytes -= removed.name_size as usize;
        }
    }

    /// Drops the names of code that was replaced: runtimes recompile and reuse memory for as long
    /// as they live.
    fn compact_names(&mut self) {
        let mut names = String::with_capacity(self.live_name_bytes);
        for code in self.by_start.values_mut() {
            let name_at = names.len() as u32;
            names.push_str(&self.names[code.name_range()]);
            code.name_at = name_at;
        }
        self.names = names;
    }
}

fn parse_line(line: &str) -> Option<(u64, u64, &str)> {
    let (start, rest) = line.trim_start().split_once(' ')?;
    let (size, name) = rest.trim_start().split_once(' ')?;
    let hexadecimal = |digits: &str| u64::from_str_radix(digits.trim_start_matches("0x"), 16).ok();
    let (start, size) = (hexadecimal(start)?, hexadecimal(size)?);
    let name = name.trim();
    let end = start.checked_add(size)?;
    if name.is_empty() || size == 0 {
        return None;
    }
    let mut cut = name.len().min(LONGEST_NAME);
    while !name.is_char_boundary(cut) {
        cut -= 1;
    }
    Some((start, end, &name[..cut]))
}

/// Guesses the runtime from how it writes names: CPython's trampoline `py::function:file`, V8's
/// `JS:`, `LazyCompile:` and its kin, the JVM's `Lpackage/Class;::method` (perf-map-agent) or
/// `package.Class::method`.
fn runtime_of(name: &str) -> FrameLanguage {
    const V8_PREFIXES: [&str; 14] = [
        "JS:",
        "LazyCompile:",
        "Function:",
        "Eval:",
        "Script:",
        "Builtin:",
        "BytecodeHandler:",
        "RegExp:",
        "Stub:",
        "Handler:",
        "wasm-function",
        "LoadIC:",
        "Callback:",
        "CPP:",
    ];
    if name.starts_with("py::") {
        return FrameLanguage::Cpython;
    }
    if V8_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
        return FrameLanguage::V8;
    }
    let is_java = (name.starts_with('L') && name.contains(";::"))
        || name == "Interpreter"
        || name
            .split_once("::")
            .is_some_and(|(class, _)| class.contains('.') && !class.contains(' '));
    if is_java {
        FrameLanguage::Jvm
    } else {
        FrameLanguage::Native
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_are_read_as_perf_reads_them() {
        let mut map = PerfMap::default();
        for line in [
            "1000 20 JS:~main file.js:1",
            "0x2000 0x10 py::f:/app/main.py",
            "",
            "xyz 1 a",
            "10 0 none",
            "10 5",
        ] {
            map.add_line(line);
        }
        assert_eq!(
            map.find(0x1000).map(|symbol| symbol.name),
            Some("JS:~main file.js:1")
        );
        assert_eq!(map.find(0x101f).map(|symbol| symbol.address), Some(0x1000));
        assert_eq!(map.find(0x1020), None);
        assert_eq!(
            map.find(0x200f).map(|symbol| symbol.name),
            Some("py::f:/app/main.py")
        );
        assert_eq!((map.len(), map.malformed_lines()), (2, 4));
    }

    #[test]
    fn runtimes_are_told_apart() {
        let language = |name| JitSymbol { name, address: 0 }.to_frame().language;
        assert_eq!(language("py::work:/app/a.py"), FrameLanguage::Cpython);
        assert_eq!(language("JS:*fib /app/a.js:3:1"), FrameLanguage::V8);
        assert_eq!(language("Ljava/lang/String;::hashCode"), FrameLanguage::Jvm);
        assert_eq!(language("java.lang.String::hashCode"), FrameLanguage::Jvm);
        assert_eq!(language("luajit_trace_3"), FrameLanguage::Native);
    }

    #[test]
    fn replaced_names_are_given_back() {
        let mut map = PerfMap::default();
        let name = "x".repeat(1000);
        for _ in 0..10_000 {
            map.add_line(&format!("1000 10 {name}"));
        }
        assert_eq!(map.len(), 1);
        assert!(
            map.heap_bytes() < 4 * SMALLEST_COMPACTION,
            "{}",
            map.heap_bytes()
        );
        assert_eq!(
            map.find(0x1005).map(|symbol| symbol.name),
            Some(name.as_str())
        );
    }

    proptest! {
        /// Against the definition: the last line that covers an address names it.
        #[test]
        fn later_lines_win(lines in prop::collection::vec((0_u64..200, 1_u64..60), 0..60)) {
            let mut map = PerfMap::default();
            for ((start, size), number) in lines.iter().zip(0..) {
                map.add_line(&format!("{start:x} {size:x} code {number}"));
            }
            for address in 0..300 {
                let covering = |(start, size): &(u64, u64)| *start <= address && address < start + size;
                let expected = lines.iter().rposition(covering).map(|number| format!("code {number}"));
                prop_assert_eq!(map.find(address).map(|symbol| symbol.name.to_owned()), expected);
            }
            let live: usize = map.by_start.values().map(|code| code.name_size as usize).sum();
            prop_assert_eq!(map.live_name_bytes, live);
        }

        #[test]
        fn any_line_is_no_panic(line in "\\PC{0,60}") {
            PerfMap::default().add_line(&line);
        }
    }
}
