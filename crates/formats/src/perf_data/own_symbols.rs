//! Symbols that Android's simpleperf puts into a recording, file by file: what was there when it was
//! recorded, just-in-time compiled and interpreted code of Java included.
//!
//! `record_file.proto` and `record_file_format.h` of simpleperf's sources describe the two forms.

use candela_model::FrameKind;
use hashbrown::HashMap;

use crate::options::Limits;
use crate::perf_data::bytes::Bytes;
use crate::perf_data::mappings::Mapping;
use crate::protobuf::reader::Reader;
use crate::protobuf::reader::Span;
use crate::protobuf::reader::Value;

/// What the symbols of the kernel go by; those of its modules are among them.
const KERNEL_PATH: &[u8] = b"[kernel.kallsyms]";

/// Stands where an offset is not known.
const NO_OFFSET: u64 = u64::MAX;

/// Kinds of file (`DsoType` of simpleperf).
mod file_kinds {
    pub(super) const OBJECT: u64 = 2;
    /// Bytecode, alone or in an archive.
    pub(super) const DEX: u64 = 3;
    /// What a just-in-time compiler writes for perf (`perf-PID.map`).
    pub(super) const SYMBOL_MAP: u64 = 4;
}

/// The symbols of all files.
#[derive(Debug, Default)]
pub(crate) struct OwnSymbols {
    files: HashMap<Vec<u8>, SymbolFile>,
    /// One behind the other.
    names: String,
    /// About what all this takes in memory.
    held_bytes: usize,
}

#[derive(Debug, Default)]
struct SymbolFile {
    kind: u64,
    /// The address as linked of the first code.
    first_address: u64,
    /// Where that stands in the file; `None` where the recording does not tell it and a mapping
    /// begins with it.
    first_offset: Option<u64>,
    /// In ascending order.
    symbols: Vec<Symbol>,
}

#[derive(Clone, Copy, Debug)]
struct Symbol {
    start: u64,
    length: u32,
    /// Where its name begins and ends among all names.
    name: (u32, u32),
}

impl OwnSymbols {
    /// What runs at an address of a file, where it has a name. The address is in the same numbers as
    /// the range of the mapping.
    pub(crate) fn of_file(
        &self,
        path: &str,
        mapping: &Mapping,
        address: u64,
    ) -> Option<(FrameKind, &str)> {
        let file = self.files.get(path.as_bytes())?;
        let inside = address.wrapping_sub(mapping.start);
        let offset = inside.wrapping_add(mapping.file_offset);
        let (kind, address) = match (file.kind, file.first_offset) {
            // Callers are taken one byte before where they go on, to be inside of the call. What is
            // interpreted is recorded by the instruction itself, and those begin at even addresses.
            (file_kinds::DEX, _) => (FrameKind::Jvm, offset.wrapping_add(offset & 1)),
            (file_kinds::OBJECT, Some(first)) => (FrameKind::Native, offset.wrapping_sub(first)),
            (file_kinds::OBJECT, None) => (FrameKind::Native, inside),
            _ => return None,
        };
        let address = address.wrapping_add(file.first_address);
        Some((kind, self.name(file, address)?))
    }

    /// The same for code that a just-in-time compiler made, by its address in the process.
    pub(crate) fn of_compiled(&self, path: &str, address: u64) -> Option<(FrameKind, &str)> {
        let file = self.files.get(path.as_bytes())?;
        Some((FrameKind::Jvm, self.name(file, address)?))
    }

    /// What a process told of the code that it made, where no file is mapped.
    pub(crate) fn of_process(&self, pid: u32, address: u64) -> Option<&str> {
        if self.files.is_empty() {
            return None;
        }
        let file = self.files.get(format!("perf-{pid}.map").as_bytes())?;
        self.name(file, address)
    }

    /// The function at an address of the kernel.
    pub(crate) fn of_kernel(&self, address: u64) -> Option<&str> {
        self.name(self.files.get(KERNEL_PATH)?, address)
    }

    /// Reads the first form; `None` says that not all was read.
    pub(crate) fn read_first_form(
        &mut self,
        mut content: Bytes<'_>,
        limits: &Limits,
    ) -> Option<()> {
        while content.len() > 0 {
            let size = content.u32()?;
            self.add_of_first_form(content.part(size as usize)?, limits)?;
        }
        Some(())
    }

    /// Reads the second form, in which each file is a protobuf message.
    pub(crate) fn read_second_form(
        &mut self,
        mut content: Bytes<'_>,
        limits: &Limits,
    ) -> Option<()> {
        while content.len() > 0 {
            let size = content.u32()?;
            self.add_of_second_form(content.take(size as usize)?, limits)?;
        }
        Some(())
    }

    fn add_of_first_form(&mut self, mut content: Bytes<'_>, limits: &Limits) -> Option<()> {
        let path = text_with_end(&mut content)?;
        let kind = u64::from(content.u32()?);
        let mut file = SymbolFile {
            kind,
            first_address: content.u64()?,
            ..SymbolFile::default()
        };
        for _ in 0..content.u32()? {
            let start = content.u64()?;
            let length = content.u32()?;
            let name = text_with_end(&mut content)?;
            self.add_symbol(&mut file, (start, length), name, limits)?;
        }
        // Older ones end here. Of bytecode a list of offsets follows, which names need not.
        if kind == file_kinds::OBJECT {
            file.first_offset = content.u64().filter(|offset| *offset != NO_OFFSET);
        }
        self.add_file(path, file, limits)
    }

    fn add_of_second_form(&mut self, message: &[u8], limits: &Limits) -> Option<()> {
        let mut reader = Reader::new(message);
        let mut path = Span { start: 0, end: 0 };
        let mut file = SymbolFile::default();
        while let Some((field, value)) = reader.field().ok()? {
            match (field, value) {
                (1, Value::Bytes(span)) => path = span,
                (2, Value::Varint(kind)) => file.kind = kind,
                (3, Value::Varint(address)) => file.first_address = address,
                (4, Value::Bytes(symbol)) => {
                    let (range, name) = symbol_of_message(message, symbol)?;
                    self.add_symbol(&mut file, range, name, limits)?;
                }
                (6, Value::Bytes(object)) => file.first_offset = offset_of_message(message, object),
                _ => {}
            }
        }
        let path = message.get(path.range())?;
        self.add_file(path, file, limits)
    }

    fn add_symbol(
        &mut self,
        file: &mut SymbolFile,
        (start, length): (u64, u32),
        name: &[u8],
        limits: &Limits,
    ) -> Option<()> {
        if length == 0 || name.is_empty() {
            return Some(());
        }
        let name = String::from_utf8_lossy(name);
        let name = limits.cut(&name);
        self.pay(size_of::<Symbol>() + name.len(), limits)?;
        let name_start = u32::try_from(self.names.len()).ok()?;
        self.names.push_str(name);
        let name_end = u32::try_from(self.names.len()).ok()?;
        file.symbols.push(Symbol {
            start,
            length,
            name: (name_start, name_end),
        });
        Some(())
    }

    /// Of two with one path the first stays.
    fn add_file(&mut self, path: &[u8], mut file: SymbolFile, limits: &Limits) -> Option<()> {
        let path = match file.kind {
            file_kinds::SYMBOL_MAP => path.rsplit(|byte| *byte == b'/').next()?,
            _ => path,
        };
        if file.symbols.is_empty() || self.files.contains_key(path) {
            return Some(());
        }
        self.pay(2 * size_of::<SymbolFile>() + path.len(), limits)?;
        file.symbols.sort_by_key(|symbol| symbol.start);
        self.files.insert(path.to_vec(), file);
        Some(())
    }

    fn pay(&mut self, bytes: usize, limits: &Limits) -> Option<()> {
        let held = self.held_bytes.checked_add(bytes)?;
        self.held_bytes = Some(held).filter(|held| *held <= limits.inflated_bytes())?;
        Some(())
    }

    fn name(&self, file: &SymbolFile, address: u64) -> Option<&str> {
        let behind = file.symbols.partition_point(|it| it.start <= address);
        let symbol = file.symbols.get(behind.checked_sub(1)?)?;
        if address - symbol.start >= u64::from(symbol.length) {
            return None;
        }
        let (start, end) = symbol.name;
        self.names.get(start as usize..end as usize)
    }
}

/// A text and the zero behind it.
fn text_with_end<'a>(content: &mut Bytes<'a>) -> Option<&'a [u8]> {
    let text = content.text();
    content.take(text.len() + 1)?;
    Some(text)
}

/// The start and length of a symbol, and its name.
fn symbol_of_message(message: &[u8], symbol: Span) -> Option<((u64, u32), &[u8])> {
    let (mut start, mut length, mut name) = (0, 0, &[][..]);
    let mut reader = Reader::of(message, symbol);
    while let Some((field, value)) = reader.field().ok()? {
        match (field, value) {
            (1, Value::Varint(number)) => start = number,
            (2, Value::Varint(number)) => length = u32::try_from(number).ok()?,
            (3, Value::Bytes(span)) => name = message.get(span.range())?,
            _ => {}
        }
    }
    Some(((start, length), name))
}

/// Where the first code of an object file stands in it.
fn offset_of_message(message: &[u8], object: Span) -> Option<u64> {
    let mut reader = Reader::of(message, object);
    let mut offset = 0;
    while let Some((field, value)) = reader.field().ok()? {
        if let (1, Value::Varint(number)) = (field, value) {
            offset = number;
        }
    }
    Some(offset).filter(|offset| *offset != NO_OFFSET)
}
