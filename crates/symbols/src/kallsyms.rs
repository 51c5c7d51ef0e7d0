//! Kernel symbols from `/proc/kallsyms`: the kernel, its modules, and BPF programs.

use crate::error::Error;
use crate::frame::{FrameLanguage, SourceFrame};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

const KALLSYMS: &str = "/proc/kallsyms";

/// Kernel addresses have their top bit set on every 64-bit architecture; per-CPU offsets and
/// constants do not.
const LOWEST_KERNEL_ADDRESS: u64 = 1 << 63;

/// How far a symbol may reach when no other follows it closely, in bytes. `kallsyms` has no sizes,
/// and an address far behind the last symbol of a module belongs to nobody.
const LONGEST_FUNCTION: u64 = 1 << 20;

/// Marks an address where named code ends, e.g. the first data symbol after it.
const NO_NAME: u32 = u32::MAX;

/// Module number of what is built into the kernel.
const BUILT_IN: u16 = 0;

/// A kernel function, or a BPF program (whose module is `bpf`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelSymbol<'symbols> {
    /// The symbol's name as the kernel has it.
    pub name: &'symbols str,
    /// The module without brackets; `None` for what is built in.
    pub module: Option<&'symbols str>,
    /// Where the symbol starts.
    pub address: u64,
}

impl KernelSymbol<'_> {
    /// The symbol as a frame; names of Rust code in the kernel are demangled.
    pub fn to_frame(self) -> SourceFrame {
        SourceFrame::named(self.name, FrameLanguage::Kernel)
    }
}

/// All function symbols of the running kernel at one moment, 14 bytes each and their names in one
/// string. Modules and BPF programs that are loaded later are found after reading again.
#[derive(Debug, Default)]
pub struct KernelSymbols {
    /// Ascending and distinct.
    addresses: Vec<u64>,
    /// Offset in `names` of each address's symbol, or [`NO_NAME`].
    name_offsets: Vec<u32>,
    modules: Vec<u16>,
    /// Names, each ended by a line feed.
    names: String,
    /// By number; the first stands for [`BUILT_IN`].
    module_names: Vec<Box<str>>,
}

impl KernelSymbols {
    /// Reads `/proc/kallsyms`.
    ///
    /// # Errors
    /// [`Error::Io`], or [`Error::KernelAddressesHidden`] when the kernel shows zeros to this
    /// process.
    pub fn load() -> Result<Self, Error> {
        let file = File::open(KALLSYMS).map_err(|error| Error::io(KALLSYMS, error))?;
        Self::read(BufReader::with_capacity(1 << 16, file), Path::new(KALLSYMS))
    }

    /// Reads text in the format of `/proc/kallsyms`; lines that do not have it are skipped.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn read(mut reader: impl BufRead, path: &Path) -> Result<Self, Error> {
        let mut found = Vec::new();
        let mut symbols = Self {
            module_names: vec![Box::from("")],
            ..Self::default()
        };
        let mut module_numbers = HashMap::new();
        let (mut any_line, mut only_zeros) = (false, true);
        let mut line = String::new();
        loop {
            line.clear();
            if reader
                .read_line(&mut line)
                .map_err(|error| Error::io(path, error))?
                == 0
            {
                break;
            }
            let Some(parsed) = Line::parse(&line) else {
                continue;
            };
            any_line = true;
            only_zeros &= parsed.address == 0;
            if parsed.address < LOWEST_KERNEL_ADDRESS {
                continue;
            }
            let Some(name) = symbols.add_name(&parsed) else {
                continue;
            };
            let module = match parsed.module {
                None => BUILT_IN,
                Some(module) => symbols.module_number(module, &mut module_numbers),
            };
            found.push(Found {
                address: parsed.address,
                rank: parsed.rank(),
                name,
                module,
            });
        }
        if any_line && only_zeros {
            return Err(Error::KernelAddressesHidden {
                kptr_restrict: kptr_restrict(),
            });
        }
        symbols.index(found);
        Ok(symbols)
    }

    /// The function that covers `address`.
    pub fn find(&self, address: u64) -> Option<KernelSymbol<'_>> {
        let index = self
            .addresses
            .partition_point(|start| *start <= address)
            .checked_sub(1)?;
        let start = self.addresses[index];
        let name_at = self.name_offsets[index];
        if name_at == NO_NAME || address - start >= LONGEST_FUNCTION {
            return None;
        }
        let name = self.names[name_at as usize..].lines().next()?;
        let module = self.modules[index];
        let module = (module != BUILT_IN).then(|| &*self.module_names[usize::from(module)]);
        Some(KernelSymbol {
            name,
            module,
            address: start,
        })
    }

    /// Number of distinct addresses known.
    pub fn len(&self) -> usize {
        self.addresses.len()
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// Heap in bytes.
    pub fn heap_bytes(&self) -> usize {
        self.addresses.capacity() * size_of::<u64>()
            + self.name_offsets.capacity() * size_of::<u32>()
            + self.modules.capacity() * size_of::<u16>()
            + self.names.capacity()
    }

    fn add_name(&mut self, line: &Line<'_>) -> Option<u32> {
        if !line.is_code() {
            return Some(NO_NAME);
        }
        let offset = u32::try_from(self.names.len())
            .ok()
            .filter(|offset| *offset != NO_NAME)?;
        self.names.push_str(line.name);
        self.names.push('\n');
        Some(offset)
    }

    fn module_number(&mut self, module: &str, numbers: &mut HashMap<Box<str>, u16>) -> u16 {
        if let Some(number) = numbers.get(module) {
            return *number;
        }
        // 65 535 modules do not occur; a symbol beyond them counts as built in.
        let Ok(number) = u16::try_from(self.module_names.len()) else {
            return BUILT_IN;
        };
        self.module_names.push(Box::from(module));
        numbers.insert(Box::from(module), number);
        number
    }

    fn index(&mut self, mut found: Vec<Found>) {
        // A stable sort keeps the kernel's own order among equals.
        found.sort_by_key(|symbol| (symbol.address, std::cmp::Reverse(symbol.rank)));
        found.dedup_by_key(|symbol| symbol.address);
        self.addresses = found.iter().map(|symbol| symbol.address).collect();
        self.name_offsets = found.iter().map(|symbol| symbol.name).collect();
        self.modules = found.iter().map(|symbol| symbol.module).collect();
        self.names.shrink_to_fit();
    }
}

struct Found {
    address: u64,
    rank: Rank,
    name: u32,
    module: u16,
}

/// Of several symbols at one address the highest wins: code before data, strong before weak,
/// exported before local, names without underscores before internal ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    is_code: bool,
    is_strong: bool,
    few_underscores: u8,
    is_global: bool,
}

/// `ffffffff81000000 T _text` or `ffffffffc0001000 t helper\t[module]`.
struct Line<'text> {
    address: u64,
    kind: u8,
    name: &'text str,
    module: Option<&'text str>,
}

impl<'text> Line<'text> {
    fn parse(text: &'text str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        let kind = *words.next()?.as_bytes().first()?;
        let name = words.next()?;
        let module = words
            .next()
            .and_then(|word| word.strip_prefix('[')?.strip_suffix(']'));
        Some(Self {
            address,
            kind,
            name,
            module,
        })
    }

    fn is_code(&self) -> bool {
        matches!(self.kind, b't' | b'T' | b'w' | b'W')
    }

    fn rank(&self) -> Rank {
        let underscores = self
            .name
            .bytes()
            .take_while(|byte| *byte == b'_')
            .count()
            .min(3) as u8;
        Rank {
            is_code: self.is_code(),
            is_strong: !matches!(self.kind, b'w' | b'W'),
            few_underscores: 3 - underscores,
            is_global: self.kind.is_ascii_uppercase(),
        }
    }
}

fn kptr_restrict() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/kptr_restrict");
    text.map_or_else(|_| "unknown".to_owned(), |value| value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T _stext
ffffffff81000000 T startup_64
ffffffff81000100 t local_helper
ffffffff81000100 T exported
ffffffff81000200 W weak_one
ffffffff81000200 t strong_one
ffffffff82000000 D data_starts
ffffffffc0001000 t module_function\t[nf_tables]
ffffffffc0002000 t bpf_prog_1234_count\t[bpf]
";

    fn read(text: &str) -> Result<KernelSymbols, Error> {
        KernelSymbols::read(text.as_bytes(), Path::new("test"))
    }

    #[test]
    fn addresses_get_the_best_name() {
        let symbols = read(TEXT).expect("the text is well-formed");
        let name = |address| {
            symbols
                .find(address)
                .map(|symbol| (symbol.name, symbol.module))
        };
        assert_eq!(name(0xffffffff80ffffff), None);
        assert_eq!(name(0xffffffff81000000), Some(("startup_64", None)));
        assert_eq!(name(0xffffffff810001ff), Some(("exported", None)));
        assert_eq!(name(0xffffffff81000200), Some(("strong_one", None)));
        assert_eq!(name(0xffffffff81000200 + LONGEST_FUNCTION), None);
        assert_eq!(name(0xffffffff82000001), None, "data is no function");
        assert_eq!(
            name(0xffffffffc0001001),
            Some(("module_function", Some("nf_tables")))
        );
        assert_eq!(
            name(0xffffffffc0002010),
            Some(("bpf_prog_1234_count", Some("bpf")))
        );
        assert_eq!(name(0x10), None);
    }

    #[test]
    fn hidden_addresses_are_an_error_with_a_cure() {
        let hidden = "0000000000000000 T _stext\n0000000000000000 T other\n";
        let message = read(hidden)
            .expect_err("all addresses are zero")
            .to_string();
        assert!(
            message.contains("kptr_restrict") && message.contains("CAP_SYSLOG"),
            "{message}"
        );
        assert!(
            read("")
                .expect("nothing is hidden in an empty file")
                .is_empty()
        );
    }

    proptest! {
        #[test]
        fn lookups_equal_a_linear_search(
            starts in prop::collection::btree_set(0_u64..5000, 1..60),
            probes in prop::collection::vec(0_u64..6000, 20),
        ) {
            let base = LOWEST_KERNEL_ADDRESS;
            let text: String =
                starts.iter().rev().map(|start| format!("{:x} T f{start}\n", base + start)).collect();
            let symbols = read(&text).expect("the text is well-formed");
            for probe in probes {
                let expected = starts.range(..=probe).next_back().map(|start| format!("f{start}"));
                let found = symbols.find(base + probe).map(|symbol| symbol.name.to_owned());
                prop_assert_eq!(found, expected);
            }
        }

        #[test]
        fn any_text_is_no_panic(text in "[0-9a-f \\[\\]tTD_\\n\\t]{0,200}") {
            if let Ok(symbols) = read(&text) {
                symbols.find(u64::MAX);
            }
        }
    }

    mod host_tests {
        use super::*;

        #[test]
        fn the_running_kernel_is_read() {
            let loaded = match KernelSymbols::load() {
                Ok(symbols) => symbols,
                Err(reason) => {
                    eprintln!("skipped: {reason}");
                    return;
                }
            };
            assert!(loaded.len() > 1000, "{} functions", loaded.len());
            // What is compared is read once: modules and BPF programs come and go.
            let text = std::fs::read_to_string(KALLSYMS).expect("it was just read");
            let symbols = read(&text).expect("it was just read");
            // Every code symbol of the file must be found at its own address under one of the names it
            // has there.
            let mut expected: HashMap<u64, Vec<&str>> = HashMap::new();
            for line in text.lines().filter_map(Line::parse).filter(Line::is_code) {
                expected.entry(line.address).or_default().push(line.name);
            }
            assert!(
                expected.len() > 1000,
                "a kernel has more than {} functions",
                expected.len()
            );
            for (address, names) in expected {
                let symbol = symbols.find(address);
                let is_found = symbol.is_some_and(|symbol| {
                    symbol.address == address && names.contains(&symbol.name)
                });
                assert!(is_found, "{address:x}: {symbol:?} {names:?}");
            }
            let per_symbol = symbols.heap_bytes() / symbols.len();
            assert!(per_symbol < 64, "{per_symbol} bytes per symbol");
        }
    }
}
