//! Stripped programs and the files that still know their names.

use super::compare::{compare_with_addr2line, names, symbolizer};
use super::workshop::{C_PROGRAM, CPP_PROGRAM, Workshop, functions, has_tool};
use candela_symbols::foreign::Reader;
use candela_symbols::{
    Debuginfod, DebuginfodOptions, ObjectFile, SymbolCache, SymbolCacheOptions, SymbolSource,
    Symbolizer, SymbolizerOptions,
};
use std::path::Path;
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
    let object = object.with_root(shop.path("container"), Reader::Everybody);
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
    let answer = symbolizer(&program).resolve(main);
    assert_eq!(
        names(&answer).last(),
        Some(&"main"),
        "the symbol table remains"
    );
}

#[test]
fn calls_whose_names_dwz_moved_away_leave_no_nameless_frames() {
    if !has_tool("gcc", "--version") || !has_tool("dwz", "--version") {
        return;
    }
    let shop = Workshop::new();
    shop.write(
        "shared.h",
        "static inline __attribute__((always_inline)) int shared_inner(int *values, int count) {
             volatile int sum = 0;
             for (int i = 0; i < count; i++)
                 sum += values[i];
             return sum;
         }",
    );
    for name in ["one", "two"] {
        let source = format!("{name}.c");
        shop.write(
            &source,
            &format!(
                "#include \"shared.h\"
                 __attribute__((noinline)) int only_in_{name}(int *values, int count) {{
                     return shared_inner(values, count) * 3;
                 }}
                 int main(int count, char **arguments) {{ return only_in_{name}(&count, 1); }}"
            ),
        );
        let flags = ["-O2", "-g", "-gdwarf-4", &source, "-o", name];
        shop.run("gcc", &flags);
    }
    let shared = ["-m", "shared.debug", "-M", "shared.debug", "one", "two"];
    shop.run("dwz", &shared);
    let program = shop.path("one");
    let (start, size, _) = functions(&program)
        .into_iter()
        .find(|(_, _, name)| name == "only_in_one")
        .expect("it is not inlined");
    let inside = (start..start + size)
        .find(|address| symbolizer(&program).resolve(*address).frames.len() == 2)
        .expect("a call is inlined");
    std::fs::remove_file(shop.path("shared.debug")).expect("dwz wrote it");
    let found = symbolizer(&program).resolve(inside);
    assert_eq!(
        (found.source, names(&found)),
        (SymbolSource::Dwarf, vec!["only_in_one"])
    );
}

#[test]
fn a_debuglink_with_the_programs_own_name_leads_to_the_debug_file() {
    if !has_tool("gcc", "--version") || !has_tool("objcopy", "--version") {
        return;
    }
    let shop = Workshop::new();
    shop.write("program.c", C_PROGRAM);
    let flags = ["-O2", "-g", "-Wl,--build-id", "program.c", "-o", "full"];
    shop.run("gcc", &flags);
    std::fs::create_dir(shop.path(".debug")).expect("a directory beside the program");
    shop.run("objcopy", &["--only-keep-debug", "full", ".debug/program"]);
    // Without DWARF, but with a symbol table: enough to be taken for a debug file.
    shop.run("strip", &["--strip-debug", "-o", "program", "full"]);
    shop.run(
        "objcopy",
        &["--add-gnu-debuglink=.debug/program", "program"],
    );
    let (outer, ..) = functions(&shop.path("full"))
        .into_iter()
        .find(|(_, _, name)| name == "outer")
        .expect("it is not inlined");
    let found = symbolizer(&shop.path("program")).resolve(outer);
    assert_eq!(found.source, SymbolSource::Dwarf, "{found:?}");
}

#[test]
fn dwarf_that_would_take_too_much_memory_is_left_alone() {
    if !has_tool("gcc", "--version") || !has_tool("objcopy", "--version") {
        return;
    }
    let shop = Workshop::new();
    shop.write("program.c", C_PROGRAM);
    shop.run("gcc", &["-O2", "-g", "program.c", "-o", "full"]);
    let compress = ["--compress-debug-sections=zlib", "full", "compressed"];
    shop.run("objcopy", &compress);
    let (outer, ..) = functions(&shop.path("full"))
        .into_iter()
        .find(|(_, _, name)| name == "outer")
        .expect("it is not inlined");
    let found = symbolizer(&shop.path("compressed")).resolve(outer);
    assert_eq!(found.source, SymbolSource::Dwarf);

    // The size after decompression stands eight bytes into the section's header.
    let mut bytes = std::fs::read(shop.path("compressed")).expect("objcopy wrote it");
    let headers = shop.run("readelf", &["-SW", "compressed"]);
    let line = headers
        .lines()
        .find(|line| line.contains(".debug_info"))
        .expect("compressed, but there");
    let offset = line.split_whitespace().rev().nth(6).expect("ten columns");
    let offset = usize::from_str_radix(offset, 16).expect("an offset") + 8;
    bytes[offset..offset + 8].copy_from_slice(&(300_u64 << 20).to_le_bytes());
    std::fs::write(shop.path("hostile"), bytes).expect("own directory");
    let cache = SymbolCache::new(SymbolCacheOptions::default());
    let object = cache
        .open_path(&shop.path("hostile"), Path::new("/"))
        .expect("an ELF file");
    let found = cache.resolve(&object, outer);
    assert_eq!(
        (found.source, names(&found)),
        (SymbolSource::Symtab, vec!["outer"])
    );
    assert_eq!(cache.stats().skipped_debug_info, 1);
}

#[test]
fn parts_that_dwz_moved_away_are_fetched() {
    if !has_tool("gcc", "--version") || !has_tool("dwz", "--version") {
        return;
    }
    let shop = Workshop::new();
    shop.write("program.cc", CPP_PROGRAM);
    for name in ["one", "two"] {
        let flags = [
            "-O2",
            "-g",
            "-gdwarf-4",
            "-Wl,--build-id",
            "program.cc",
            "-o",
        ];
        shop.run("g++", &[&flags[..], &[name]].concat());
    }
    shop.run(
        "dwz",
        &["-m", "shared.debug", "-M", "shared.debug", "one", "two"],
    );
    let program = shop.path("one");
    let addresses: Vec<u64> = functions(&program)
        .into_iter()
        .filter(|(_, _, name)| name == "main" || name.contains("4shop"))
        .flat_map(|(start, size, _)| start..start + size)
        .collect();
    let complete = symbolizer(&program);
    let expected: Vec<_> = addresses
        .iter()
        .map(|address| complete.resolve(*address))
        .collect();

    // The client's directory has the supplement already, so no server is needed.
    let shared = shop.path("shared.debug");
    let supplement = ObjectFile::open(&shared).expect("dwz wrote it");
    let id = supplement.build_id().gnu_hex().expect("dwz gives it one");
    std::fs::create_dir_all(shop.path("cache").join(&id)).expect("own directory");
    std::fs::rename(&shared, shop.path("cache").join(&id).join("debuginfo")).expect("own file");
    let options = DebuginfodOptions::new(Vec::new(), shop.path("cache"));
    let client = Debuginfod::start(&options).expect("the directory is writable");
    let options = SymbolizerOptions {
        debuginfod: Some(Arc::new(client)),
        ..SymbolizerOptions::default()
    };
    let object = ObjectFile::open(&program).expect("an ELF file");
    let fetching = Symbolizer::new(Arc::new(object), options);
    for (address, expected) in addresses.iter().zip(&expected) {
        assert_eq!(fetching.resolve(*address), *expected, "{address:#x}");
    }
}

#[test]
fn pages_of_debug_files_are_released_too() {
    if !has_tool("gcc", "--version") || !has_tool("objcopy", "--version") {
        return;
    }
    let shop = Workshop::new();
    shop.write("program.c", C_PROGRAM);
    shop.run(
        "gcc",
        &["-O2", "-g", "-Wl,--build-id", "program.c", "-o", "full"],
    );
    shop.run("objcopy", &["--only-keep-debug", "full", "stripped.debug"]);
    shop.run("strip", &["-o", "stripped", "full"]);
    shop.run(
        "objcopy",
        &["--add-gnu-debuglink=stripped.debug", "stripped"],
    );
    let (outer, ..) = functions(&shop.path("full"))
        .into_iter()
        .find(|(_, _, name)| name == "outer")
        .expect("it is not inlined");
    let symbolizer = symbolizer(&shop.path("stripped"));
    assert_eq!(symbolizer.resolve(outer).source, SymbolSource::Dwarf);
    let debug_file = shop.path("stripped.debug");
    assert!(resident_kib(&debug_file) > 0);
    symbolizer.release_pages();
    assert_eq!(resident_kib(&debug_file), 0);
}

/// How much of the mappings of `path` this process has in memory.
fn resident_kib(path: &Path) -> u64 {
    let maps = std::fs::read_to_string("/proc/self/smaps").expect("/proc is mounted");
    let path = path.to_string_lossy();
    let mut is_in_mapping = false;
    let mut resident = 0;
    for line in maps.lines() {
        let first = line.split_whitespace().next().unwrap_or_default();
        if !first.ends_with(':') {
            is_in_mapping = line.ends_with(&*path);
        }
        if is_in_mapping && first == "Rss:" {
            let size = line.split_whitespace().nth(1).expect("a size");
            resident += size.parse::<u64>().expect("a number");
        }
    }
    resident
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
