//! The DWARF of a large Rust program, this test itself, read by us and by the addr2line crate.

use candela_symbols::demangle::demangle;
use candela_symbols::{ObjectFile, SourceFrame, SymbolSource, Symbolizer, SymbolizerOptions};
use gimli::{EndianSlice, LittleEndian};
use object::{Object, ObjectSection};
use std::borrow::Cow;
use std::sync::Arc;

/// Addresses that are compared: enough to meet every kind of unit.
const ADDRESSES: u64 = 20_000;

/// Name, file, line and column, as addr2line has them.
type Frame = (Option<String>, Option<String>, u32, u32);

fn expected_frames(
    context: &addr2line::Context<EndianSlice<'_, LittleEndian>>,
    address: u64,
) -> Vec<Frame> {
    let mut found = context
        .find_frames(address)
        .skip_all_loads()
        .expect("the compiler wrote sound DWARF");
    let mut frames = Vec::new();
    while let Some(frame) = found.next().expect("the compiler wrote sound DWARF") {
        let name = frame
            .function
            .map(|function| function.raw_name().expect("UTF-8").into_owned());
        let location = frame.location;
        let number = |number: Option<u32>| number.unwrap_or(0);
        frames.push((
            name,
            location
                .as_ref()
                .and_then(|location| location.file)
                .map(str::to_owned),
            number(location.as_ref().and_then(|location| location.line)),
            number(location.as_ref().and_then(|location| location.column)),
        ));
    }
    frames
}

/// Whether the names agree. The outermost function's full name may have come from the symbol table;
/// a function known by its plain name alone may have got its linkage name through its origin.
fn same_name(ours: &SourceFrame, theirs: Option<&str>) -> bool {
    let Some(theirs) = theirs else {
        return !ours.system_name.is_empty();
    };
    if &*ours.system_name == theirs {
        return *ours.function == *demangle(theirs).name;
    }
    // `sum<u64>` and `{closure#2}` of DWARF are `…::sum::<u64>` and `…::{{closure}}` of the symbol
    // table.
    let plain = theirs.split(['<', '#']).next().unwrap_or_default();
    ours.function.contains(plain.trim_matches(['{', '}']))
}

#[test]
fn every_frame_equals_that_of_the_addr2line_crate() {
    let program = std::env::current_exe().expect("/proc is mounted");
    let object = Arc::new(ObjectFile::open(&program).expect("cargo built an ELF file"));
    if !object.contents().dwarf {
        eprintln!("skipped: this test was built without debug information");
        return;
    }
    let elf = object::File::parse(object.data()).expect("cargo built an ELF file");
    let sections = gimli::DwarfSections::load(|id| {
        let section = elf.section_by_name(id.name());
        let data = section.map(|section| section.uncompressed_data().expect("a sound section"));
        Ok::<_, gimli::Error>(data.unwrap_or(Cow::Borrowed(&[])))
    });
    let sections = sections.expect("no section failed");
    let dwarf = sections.borrow(|section| EndianSlice::new(section, LittleEndian));
    let context = addr2line::Context::from_dwarf(dwarf).expect("the compiler wrote sound DWARF");
    let symbolizer = Symbolizer::new(Arc::clone(&object), SymbolizerOptions::default());

    let code = object
        .segments()
        .iter()
        .find(|segment| segment.executable)
        .expect("a program has code");
    let step = code.file_size / ADDRESSES;
    let (mut compared, mut inlined) = (0, 0);
    for address in (code.address..code.address + code.file_size).step_by(step as usize) {
        let expected = expected_frames(&context, address);
        let found = symbolizer.resolve(address);
        if expected.is_empty() {
            assert_ne!(found.source, SymbolSource::Dwarf, "{address:#x}");
            continue;
        }
        // A line without function is only used where a symbol table names the function.
        if expected.len() == 1 && expected[0].0.is_none() && found.source != SymbolSource::Dwarf {
            continue;
        }
        let positions = found.frames.iter();
        let positions: Vec<_> = positions
            .map(|frame| (frame.file.as_deref(), frame.line, frame.column))
            .collect();
        let expected_positions: Vec<_> = expected
            .iter()
            .map(|(_, file, line, column)| (file.as_deref(), *line, *column))
            .collect();
        assert_eq!(positions, expected_positions, "{address:#x}: {found:?}");
        for (ours, (theirs, ..)) in found.frames.iter().zip(&expected) {
            assert!(
                same_name(ours, theirs.as_deref()),
                "{address:#x}: {theirs:?} {ours:?}"
            );
        }
        compared += 1;
        inlined += usize::from(expected.len() > 1);
    }
    assert!(
        compared > 5_000 && inlined > 2_000,
        "{compared} addresses, {inlined} inlined"
    );
}
