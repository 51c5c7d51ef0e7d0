//! Our answers beside those of binutils' `addr2line`.

use super::workshop::{addr2line, functions};
use candela_symbols::{ObjectFile, Resolution, SymbolSource, Symbolizer, SymbolizerOptions};
use std::path::Path;
use std::sync::Arc;

pub(crate) fn symbolizer(path: &Path) -> Symbolizer {
    let object = ObjectFile::open(path).expect("the compiler wrote an ELF file");
    Symbolizer::new(Arc::new(object), SymbolizerOptions::default())
}

pub(crate) fn names(resolution: &Resolution) -> Vec<&str> {
    resolution
        .frames
        .iter()
        .map(|frame| &*frame.function)
        .collect()
}

/// Compares functions, files and lines at every fourth address of `wanted` functions; returns how
/// many were compared.
pub(crate) fn compare_with_addr2line(
    program: &Path,
    reference: &Path,
    wanted: impl Fn(&str) -> bool,
) -> usize {
    let symbolizer = symbolizer(program);
    let mut compared = 0;
    for (start, size, name) in functions(reference) {
        if !wanted(&name) {
            continue;
        }
        for address in (start..start + size).step_by(4) {
            let expected = addr2line(reference, address);
            let found = symbolizer.resolve(address);
            assert_eq!(found.source, SymbolSource::Dwarf, "{name} at {address:#x}");
            let found: Vec<_> = found
                .frames
                .iter()
                .map(|frame| {
                    (
                        &*frame.function,
                        frame.file.as_deref().unwrap_or("??"),
                        frame.line,
                    )
                })
                .collect();
            let expected: Vec<_> = expected
                .iter()
                .map(|frame| (&*frame.function, &*frame.file, frame.line))
                .collect();
            let expected: Vec<_> = expected
                .iter()
                .zip(&found)
                .map(|((function, file, line), (ours, ..))| {
                    let same = is_constructor_template(function)
                        && without_arguments(function) == without_arguments(ours);
                    (if same { *ours } else { *function }, *file, *line)
                })
                .collect();
            assert_eq!(found, expected, "{name} at {address:#x}");
            compared += 1;
        }
    }
    compared
}

/// cpp_demangle 0.5 takes the first argument of a constructor template for a return type and drops
/// it.
fn is_constructor_template(name: &str) -> bool {
    let path = without_arguments(name);
    path.ends_with('>')
        && path.contains("::basic_string<")
        && path.matches("basic_string<").count() > 1
}

fn without_arguments(name: &str) -> &str {
    let mut depth = 0;
    for (at, character) in name.char_indices().rev() {
        match character {
            ')' => depth += 1,
            '(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &name[..at];
        }
    }
    name
}
