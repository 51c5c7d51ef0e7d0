//! Mappings and tables in the kernel: room, limits, bookkeeping.

use crate::support::start;
use candela_ebpf::{Error, Mapping, MappingKind, Options, TableId};
use candela_unwind::{Rule, RuleSet, Table, TableBuilder};

/// Above the largest process id that Linux can give.
const NOBODY: u32 = 5_000_000;

fn mappings(count: u64) -> Vec<Mapping> {
    let mapping = |number| Mapping {
        start: 0x10_0000 * number,
        end: 0x10_0000 * number + 0x1000,
        bias: 0,
        kind: MappingKind::Table(TableId(number as u32)),
    };
    (1..=count).map(mapping).collect()
}

fn small_table(rules: &mut RuleSet) -> Table {
    let mut builder = TableBuilder::new();
    for address in 0x1000..0x1100 {
        let rule = if address % 2 == 0 {
            Rule::AT_ENTRY
        } else {
            Rule::END
        };
        builder.push(address, rule, rules).expect("ascending");
    }
    builder.finish().expect("rows")
}

#[test]
fn mappings_beyond_the_room_are_refused_and_freed_room_is_reused() {
    let options = Options {
        max_regions: 100,
        ..Options::default()
    };
    let Some(sampler) = start(&options) else {
        return;
    };
    let kernel = sampler.kernel_tables();
    kernel
        .add_process_mappings(NOBODY, &mappings(60))
        .expect("room for 60");
    let error = kernel
        .add_process_mappings(NOBODY + 1, &mappings(60))
        .expect_err("no room");
    assert!(
        matches!(
            error,
            Error::RegionsFull {
                wanted: 60,
                used: 60,
                capacity: 100,
                ..
            }
        ),
        "{error:?}"
    );
    assert!(!kernel.knows_process(NOBODY + 1));

    // A fork takes no room of its own, and its parent's end does not take it away.
    assert!(kernel.inherit_mappings(NOBODY, NOBODY + 2).expect("shared"));
    assert!(
        !kernel
            .inherit_mappings(NOBODY + 9, NOBODY + 3)
            .expect("nothing to share")
    );
    let shared = kernel.memory().expect("measurable");
    assert_eq!((shared.processes, shared.regions), (2, 60));
    kernel.remove_process(NOBODY).expect("known");
    assert_eq!(kernel.memory().expect("measurable").regions, 60);
    assert_eq!(kernel.known_processes(), [NOBODY + 2]);

    kernel.remove_process(NOBODY + 2).expect("known");
    kernel
        .remove_process(NOBODY + 2)
        .expect("a second time is fine");
    kernel
        .add_process_mappings(NOBODY + 1, &mappings(100))
        .expect("all is free again");
}

#[test]
fn more_processes_than_announced_are_refused() {
    let options = Options {
        max_processes: 2,
        ..Options::default()
    };
    let Some(sampler) = start(&options) else {
        return;
    };
    let kernel = sampler.kernel_tables();
    for number in 0..2 {
        kernel
            .add_process_mappings(NOBODY + number, &mappings(3))
            .expect("room");
    }
    let error = kernel.add_process_mappings(NOBODY + 2, &mappings(3));
    assert!(
        matches!(
            error,
            Err(Error::Map {
                map: "processes",
                ..
            })
        ),
        "{error:?}"
    );
    let used = kernel.memory().expect("measurable");
    assert_eq!((used.processes, used.regions), (2, 6));
}

#[test]
fn tables_are_exactly_sized_and_accounted() {
    let options = Options {
        max_tables: 8,
        ..Options::default()
    };
    let Some(sampler) = start(&options) else {
        return;
    };
    let mut rules = RuleSet::new();
    let table = small_table(&mut rules);
    sampler.sync_rules(&rules);
    let before = sampler.memory().expect("measurable");
    let before_ns = candela_ebpf::monotonic_ns();
    let bytes = sampler.upload_table(TableId(7), &table).expect("uploads");
    // A page for the map and pages for its elements.
    let least = table.words().len() as u64 * 4;
    assert!(
        (least..least + 3 * 4096).contains(&bytes),
        "{bytes} for {least}"
    );
    let after = sampler.memory().expect("measurable");
    assert_eq!(after.total_bytes(), before.total_bytes() + bytes);
    assert_eq!((after.tables, after.table_bytes), (1, bytes));

    sampler
        .upload_table(TableId(7), &table)
        .expect("replaces itself");
    assert_eq!(sampler.memory().expect("measurable").table_bytes, bytes);
    let kernel = sampler.kernel_tables();
    assert!(kernel.is_table_loaded(TableId(7)));
    assert!(
        kernel.tables_by_last_use()[0].last_used_ns >= before_ns,
        "a new table is not the first to go"
    );
    assert_eq!(sampler.evict_table(TableId(7)).expect("loaded"), bytes);
    assert_eq!(
        sampler
            .evict_table(TableId(7))
            .expect("a second time is fine"),
        0
    );
    assert_eq!(sampler.memory().expect("measurable"), before);

    let error = sampler.upload_table(TableId(8), &table);
    assert!(
        matches!(
            error,
            Err(Error::TableId {
                id: 8,
                max_tables: 8
            })
        ),
        "{error:?}"
    );
}
