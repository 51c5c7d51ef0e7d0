//! Damaged objects give an error or a table, never a panic and never unbounded work.

use candela_unwind::{RuleSet, Table};
use proptest::prelude::*;
use std::sync::OnceLock;

/// A small dynamic program: ELF headers, PLT, .eh_frame, .debug_frame, symbols.
fn native_program() -> Option<&'static [u8]> {
    static PROGRAM: OnceLock<Option<Vec<u8>>> = OnceLock::new();
    let build = || {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let program = crate::support::compile("gcc", "stack.c", &["-O2", "-g"], directory.path())?;
        std::fs::read(program).ok()
    };
    PROGRAM.get_or_init(build).as_deref()
}

/// A small Go program: its function table is its unwind information.
fn go_program() -> Option<&'static [u8]> {
    static PROGRAM: OnceLock<Option<Vec<u8>>> = OnceLock::new();
    let build = || {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let flags = ["-buildmode=pie", "-ldflags=-s -w"];
        let program = crate::support::compile("go", "busy.go", &flags, directory.path())?;
        std::fs::read(program).ok()
    };
    PROGRAM.get_or_init(build).as_deref()
}

/// Overwrites bytes at fractions of the file; half of them in its first KiB, where the headers are.
fn mutate(
    original: &[u8],
    changes: &[(bool, prop::sample::Index, u8)],
    keep: Option<prop::sample::Index>,
) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for (is_header, index, value) in changes {
        let length = if *is_header {
            bytes.len().min(1024)
        } else {
            bytes.len()
        };
        bytes[index.index(length)] = *value;
    }
    if let Some(keep) = keep {
        bytes.truncate(keep.index(original.len()));
    }
    bytes
}

fn changes() -> impl Strategy<Value = Vec<(bool, prop::sample::Index, u8)>> {
    let value = prop_oneof![Just(0u8), Just(0xff), Just(0x7f), Just(0x80), any::<u8>()];
    prop::collection::vec((any::<bool>(), any::<prop::sample::Index>(), value), 1..40)
}

fn build(bytes: &[u8]) {
    let mut rules = RuleSet::new();
    if let Ok(table) = Table::build(bytes, &mut rules) {
        // A row takes at least a byte of call frame instructions or a gap between two functions.
        assert!(table.statistics().rows <= 2 * bytes.len() + 1024);
        let (address, _) = table.rows().next().expect("a table has a row");
        table.lookup(address, &rules);
        table.lookup(u64::MAX, &rules);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_programs_never_panic(changes in changes(), keep in prop::option::weighted(0.2, any::<prop::sample::Index>())) {
        let Some(original) = native_program() else { return Ok(()) };
        build(&mutate(original, &changes, keep));
    }

    #[test]
    fn damaged_frame_sections_never_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20)) {
        let Some(original) = native_program() else { return Ok(()) };
        let mut bytes = original.to_vec();
        let file = object::File::parse(original).expect("a sound program");
        for name in [".eh_frame", ".debug_frame"] {
            use object::{Object as _, ObjectSection as _};
            let Some((offset, size)) = file.section_by_name(name).and_then(|section| section.file_range()) else { continue };
            for (index, value) in &changes {
                bytes[offset as usize + index.index(size as usize)] = *value;
            }
        }
        build(&bytes);
    }

    #[test]
    fn damaged_function_tables_never_panic(
        changes in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>(), any::<u8>()), 1..20),
        case in 0..10u8,
    ) {
        // A Go program is large; a tenth of the cases is enough.
        let Some(original) = go_program().filter(|_| case == 0) else { return Ok(()) };
        let mut bytes = original.to_vec();
        let file = object::File::parse(original).expect("a sound program");
        use object::{Object as _, ObjectSection as _};
        let section = file.sections().find(|section| {
            section.name().is_ok_and(|name| name.ends_with(".gopclntab"))
        });
        let range = section.and_then(|section| section.file_range());
        let (offset, size) = range.expect("a Go program has a function table");
        for (is_header, index, value) in &changes {
            let size = if *is_header { 72 } else { size };
            bytes[offset as usize + index.index(size as usize)] = *value;
        }
        build(&bytes);
    }

    #[test]
    fn noise_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        prop_assert!(Table::build(&bytes, &mut RuleSet::new()).is_err());
    }
}

#[test]
fn errors_say_what_and_why() {
    let error = Table::build(b"#!/bin/sh\n", &mut RuleSet::new()).expect_err("no ELF");
    assert!(
        error
            .to_string()
            .starts_with("object is not a readable ELF file"),
        "{error}"
    );
    let mut header = vec![0; 64];
    header[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1]);
    header[16] = 3;
    header[18] = 183;
    let error = Table::build(&header, &mut RuleSet::new()).expect_err("arm64");
    assert!(error.to_string().contains("machine 183"), "{error}");
}
