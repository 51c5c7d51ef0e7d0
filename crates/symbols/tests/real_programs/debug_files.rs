//! Stripped programs and the files that still know their names.

use crate::compare::{compare_with_addr2line, names, symbolizer};
use crate::workshop::{C_PROGRAM, CPP_PROGRAM, Workshop, functions, has_tool};
use candela_symbols::{ObjectFile, SymbolSource, Symbolizer, SymbolizerOptions};
use std::sync::Arc;

#[test]
fn stripped_programs_are_named_from_their_debug_file() {
    if !has_tool("gcc", "--version") || !has_tool("objcopy", "--version") {
        return;
    }
    for (name, build_id) in [
        ("with-id", "-Wl,--build-id"),
        ("without-id", "-Wl,--build-id=none"),
    ] {
        let shop = Workshop::new();
        shop.write("program.c", C_PROGRAM);
        shop.run("gcc", &["-O2", "-g", build_id, "program.c", "-o", "full"]);
        shop.run("objcopy", &["--only-keep-debug", "full", "stripped.debug"]);
        shop.run("strip", &["-o", "stripped", "full"]);
        shop.run(
            "objcopy",
            &["--add-gnu-debuglink=stripped.debug", "stripped"],
        );
        let stripped = shop.path("stripped");
        let (outer, ..) = functions(&shop.path("full"))
            .into_iter()
            .find(|(_, _, name)| name == "outer")
            .expect("it is not inlined");

        let found = symbolizer(&stripped).resolve(outer);
        assert_eq!(found.source, SymbolSource::Dwarf, "{name}");
        assert_eq!(names(&found).last(), Some(&"outer"), "{name}");
        let full = shop.path("full");
        let compared =
            compare_with_addr2line(&stripped, &full, |name| name == "outer" || name == "main");
        assert!(compared > 5, "{name}: {compared} addresses");

        // A debug file of another build must not be believed.
        std::fs::create_dir(shop.path(".debug")).expect("a directory beside the program");
        shop.write(
            "other.c",
            "int outer(int n) { return n; } int main(void) { return outer(1); }",
        );
        shop.run("gcc", &["-O0", "-g", build_id, "other.c", "-o", "other"]);
        shop.run("objcopy", &["--only-keep-debug", "other", "stripped.debug"]);
        let refused = symbolizer(&stripped).resolve(outer);
        assert_eq!(refused.source, SymbolSource::None, "{name}: {refused:?}");

        shop.run(
            "objcopy",
            &["--only-keep-debug", "full", ".debug/stripped.debug"],
        );
        assert_eq!(
            symbolizer(&stripped).resolve(outer).source,
            SymbolSource::Dwarf,
            "{name}"
        );
    }
}

#[test]
fn build_id_directories_are_searched_in_the_target_and_on_the_host() {
    if !has_tool("gcc", "--version") || !has_tool("objcopy", "--version") {
        return;
    }
    let shop = Workshop::new();
    shop.write("program.c", C_PROGRAM);
    shop.run(
        "gcc",
        &["-O2", "-g", "-Wl,--build-id", "program.c", "-o", "full"],
    );
    shop.run("strip", &["-o", "stripped", "full"]);
    let (outer, ..) = functions(&shop.path("full"))
        .into_iter()
        .find(|(_, _, name)| name == "outer")
        .expect("it is not inlined");
    let object = ObjectFile::open(&shop.path("stripped")).expect("an ELF file");
    let id = object
        .build_id()
        .gnu_hex()
        .expect("the linker was told to write one");
    let in_container = format!(
        "container/usr/lib/debug/.build-id/{}/{}.debug",
        &id[..2],
        &id[2..]
    );
    shop.write(&in_container, "");
    shop.run("objcopy", &["--only-keep-debug", "full", &in_container]);

    let outside = Symbolizer::new(Arc::new(object), SymbolizerOptions::default()).resolve(outer);
    assert_eq!(outside.source, SymbolSource::None);
    let object = ObjectFile::open(&shop.path("stripped")).expect("an ELF file");
    let object = object.with_root(shop.path("container"));
    let inside = Symbolizer::new(Arc::new(object), SymbolizerOptions::default()).resolve(outer);
    assert_eq!(inside.source, SymbolSource::Dwarf);
    assert_eq!(names(&inside).last(), Some(&"outer"));
}

#[test]
fn parts_that_dwz_moved_away_are_found() {
    if !has_tool("gcc", "--version")
        || !has_tool("dwz", "--version")
        || !has_tool("addr2line", "--version")
    {
        return;
    }
    let shop = Workshop::new();
    shop.write("program.cc", CPP_PROGRAM);
    for name in ["one", "two"] {
        shop.run(
            "g++",
            &[
                "-O2",
                "-g",
                "-gdwarf-4",
                "-Wl,--build-id",
                "program.cc",
                "-o",
                name,
            ],
        );
    }
    shop.run(
        "dwz",
        &["-m", "shared.debug", "-M", "shared.debug", "one", "two"],
    );
    let program = shop.path("one");
    let compared = compare_with_addr2line(&program, &program, |name| {
        name == "main" || name.contains("4shop")
    });
    assert!(compared > 20, "{compared} addresses");
    std::fs::remove_file(shop.path("shared.debug")).expect("dwz wrote it");
    let (main, ..) = functions(&program)
        .into_iter()
        .find(|(_, _, name)| name == "main")
        .expect("every program has it");
    assert_eq!(
        names(&symbolizer(&program).resolve(main)).last(),
        Some(&"main"),
        "the symbol table remains"
    );
}

#[test]
fn mini_debug_info_names_local_functions() {
    if !has_tool("gcc", "--version")
        || !has_tool("objcopy", "--version")
        || !has_tool("xz", "--version")
    {
        return;
    }
    let shop = Workshop::new();
    shop.write("program.c", C_PROGRAM);
    shop.run("gcc", &["-O2", "-g", "program.c", "-o", "full"]);
    shop.run("objcopy", &["--only-keep-debug", "full", "symbols"]);
    shop.run("strip", &["--strip-debug", "symbols"]);
    shop.run("xz", &["--keep", "symbols"]);
    shop.run("strip", &["-o", "stripped", "full"]);
    shop.run(
        "objcopy",
        &["--add-section", ".gnu_debugdata=symbols.xz", "stripped"],
    );
    let (local, ..) = functions(&shop.path("full"))
        .into_iter()
        .find(|(_, _, name)| name == "local")
        .expect("it is not inlined");
    let found = symbolizer(&shop.path("stripped")).resolve(local);
    assert_eq!(
        (found.source, names(&found)),
        (SymbolSource::MiniDebugInfo, vec!["local"])
    );
}
