//! The symbol cache over real programs: sharing, bounds, counts.

use super::workshop::{C_PROGRAM, Workshop, functions, has_tool};
use candela_symbols::{Error, SymbolCache, SymbolCacheOptions, SymbolSource};
use std::path::Path;
use std::sync::Arc;

fn programs(shop: &Workshop, count: usize) -> Vec<String> {
    shop.write("program.c", C_PROGRAM);
    let names = (0..count).map(|number| {
        let name = format!("program-{number}");
        let definition = format!("-DNUMBER={number}");
        let arguments = [
            "-O2",
            "-g",
            &definition,
            "-Wl,--build-id=uuid",
            "program.c",
            "-o",
            &name,
        ];
        shop.run("gcc", &arguments);
        name
    });
    names.collect()
}

#[test]
fn copies_of_a_program_share_one_object() {
    if !has_tool("gcc", "--version") {
        return;
    }
    let shop = Workshop::new();
    let program = shop.path(&programs(&shop, 1)[0]);
    let copy = shop.path("copy");
    std::fs::copy(&program, &copy).expect("a copy in the same directory");
    let cache = SymbolCache::new(SymbolCacheOptions::default());
    let first = cache
        .open_path(&program, Path::new("/"))
        .expect("an ELF file");
    let again = cache
        .open_path(&program, Path::new("/"))
        .expect("an ELF file");
    let copied = cache.open_path(&copy, Path::new("/")).expect("an ELF file");
    assert!(Arc::ptr_eq(&first, &again) && Arc::ptr_eq(&first, &copied));
    assert_eq!(cache.stats().objects, 1);

    let (main, ..) = functions(&program)
        .into_iter()
        .find(|(_, _, name)| name == "main")
        .expect("every program has it");
    let cold = cache.resolve(&first, main);
    let warm = cache.resolve(&first, main);
    assert!(Arc::ptr_eq(&cold.frames, &warm.frames));
    let stats = cache.stats();
    assert_eq!(
        (stats.misses, stats.hits, stats.unnamed, stats.answers),
        (1, 1, 0, 1)
    );
    assert_eq!(cache.resolve(&first, u64::MAX).source, SymbolSource::None);
    assert_eq!(cache.stats().unnamed, 1);
}

#[test]
fn a_richer_file_of_the_same_build_takes_over() {
    if !has_tool("gcc", "--version") || !has_tool("strip", "--version") {
        return;
    }
    let shop = Workshop::new();
    let full = shop.path(&programs(&shop, 1)[0]);
    let stripped = shop.path("stripped");
    shop.run(
        "strip",
        &["-o", &stripped.to_string_lossy(), &full.to_string_lossy()],
    );
    let (outer, ..) = functions(&full)
        .into_iter()
        .find(|(_, _, name)| name == "outer")
        .expect("it is not inlined");
    let cache = SymbolCache::new(SymbolCacheOptions::default());
    let open = |path| cache.open_path(path, Path::new("/")).expect("an ELF file");
    let poor = open(&stripped);
    assert_eq!(cache.resolve(&poor, outer).source, SymbolSource::None);
    let rich = open(&full);
    assert_eq!(rich.build_id(), poor.build_id());
    assert_eq!(cache.resolve(&rich, outer).source, SymbolSource::Dwarf);
    // Back to the poorer one only for those who hold it; its answers are the richer one's.
    assert!(Arc::ptr_eq(&open(&stripped), &rich));
    assert_eq!(cache.resolve(&poor, outer).source, SymbolSource::Dwarf);
}

#[test]
fn a_file_that_was_written_over_in_place_is_read_again() {
    if !has_tool("gcc", "--version") {
        return;
    }
    let shop = Workshop::new();
    let program = shop.path(&programs(&shop, 1)[0]);
    let bytes = std::fs::read(&program).expect("the compiler wrote it");
    let (outer, ..) = functions(&program)
        .into_iter()
        .find(|(_, _, name)| name == "outer")
        .expect("it is not inlined");
    let cache = SymbolCache::new(SymbolCacheOptions::default());
    let open = || {
        cache
            .open_path(&program, Path::new("/"))
            .expect("an ELF file")
    };
    let cut_short = open();
    std::fs::write(&program, []).expect("own file");
    assert_eq!(cache.resolve(&cut_short, outer).source, SymbolSource::None);
    std::fs::write(&program, bytes).expect("own file");
    assert_eq!(cache.resolve(&open(), outer).source, SymbolSource::Dwarf);
}

#[test]
fn a_container_that_is_gone_does_not_keep_its_successor_nameless() {
    if !has_tool("gcc", "--version") || !has_tool("objcopy", "--version") {
        return;
    }
    let shop = Workshop::new();
    let full = shop.path(&programs(&shop, 1)[0]);
    let full = full.to_string_lossy().into_owned();
    let (outer, ..) = functions(Path::new(&full))
        .into_iter()
        .find(|(_, _, name)| name == "outer")
        .expect("it is not inlined");
    for root in ["first", "second"] {
        std::fs::create_dir_all(shop.path(root)).expect("own directory");
        let program = shop.path(root).join("program");
        shop.run("strip", &["-o", &program.to_string_lossy(), &full]);
    }
    let cache = SymbolCache::new(SymbolCacheOptions::default());
    let open = |root: &str| {
        cache
            .open_path(Path::new("/program"), &shop.path(root))
            .expect("an ELF file")
    };
    let first = open("first");
    assert_eq!(cache.resolve(&first, outer).source, SymbolSource::None);
    std::fs::remove_dir_all(shop.path("first")).expect("own directory");
    let id = first.build_id().gnu_hex().expect("it has one");
    let debug_file = format!(
        "second/usr/lib/debug/.build-id/{}/{}.debug",
        &id[..2],
        &id[2..]
    );
    shop.write(&debug_file, "");
    shop.run("objcopy", &["--only-keep-debug", &full, &debug_file]);
    let second = open("second");
    assert_eq!(cache.resolve(&second, outer).source, SymbolSource::Dwarf);
}

#[test]
fn what_is_no_elf_file_is_refused_from_memory() {
    let shop = Workshop::new();
    let script = shop.write("script.sh", "#!/bin/sh\nexit 0\n");
    let cache = SymbolCache::new(SymbolCacheOptions::default());
    for refused in 0..3 {
        let error = cache
            .open_path(&script, Path::new("/"))
            .expect_err("a script is no ELF file");
        assert!(matches!(error, Error::NotElf { .. }), "{error}");
        assert_eq!(cache.stats().refused_files, refused);
    }
    let absent = cache
        .open_path(&shop.path("absent"), Path::new("/"))
        .expect_err("nothing is there");
    assert!(matches!(absent, Error::Io { .. }), "{absent}");
    let directory = cache
        .open_path(shop.root(), Path::new("/"))
        .expect_err("a directory is no file");
    assert!(
        matches!(directory, Error::NotRegularFile { .. }),
        "{directory}"
    );
}

#[test]
fn memory_is_bounded_and_evicted_objects_still_answer() {
    if !has_tool("gcc", "--version") {
        return;
    }
    let shop = Workshop::new();
    const BOUND: usize = 4 << 10;
    let programs = programs(&shop, 6);
    let options = SymbolCacheOptions {
        max_symbol_bytes: BOUND,
        ..SymbolCacheOptions::default()
    };
    let cache = SymbolCache::new(options);
    let objects: Vec<_> = programs
        .iter()
        .map(|name| {
            cache
                .open_path(&shop.path(name), Path::new("/"))
                .expect("an ELF file")
        })
        .collect();
    let symbols = functions(&shop.path(&programs[0]));
    let ours: Vec<_> = symbols
        .iter()
        .filter(|(_, _, name)| ["main", "outer", "local"].contains(&&**name))
        .collect();
    assert_eq!(ours.len(), 3, "{symbols:?}");
    for _ in 0..3 {
        for object in &objects {
            for (address, _, name) in &ours {
                let answer = cache.resolve(object, *address);
                assert_eq!(
                    answer.frames.last().map(|frame| &*frame.function),
                    Some(&**name)
                );
                let stats = cache.stats();
                assert!(
                    stats.symbol_bytes <= BOUND || stats.objects == 1,
                    "{stats:?}"
                );
            }
        }
    }
    let stats = cache.stats();
    assert!(
        stats.evicted_objects > 0 && stats.objects < objects.len(),
        "{stats:?}"
    );
    assert_eq!(
        (stats.misses, stats.hits),
        (18, 36),
        "answers outlive their object's parsed symbols"
    );
}

#[test]
fn threads_share_a_cache() {
    if !has_tool("gcc", "--version") {
        return;
    }
    let shop = Workshop::new();
    let program = shop.path(&programs(&shop, 1)[0]);
    let cache = SymbolCache::new(SymbolCacheOptions::default());
    let (start, size, _) = functions(&program)
        .into_iter()
        .find(|(_, _, name)| name == "outer")
        .expect("it is not inlined");
    let answers: Vec<Vec<_>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let object = cache
                        .open_path(&program, Path::new("/"))
                        .expect("an ELF file");
                    (start..start + size)
                        .map(|address| cache.resolve(&object, address))
                        .collect()
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect()
    });
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]));
    let stats = cache.stats();
    assert_eq!(stats.hits + stats.misses, 4 * size);
    assert!(stats.misses >= size);
}
