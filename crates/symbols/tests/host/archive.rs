//! Symbol files that were sent, kept by build id, and what they name.

use super::workshop::{C_PROGRAM, Workshop, functions, has_tool};
use candela_symbols::{
    Accepted, ArchiveError, ArchiveLimits, DebugFileSearch, MappedRange, ObjectFile, SymbolArchive,
    SymbolSource, Symbolizer, SymbolizerOptions,
};
use std::path::Path;
use std::sync::Arc;

/// `full`, `stripped` and `program.debug` of one build.
fn programs(linker: &[&str]) -> Option<Workshop> {
    if !has_tool("gcc", "--version") || !has_tool("objcopy", "--version") {
        return None;
    }
    let shop = Workshop::new();
    shop.write("program.c", C_PROGRAM);
    let compile = ["-O2", "-g", "-fPIE", "-pie", "program.c", "-o", "full"];
    shop.run("gcc", &[&compile[..], linker].concat());
    shop.run("objcopy", &["--only-keep-debug", "full", "program.debug"]);
    shop.run("strip", &["-o", "stripped", "full"]);
    Some(shop)
}

fn open(directory: &Path) -> Arc<SymbolArchive> {
    let archive = SymbolArchive::open(directory, ArchiveLimits::default());
    Arc::new(archive.expect("a directory"))
}

fn send(archive: &Arc<SymbolArchive>, path: &Path) -> Result<Accepted, ArchiveError> {
    let bytes = std::fs::read(path).expect("a file of the test");
    let name = path.file_name().expect("a name").to_string_lossy();
    let mut incoming = archive.receive()?;
    for piece in bytes.chunks(1000) {
        incoming.write(piece)?;
    }
    incoming.finish(&name, 1_700_000_000_000)
}

#[test]
fn the_file_that_says_most_is_kept() {
    let Some(shop) = programs(&["-Wl,--build-id"]) else {
        return;
    };
    let directory = shop.path("symbols");
    let archive = open(&directory);
    let refused = send(&archive, &shop.path("stripped")).expect_err("has no symbols");
    assert!(
        matches!(refused, ArchiveError::NoSymbols { .. }),
        "{refused}"
    );

    shop.run("strip", &["--strip-debug", "-o", "symtab", "full"]);
    let poor = send(&archive, &shop.path("symtab")).expect("has a symbol table");
    assert_eq!(
        (poor.is_new, &*poor.file.contents.join(" ")),
        (true, "symtab")
    );
    let rich = send(&archive, &shop.path("program.debug")).expect("has DWARF");
    assert_eq!((rich.is_new, &*rich.file.name), (true, "program.debug"));
    let again = send(&archive, &shop.path("program.debug")).expect("is known");
    assert!(!again.is_new);
    let poorer = send(&archive, &shop.path("symtab")).expect("is not refused");
    assert_eq!((poorer.is_new, &poorer.file), (false, &rich.file));

    assert_eq!(archive.files(), std::slice::from_ref(&rich.file));
    let (first, rest) = rich.file.build_id.split_at(2);
    let place = directory.join(format!(".build-id/{first}/{rest}.debug"));
    let kept = std::fs::read(&place).expect("where gdb looks");
    assert_eq!(
        kept,
        std::fs::read(shop.path("program.debug")).expect("a file")
    );
    let search = DebugFileSearch {
        directories: vec![directory.clone()],
    };
    let object = ObjectFile::open(&shop.path("stripped")).expect("an ELF file");
    assert!(search.find_build_id(object.build_id()).is_some());

    // A crash between the file and its description, and one in the middle of another.
    std::fs::remove_file(place.with_extension("json")).expect("the description");
    let half = directory.join("incoming/7.part");
    std::fs::write(&half, "half").expect("a file in the directory");
    let reopened = open(&directory);
    assert!(!half.try_exists().expect("the directory is readable"));
    let files = reopened.files();
    assert_eq!(files.len(), 1);
    assert_eq!(files[0].sha256, rich.file.sha256);
    assert_eq!(files[0].contents, rich.file.contents);
}

#[test]
fn what_cannot_serve_is_refused() {
    let Some(shop) = programs(&["-Wl,--build-id=none"]) else {
        return;
    };
    let archive = open(&shop.path("symbols"));
    let refused = send(&archive, &shop.path("full")).expect_err("has no build id");
    assert!(
        matches!(refused, ArchiveError::NoBuildId { .. }),
        "{refused}"
    );
    let refused = send(&archive, &shop.path("program.c")).expect_err("is text");
    assert!(matches!(refused, ArchiveError::NotElf { .. }), "{refused}");
    let empty = shop.write("empty", "");
    let refused = send(&archive, &empty).expect_err("is empty");
    assert!(matches!(refused, ArchiveError::NotElf { .. }), "{refused}");

    let bounds = [(100, u64::MAX), (u64::MAX, 100)];
    for (max_file_bytes, max_bytes) in bounds {
        let limits = ArchiveLimits {
            max_file_bytes,
            max_bytes,
        };
        let small = SymbolArchive::open(&shop.path("small"), limits).expect("a directory");
        let refused = send(&Arc::new(small), &shop.path("full")).expect_err("is too large");
        let is_bound = matches!(
            refused,
            ArchiveError::TooLarge { .. } | ArchiveError::Full { .. }
        );
        assert!(is_bound, "{refused}");
    }
    for folder in ["symbols/incoming", "small/incoming"] {
        let left = std::fs::read_dir(shop.path(folder))
            .expect("a directory")
            .count();
        assert_eq!(left, 0, "{folder}");
    }
    assert!(archive.files().is_empty());
}

/// The debug file alone names what a process ran, wherever it was mapped.
#[test]
fn addresses_of_a_process_are_named_by_the_debug_file_alone() {
    for linker in ["-fuse-ld=bfd", "-fuse-ld=lld"] {
        if linker.ends_with("lld") && !has_tool("ld.lld", "--version") {
            continue;
        }
        let Some(shop) = programs(&["-Wl,--build-id", linker]) else {
            return;
        };
        let archive = open(&shop.path("symbols"));
        let build_id = send(&archive, &shop.path("program.debug"));
        let build_id = build_id.expect("has DWARF").file.build_id;
        let debug_file = archive.open_object(&build_id);
        let debug_file = debug_file.expect("is readable").expect("is there");
        let full = ObjectFile::open(&shop.path("full")).expect("an ELF file");
        let symbolizer = Symbolizer::new(Arc::clone(&debug_file), SymbolizerOptions::default());

        let mut segments = full.segments().iter();
        let code = segments.find(|segment| segment.executable).expect("code");
        let bias = 0x5555_4000_0000;
        let range = MappedRange {
            start: bias + code.address / 4096 * 4096,
            limit: bias + (code.address + code.memory_size).next_multiple_of(4096),
            file_offset: code.file_offset / 4096 * 4096,
        };
        let mut named = 0;
        for (address, size, name) in functions(&shop.path("full")) {
            if !["outer", "local", "main"].contains(&name.as_str()) {
                continue;
            }
            for linked in address..address + size {
                for object in [&full, &*debug_file] {
                    assert_eq!(
                        object.linked_address(bias + linked, range),
                        Some(linked),
                        "{linker} {name}"
                    );
                }
                let found = symbolizer.resolve(linked);
                assert_eq!(found.source, SymbolSource::Dwarf, "{linker} {linked:#x}");
                let outermost = found.frames.last().expect("a frame");
                assert_eq!(&*outermost.function, &*name, "{linker} {linked:#x}");
                named += 1;
            }
        }
        assert!(named > 20, "{named}");
    }
}
