//! Names that come after the profiles: two tables change, nothing else does.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::collections::BTreeMap;
use std::fs;
use std::fs::File;
use std::ops::ControlFlow;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use crate::common::NOON_NS;
use crate::common::block_on;
use crate::common::options;
use crate::common::profile;
use crate::common::totals;
use candela_model::FrameKind;
use candela_model::Labels;
use candela_model::Location;
use candela_model::Mapping;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use candela_store::Block;
use candela_store::BlockSymbolizer;
use candela_store::CodeLine;
use candela_store::CodePlace;
use candela_store::SampleColumns;
use candela_store::Snapshot;
use candela_store::Store;
use candela_store::StoreOptions;
use candela_store::TimeRange;
use parquet::file::reader::FileReader;
use parquet::file::reader::SerializedFileReader;
use parquet::record::Field;

const OURS: &str = "aa00";
const OTHER: &str = "bb00";

/// Names `f1000` and the like, with a call inlined at addresses divisible by 0x20; nothing below
/// 0x1000.
#[derive(Debug)]
struct Names {
    build_id: &'static str,
    source: &'static str,
    asked: AtomicU64,
    cancelled_after: u64,
}

impl Names {
    fn new(build_id: &'static str, source: &'static str) -> Self {
        Self {
            build_id,
            source,
            asked: AtomicU64::new(0),
            cancelled_after: u64::MAX,
        }
    }
}

impl BlockSymbolizer for Names {
    fn build_id(&self) -> &str {
        self.build_id
    }

    fn source(&self) -> &str {
        self.source
    }

    fn lines(&self, place: &CodePlace) -> Vec<CodeLine> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        assert_eq!((place.mapping_start, place.mapping_limit), (0, 1 << 20));
        if place.address < 0x1000 {
            return Vec::new();
        }
        let line = |name: String| CodeLine {
            kind: FrameKind::Rust,
            function_name: name.into(),
            system_name: "mangled".into(),
            file_name: "late.rs".into(),
            line: 7,
            column: 3,
            start_line: 5,
        };
        let outer = line(format!("f{:x}", place.address));
        match place.address % 0x20 {
            0 => vec![line(format!("inlined{:x}", place.address)), outer],
            _ => vec![outer],
        }
    }

    fn is_cancelled(&self) -> bool {
        self.asked.load(Ordering::Relaxed) >= self.cancelled_after
    }
}

/// Stacks (leaf first, as build id and address; a name instead of a build id is a known function)
/// of two services, with their values.
const STACKS: [(&[(&str, u64)], i64); 7] = [
    (&[(OURS, 0x1000), (OURS, 0x1010), ("main", 0)], 1),
    (&[(OURS, 0x1020), (OURS, 0x1010), ("main", 0)], 20),
    // Recursion, which shows in the names only.
    (&[(OURS, 0x1000), (OURS, 0x1000), ("main", 0)], 300),
    (&[(OTHER, 0x1000), (OURS, 0x1010), ("main", 0)], 4000),
    (&[(OURS, 0x10), (OURS, 0x1010), ("main", 0)], 50_000),
    (&[("helper", 0), ("main", 0)], 600_000),
    (&[("", 0x1000), ("main", 0)], 7_000_000),
];

fn nameless(service: &str, start_ns: i64) -> Profile {
    let mut profile = Profile::default();
    let profile_type = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
    let labels = Labels::from_pairs([("service_name", service)]);
    let mut series = ProfileSeries::new(labels, profile_type.parse().unwrap());
    (series.start_ns, series.duration_ns) = (start_ns, 10_000_000_000);
    for (frames, value) in STACKS {
        let symbols = &mut profile.symbols;
        let locations: Vec<_> = frames
            .iter()
            .map(|&(name, address)| {
                if address == 0 {
                    let function = symbols.intern_function(name, "", "known.c", 1);
                    let place = Location::new(FrameKind::Native, 0x77);
                    return symbols.intern_location(&place, &[(function, 2, 0)]);
                }
                let mapping = Mapping {
                    memory_start: 0,
                    memory_limit: 1 << 20,
                    file_offset: 0,
                    file: symbols.strings.intern("/usr/bin/program"),
                    build_id: symbols.strings.intern(name),
                };
                let mapping = symbols.intern_mapping(mapping);
                let place = Location::new(FrameKind::Native, address).in_mapping(mapping);
                symbols.intern_location(&place, &[])
            })
            .collect();
        let stack = profile.stacks.intern(&locations);
        series.samples.push(Sample::new(stack, value));
    }
    profile.series.push(series);
    profile
}

/// A store with one block of two services.
fn filled(directory: &Path) -> Store {
    filled_with(StoreOptions {
        readable_stacks: true,
        ..options(directory)
    })
}

fn filled_with(options: StoreOptions) -> Store {
    let store = Store::open(options).unwrap();
    block_on(async {
        for service in ["api", "web"] {
            store.append("t", nameless(service, NOON_NS)).await.unwrap();
        }
        store.flush().await.unwrap();
    });
    store
}

fn snapshot(store: &Store) -> Snapshot {
    store.snapshot("t", TimeRange::ALL).unwrap()
}

fn only_block(store: &Store) -> Arc<Block> {
    let blocks = snapshot(store).blocks;
    assert_eq!(blocks.len(), 1);
    Arc::clone(&blocks[0])
}

/// The value of each stack as names from the root on.
fn by_name(block: &Block) -> BTreeMap<String, i64> {
    let (stacks, locations) = (block.stacks().unwrap(), block.locations().unwrap());
    let mut sums = BTreeMap::new();
    let all = 0..block.meta().rows;
    let scanned = block.scan_samples(&[all], SampleColumns::default(), &mut |chunk| {
        for (&stack, &value) in chunk.stack_ids.iter().zip(chunk.values) {
            let mut names = Vec::new();
            let mut node = stacks.node_of_stack[stack as usize];
            while stacks.parents[node as usize] != node {
                let location = stacks.locations[node as usize];
                let row = locations.get(location);
                let mark = if row.is_inlined { "~" } else { "" };
                names.push(format!("{mark}{}", locations.display_name(location)));
                node = stacks.parents[node as usize];
            }
            names.reverse();
            *sums.entry(names.join(";")).or_default() += value;
        }
        ControlFlow::Continue(())
    });
    scanned.unwrap();
    sums
}

fn named_stacks() -> BTreeMap<String, i64> {
    let stacks = [
        ("main;f1010;f1000;~inlined1000", 1),
        ("main;f1010;f1020;~inlined1020", 20),
        ("main;f1000;~inlined1000;f1000;~inlined1000", 300),
        ("main;f1010;program+0x1000", 4000),
        ("main;f1010;program+0x10", 50_000),
        ("main;helper", 600_000),
        ("main;program+0x1000", 7_000_000),
    ];
    let both = stacks.iter();
    both.map(|(names, value)| ((*names).to_owned(), 2 * value))
        .collect()
}

fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![directory.join("blocks/v1")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let relative = path.strip_prefix(directory).unwrap().to_owned();
            found.insert(relative, fs::read(&path).unwrap());
        }
    }
    found
}

fn is_of_samples(path: &Path) -> bool {
    ["samples", "profiles", "label_sets"]
        .iter()
        .any(|table| path.starts_with(Path::new("blocks/v1").join(table)))
}

fn count_named(files: &BTreeMap<PathBuf, Vec<u8>>, part: &str) -> usize {
    let paths = files.keys().map(|path| path.to_string_lossy());
    paths.filter(|path| path.contains(part)).count()
}

#[test]
fn names_appear_and_only_two_tables_change() {
    let directory = tempfile::tempdir().unwrap();
    let store = filled(directory.path());
    block_on(async {
        store.append("u", profile(5)).await.unwrap();
        store.flush().await.unwrap();
    });
    let all_named = store.snapshot("u", TimeRange::ALL).unwrap();
    let before = files(directory.path());
    let totals_before = totals(&store, "t");
    let block = only_block(&store);
    let (nameless, stacks) = (by_name(&block), block.stacks().unwrap());
    let rows = block.locations().unwrap().len();

    let wanted = store.unsymbolized(Some("t"));
    let wanted: Vec<_> = wanted
        .iter()
        .map(|it| (&*it.build_id, it.locations, it.samples, &*it.mapping_file))
        .collect();
    // Of seven stacks of two services five have an address of ours.
    let program = "/usr/bin/program";
    assert_eq!(wanted, [(OURS, 4, 10, program), (OTHER, 1, 2, program)]);
    assert!(store.unsymbolized(Some("nobody")).is_empty());

    let names = Names::new(OURS, "file 1");
    let done = store.resymbolize(&names).unwrap();
    assert_eq!((done.renamed_blocks, done.failed_blocks), (1, 0));
    assert_eq!((done.named_locations, done.unnamed_locations), (3, 1));
    assert_eq!(names.asked.load(Ordering::Relaxed), 4, "each address once");

    let renamed = only_block(&store);
    assert_ne!(renamed.version(), block.version());
    assert_eq!(renamed.meta().block_id, block.meta().block_id);
    assert_eq!(by_name(&renamed), named_stacks());
    assert_eq!(
        renamed.stacks().unwrap().node_of_stack.len(),
        stacks.node_of_stack.len()
    );
    let locations = renamed.locations().unwrap();
    assert!(
        locations.len() > rows,
        "inlined calls are rows of their own"
    );
    let row = (0..locations.len() as u32)
        .map(|number| locations.get(number))
        .find(|row| locations.text(row.function_name) == "f1010")
        .unwrap();
    assert_eq!(
        (row.kind, row.line, row.column, row.start_line),
        (FrameKind::Rust, 7, 3, 5)
    );
    assert_eq!(locations.text(row.file_name), "late.rs");
    assert_eq!(locations.text(row.system_name), "mangled");
    assert_eq!(locations.text(row.build_id), OURS);
    assert_eq!(locations.text(row.mapping_file), program);

    assert_eq!(totals(&store, "t"), totals_before);
    let untouched = store.snapshot("u", TimeRange::ALL).unwrap();
    assert!(Arc::ptr_eq(&untouched.blocks[0], &all_named.blocks[0]));

    // Who held the block before still reads it as it was.
    assert_eq!(by_name(&block), nameless);
    drop(block);
    let after = files(directory.path());
    for (path, content) in before.iter().filter(|(path, _)| is_of_samples(path)) {
        assert_eq!(after.get(path), Some(content), "{}", path.display());
    }
    assert_eq!(
        after.len(),
        before.len(),
        "nothing is left of the old tables"
    );
    assert_eq!(count_named(&after, ".r1.parquet"), 2);

    let wanted = store.unsymbolized(None);
    let left: Vec<_> = wanted
        .iter()
        .map(|it| (&*it.build_id, it.locations, it.samples))
        .collect();
    assert_eq!(left, [(OURS, 1, 2), (OTHER, 1, 2)]);
    assert_eq!(wanted[0].asked, ["file 1"]);
    let again = Names::new(OURS, "file 1");
    assert_eq!(store.resymbolize(&again).unwrap().named_locations, 0);
    assert_eq!(again.asked.load(Ordering::Relaxed), 0);
    let better = Names::new("AA00", "file 2");
    assert_eq!(store.resymbolize(&better).unwrap().unnamed_locations, 1);

    // The second binary, and all of it after a restart.
    let other = store.resymbolize(&Names::new(OTHER, "x")).unwrap();
    assert_eq!(other.named_locations, 1);
    let expected = by_name(&only_block(&store));
    assert_eq!(expected.get("main;f1010;f1000;~inlined1000"), Some(&8002));
    drop((renamed, store));
    let store = Store::open(options(directory.path())).unwrap();
    assert_eq!(by_name(&only_block(&store)), expected);
    let wanted = store.unsymbolized(None);
    assert_eq!(wanted.len(), 1);
    assert_eq!(wanted[0].asked, ["file 2"]);
    assert_eq!(count_named(&files(directory.path()), ".r2.parquet"), 2);
}

#[test]
fn the_written_tables_are_trees_for_other_engines() {
    let directory = tempfile::tempdir().unwrap();
    let store = filled(directory.path());
    store.resymbolize(&Names::new(OURS, "x")).unwrap();
    let block = only_block(&store);
    let path = |table: &str| {
        let mut files = block.meta().files.iter();
        let file = files.find(|file| file.table == table).unwrap();
        directory.path().join("blocks/v1").join(&file.path)
    };
    let nodes = rows(&path("stack_nodes"));
    let locations = rows(&path("locations"));
    let number = |row: &BTreeMap<String, String>, name: &str| row[name].parse::<usize>().unwrap();
    let mut recursive = 0;
    for (place, node) in nodes.iter().enumerate() {
        assert_eq!(number(node, "node_id"), place);
        let end = number(node, "subtree_end");
        if node["parent_id"].is_empty() {
            assert_eq!((number(node, "depth"), &*node["location_id"]), (0, ""));
        } else {
            let above = &nodes[number(node, "parent_id")];
            assert_eq!(above["service_name"], node["service_name"]);
            assert_eq!(number(node, "depth"), number(above, "depth") + 1);
            assert!(number(node, "parent_id") < place && end <= number(above, "subtree_end"));
        }
        // What is below a node is what is in its range.
        let below = nodes[place + 1..].iter();
        let below = below.take_while(|it| number(it, "depth") > number(node, "depth"));
        assert_eq!(end, place + 1 + below.count());
        recursive += usize::from(node["is_recursive"] == "true");
        if !node["stack_id"].is_empty() {
            let mut names = Vec::new();
            let mut current = node;
            while !current["parent_id"].is_empty() {
                let location = &locations[number(current, "location_id")];
                names.push(location["function_name"].clone());
                current = &nodes[number(current, "parent_id")];
            }
            names.reverse();
            assert_eq!(node["frames"], format!("[{}]", names.join(", ")));
        }
    }
    // The second f1000 and what is inlined into it, in both services.
    assert_eq!(recursive, 4);
    let states = locations.iter().map(|row| &*row["symbol_state"]);
    assert_eq!(states.filter(|state| *state == "unsymbolized").count(), 3);
}

/// A table as texts; null is the empty one.
fn rows(path: &Path) -> Vec<BTreeMap<String, String>> {
    fn text(field: &Field) -> String {
        match field {
            Field::Null => String::new(),
            Field::Str(text) => text.clone(),
            Field::ListInternal(list) => {
                let elements: Vec<String> = list.elements().iter().map(text).collect();
                format!("[{}]", elements.join(", "))
            }
            other => other.to_string(),
        }
    }
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap);
    let rows = rows.map(|row| {
        let columns = row.get_column_iter();
        let columns = columns.map(|(name, field)| (name.clone(), text(field)));
        columns.collect()
    });
    rows.collect()
}

/// Whichever files a crash leaves, the names are the old or the new ones, and the next pass works.
#[test]
fn a_crash_at_any_moment_leaves_the_old_or_the_new() {
    let directory = tempfile::tempdir().unwrap();
    let store = filled(directory.path());
    let nameless = by_name(&only_block(&store));
    let (old_files, old_catalog) = (files(directory.path()), catalog(directory.path()));
    // A reader keeps the old files.
    let reader = snapshot(&store);
    store.resymbolize(&Names::new(OURS, "x")).unwrap();
    let (all_files, new_catalog) = (files(directory.path()), catalog(directory.path()));
    assert_eq!(all_files.len(), old_files.len() + 2);
    let is_manifest = |path: &Path| path.starts_with("blocks/v1/_blocks");
    let with_old_manifest: BTreeMap<PathBuf, Vec<u8>> = all_files
        .iter()
        .map(|(path, content)| match is_manifest(path) {
            true => (path.clone(), old_files[path].clone()),
            false => (path.clone(), content.clone()),
        })
        .collect();
    let one_new_file: BTreeMap<PathBuf, Vec<u8>> = with_old_manifest
        .iter()
        .filter(|(path, _)| {
            !path.to_string_lossy().ends_with(".r1.parquet")
                || path.starts_with("blocks/v1/stack_nodes")
        })
        .map(|(path, content)| (path.clone(), content.clone()))
        .collect();
    let cases = [
        ("one file written", &one_new_file, &old_catalog, false),
        (
            "both files written",
            &with_old_manifest,
            &old_catalog,
            false,
        ),
        ("in the catalog", &with_old_manifest, &new_catalog, true),
        ("in the manifest", &all_files, &new_catalog, true),
    ];
    for (moment, files_then, catalog_then, is_new) in cases {
        // The catalog may be lost as well: then the manifest says which it is.
        for is_catalog_lost in [false, true] {
            let crashed = tempfile::tempdir().unwrap();
            for (path, content) in files_then {
                let path = crashed.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, content).unwrap();
            }
            if !is_catalog_lost {
                for (name, content) in catalog_then {
                    fs::write(crashed.path().join(name), content).unwrap();
                }
            }
            let store = Store::open(options(crashed.path())).unwrap();
            assert_eq!(store.status().quarantined, [], "{moment}");
            let is_named = by_name(&only_block(&store)) == named_stacks();
            let is_nameless = by_name(&only_block(&store)) == nameless;
            assert!(is_named != is_nameless, "{moment}");
            if !is_catalog_lost {
                assert_eq!(is_named, is_new, "{moment}");
            }
            let left = files(crashed.path());
            assert_eq!(left.len(), old_files.len(), "{moment}: {:?}", left.keys());
            store.resymbolize(&Names::new(OURS, "x")).unwrap();
            assert_eq!(by_name(&only_block(&store)), named_stacks(), "{moment}");
            drop(store);
            // A manifest that is behind would come to light without the catalog.
            for (name, _) in catalog(crashed.path()) {
                fs::remove_file(crashed.path().join(name)).unwrap();
            }
            let store = Store::open(options(crashed.path())).unwrap();
            assert_eq!(by_name(&only_block(&store)), named_stacks(), "{moment}");
        }
    }
    drop(reader);
}

fn catalog(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let names = fs::read_dir(directory).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names = names.filter(|name| name.starts_with("catalog.sqlite") && !name.ends_with("-shm"));
    names
        .map(|name| {
            let content = fs::read(directory.join(&name)).unwrap();
            (name, content)
        })
        .collect()
}

#[test]
fn a_cancelled_pass_changes_nothing_and_can_be_resumed() {
    let directory = tempfile::tempdir().unwrap();
    let store = filled(directory.path());
    let before = files(directory.path());
    let names = Names {
        cancelled_after: 2,
        ..Names::new(OURS, "x")
    };
    let done = store.resymbolize(&names).unwrap();
    assert_eq!(done.renamed_blocks, 0);
    assert_eq!(files(directory.path()), before);
    store.resymbolize(&Names::new(OURS, "x")).unwrap();
    assert_eq!(by_name(&only_block(&store)), named_stacks());
}

#[test]
fn blocks_of_versions_without_an_index_get_one() {
    let directory = tempfile::tempdir().unwrap();
    let store = filled(directory.path());
    let wanted = store.unsymbolized(None);
    drop(store);
    for (path, content) in files(directory.path()) {
        if !path.starts_with("blocks/v1/_blocks") {
            continue;
        }
        let mut manifest: serde_json::Value = serde_json::from_slice(&content).unwrap();
        let manifest_fields = manifest.as_object_mut().unwrap();
        manifest_fields.remove("revision").unwrap();
        manifest_fields.remove("unsymbolized").unwrap();
        fs::write(directory.path().join(path), manifest.to_string()).unwrap();
    }
    for (name, _) in catalog(directory.path()) {
        fs::remove_file(directory.path().join(name)).unwrap();
    }
    // With the log at hand the block would be made again from it.
    fs::remove_dir_all(directory.path().join("wal")).unwrap();
    let store = Store::open(options(directory.path())).unwrap();
    assert_eq!(store.unsymbolized(None), []);
    assert_eq!(store.index_unsymbolized(&|| false).unwrap(), 1);
    assert_eq!(store.unsymbolized(None), wanted);
    assert_eq!(store.index_unsymbolized(&|| false).unwrap(), 0);
    store.resymbolize(&Names::new(OURS, "x")).unwrap();
    assert_eq!(by_name(&only_block(&store)), named_stacks());
}

#[test]
fn queries_meanwhile_see_the_old_names_or_the_new() {
    let directory = tempfile::tempdir().unwrap();
    let store = filled(directory.path());
    let nameless = by_name(&only_block(&store));
    let named = named_stacks();
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let mut seen = 0;
            loop {
                let sums = by_name(&only_block(&store));
                assert!(sums == nameless || sums == named);
                seen += 1;
                if sums == named {
                    return seen;
                }
            }
        });
        store.resymbolize(&Names::new(OURS, "x")).unwrap();
        assert!(reading.join().unwrap() > 0);
    });
}
