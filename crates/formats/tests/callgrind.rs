//! Callgrind files: the dialects there are, stacks from call graphs, and what valgrind itself says.

use std::collections::BTreeMap;

use crate::common::callgrind_costs::own_costs;
use crate::common::callgrind_costs::tree;
use crate::common::callgrind_costs::written;
use crate::common::folded_lines;
use crate::common::real_files;
use crate::common::self_values;
use candela_formats::Format;
use candela_formats::Limits;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_formats::WriteOptions;
use candela_formats::detect;
use candela_formats::read;
use candela_formats::read_callgrind;
use candela_formats::write;
use candela_model::Profile;
use proptest::prelude::*;

fn read_text(text: &str) -> (Profile, Report) {
    let (profile, report) = read_callgrind(text.as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!(profile.validate(), Ok(()));
    (profile, report)
}

/// Stacks with values of the series at `position`, without labels and type.
fn stacks(profile: &Profile, position: usize) -> Vec<String> {
    let mut one = profile.clone();
    one.series = vec![profile.series[position].clone()];
    let lines = folded_lines(&one);
    let bare = lines.iter().map(|line| line.split_once("] ").unwrap().1);
    bare.map(str::to_owned).collect()
}

fn codes(report: &Report) -> Vec<&str> {
    report.notes.iter().map(|note| note.code).collect()
}

const EXAMPLE: &str = "\
# callgrind format
events: Cycles Instructions

fl=file1.c
fn=main
16 20 5
cfn=func1
calls=1 50
16 400 40
cfi=file2.c
cfn=func2
calls=3 20
16 400 40

fn=func1
51 100 10
cfi=file2.c
cfn=func2
calls=2 20
51 300 30

fl=file2.c
fn=func2
20 700 70
";

/// Xdebug writes a function when it returns, so that a killed program leaves callers without callees.
#[test]
fn what_a_cut_file_misses_is_noted() {
    let whole = "events: Ir\nfn=(1) main\n1 40\ncfn=(2) work\ncalls=1 0\n9 120\n\nfn=(2)\n5 120\n";
    assert_eq!(codes(&read_text(whole).1), [""; 0]);
    let called = whole.split("\nfn=(2)").next().unwrap();
    let (line, file) = ("lines_not_understood", "file_cut");
    let function = "functions_without_costs";
    let cases = [
        ("", vec![function]),
        ("cfn=(", vec![line, function]),
        ("cfn=(3) more\ncalls=1 0", vec![file, function]),
        ("fn=(2)\n5 120\nfn=(1", vec![line]),
        ("fn=(2)\n5 120\nfn=(1\n7 100\n", vec![line]),
    ];
    for (end, expected) in cases {
        let (profile, report) = read_text(&format!("{called}{end}"));
        assert_eq!(codes(&report), expected, "{end}");
        assert_eq!(self_values(&profile, 0)["main"], 40, "{end}");
    }
}

#[test]
fn bare_events_of_xdebug_have_the_units_of_its_version() {
    for (version, factor) in [("2.9.8", 1_000), ("3.0.4 (PHP 8.0.3)", 10)] {
        let head = format!("version: 1\ncreator: xdebug {version}\nevents: Time Memory\n");
        let (profile, _) = read_text(&format!("{head}fn=main\n1 7 -8\n2 3 16\nsummary: 10 8\n"));
        let [time, memory] = &profile.series[..] else {
            panic!("xdebug {version} has two events");
        };
        let units = [time, memory].map(|series| series.profile_type.sample_unit.as_str());
        assert_eq!(units, ["nanoseconds", "bytes"]);
        assert_eq!((time.total(), memory.total()), (10 * factor, 8));
    }
}

#[test]
fn a_call_graph_becomes_stacks() {
    let (profile, report) = read_text(EXAMPLE);
    assert_eq!(codes(&report), [""; 0]);
    let types: Vec<String> = profile
        .series
        .iter()
        .map(|series| series.profile_type.to_string())
        .collect();
    assert_eq!(
        types,
        ["Cycles:Cycles:count::", "Instructions:Instructions:count::"]
    );
    assert_eq!(
        stacks(&profile, 0),
        [
            "main 20",
            "main;func1 100",
            "main;func1;func2 300",
            "main;func2 400"
        ]
    );
    assert_eq!(
        stacks(&profile, 1),
        [
            "main 5",
            "main;func1 10",
            "main;func1;func2 30",
            "main;func2 40"
        ]
    );
    let symbols = &profile.symbols;
    let lines: Vec<(&str, &str, u32)> = symbols
        .all_lines()
        .iter()
        .map(|line| {
            let function = symbols.function(line.function);
            let text = |id| symbols.strings.get(id);
            (text(function.name), text(function.file), line.line)
        })
        .collect();
    for expected in [
        ("main", "file1.c", 16),
        ("func1", "file1.c", 51),
        ("func2", "file2.c", 20),
    ] {
        assert!(lines.contains(&expected), "{lines:?}");
    }
}

#[test]
fn real_files_have_these_stacks() {
    let func = [
        "main 20",
        "main;func1 100",
        "main;func1;func2 300",
        "main;func2 400",
    ];
    let expected: [(&str, &str, usize, &[&str]); 8] = [
        (
            "speedscope.example.log",
            "Instructions:Instructions:count::",
            0,
            &func,
        ),
        (
            "speedscope.name-compression.log",
            "Instructions:Instructions:count::",
            0,
            &func,
        ),
        (
            "speedscope.subposition-compression.log",
            "Instructions:Instructions:count::",
            0,
            &func,
        ),
        // gamma costs 10 and its callers say 20: they share it.
        (
            "speedscope.cfn-reset.log",
            "Instructions:Instructions:count::",
            0,
            &[
                "alpha 10",
                "alpha;beta 10",
                "alpha;delta 10",
                "alpha;delta;gamma 5",
                "alpha;gamma 5",
            ],
        ),
        (
            "speedscope.multiple-event-types.log",
            "Time:Time:nanoseconds::",
            0,
            &[
                "main 200",
                "main;func1 1000",
                "main;func1;func2 3000",
                "main;func2 4000",
            ],
        ),
        (
            "speedscope.multiple-event-types.log",
            "Memory:Memory:bytes::",
            1,
            &[
                "main 15000",
                "main;func1 15000",
                "main;func1;func2 5000",
                "main;func2 3000",
            ],
        ),
        (
            "pprof.heap.callgrind",
            "memory:inuse_space:bytes:space:bytes",
            0,
            &[],
        ),
        (
            "pprof.cpu.call_tree.callgrind",
            "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
            0,
            &[],
        ),
    ];
    for file in real_files("callgrind") {
        assert_eq!(
            detect(&file.bytes),
            Some(Format::Callgrind),
            "{}",
            file.name
        );
        let (profile, report) =
            read(Format::Callgrind, &file.bytes[..], &ReadOptions::default()).unwrap();
        assert_eq!(profile.validate(), Ok(()), "{}", file.name);
        println!(
            "{}: {:?}\n{:#?}",
            file.name,
            report.notes,
            folded_lines(&profile)
        );
        let mut known = expected
            .iter()
            .filter(|known| known.0 == file.name)
            .peekable();
        assert!(
            known.peek().is_some(),
            "nothing is expected of {}",
            file.name
        );
        for (_, id, position, lines) in known {
            assert_eq!(profile.series[*position].profile_type.to_string(), *id);
            if !lines.is_empty() {
                assert_eq!(stacks(&profile, *position), *lines, "{}", file.name);
            }
        }
    }
}

#[test]
fn own_costs_of_pprof_files_stay_exact() {
    let files = real_files("callgrind");
    type OwnCosts = &'static [(&'static str, i64)];
    let cases: [(&str, i64, OwnCosts); 2] = [
        (
            "pprof.cpu.call_tree.callgrind",
            1_000_000,
            &[("line1000", 1100), ("line2001", 10), ("line3002", 10)],
        ),
        (
            "pprof.heap.callgrind",
            1 << 20,
            &[("line1000", 4), ("line2001", 62), ("line3002", 31)],
        ),
    ];
    for (name, factor, own) in cases {
        // Those of the larger corpus, where it is.
        let Some(file) = files.iter().find(|file| file.name == name) else {
            continue;
        };
        let (profile, _) = read_callgrind(&file.bytes[..], &ReadOptions::default()).unwrap();
        let tree = tree(&profile, 0);
        let mut found: Vec<(&str, i64)> = tree
            .function_table()
            .iter()
            .filter(|row| row.self_value != 0)
            .map(|row| (tree.frames.name(row.frame), row.self_value / factor))
            .collect();
        found.sort_unstable();
        assert_eq!(found, own, "{name}");
        // All stacks start where the program does.
        let roots: Vec<&str> = tree
            .children(0)
            .map(|node| tree.frames.name(tree.frame[node]))
            .collect();
        assert_eq!(roots, ["line3000"], "{name}");
    }
}

#[test]
fn names_numbers_and_positions_may_be_short() {
    let text = "\
version: 1
creator: callgrind-3.19.0
pid: 42
cmd:  /usr/bin/demo --fast x=1
part: 1

desc: Timerange: Basic block 0 - 42096
positions: instr line
events: Ir
summary: 110

ob=(1) /usr/bin/demo
fl=(1) a.c
fn=(1) main
0x1000 10 1
+4 +1 2
* * 3
fi=(2) a.h
+0x10 5 4
fe=(1)
-0x8 12 5
jcnd=1/3 +22 0
* 12
cob=(2) /lib/libc.so
cfi=(3) puts.c
cfn=(2) puts
calls=2 0x2000 7
+1 * 100

ob=(2)
fl=(3)
fn=(2)
0x2000 7 90
totals: 105
";
    let (profile, report) = read_text(text);
    assert_eq!(codes(&report), ["summary_larger"]);
    // The inlined code of a.h is a frame of its own below the function that it is part of.
    assert_eq!(
        stacks(&profile, 0),
        ["main 1", "main 4", "main 5", "main 5", "main;puts 90"]
    );
    let tree = tree(&profile, 0);
    let own: BTreeMap<&str, i64> = tree
        .function_table()
        .iter()
        .map(|row| {
            let file = tree.frames.get(row.frame).file;
            (tree.frames.strings.get(file), row.self_value)
        })
        .collect();
    assert_eq!(
        own,
        BTreeMap::from([("a.c", 11), ("a.h", 4), ("puts.c", 90)])
    );
    let addresses: Vec<u64> = profile
        .symbols
        .locations()
        .iter()
        .map(|location| location.address)
        .collect();
    for address in [0x1000, 0x1004, 0x1014, 0x100c, 0x100d, 0x2000] {
        assert!(addresses.contains(&address), "{addresses:x?}");
    }
    let series = &profile.series[0];
    assert_eq!(series.labels.get("pid"), Some("42"));
    assert_eq!(series.labels.get("process_executable_name"), Some("demo"));
}

#[test]
fn what_is_relative_in_one_dialect_is_negative_in_another() {
    let body = "events: Time_(10ns) Memory_(bytes)\nfl=a.php\nfn=f\n1 20 500\n2 10 -300\n";
    let (plain, _) = read_text(body);
    assert_eq!(plain.series[1].total(), 500 + 200);
    let (xdebug, _) = read_text(&format!("version: 1\ncreator: xdebug 3.0.2\n{body}"));
    assert_eq!(xdebug.series[1].total(), 500 - 300);
    assert_eq!(xdebug.series[0].total(), 300);
}

#[test]
fn parts_add_up_and_threads_are_told_apart() {
    let text = "\
version: 1
part: 1
thread: 1
events: Ir Dr
fn=(1) main
1 10 1
totals: 10 1

part: 2
thread: 2
event: Both = Ir + 2 Dr : Ir and twice Dr
events: Dr Ir
fn=(1)
1 2 20
totals: 2 20

part: 3
thread: 1
events: Ir
fn=(1)
1 5
totals: 5
";
    let (profile, report) = read_text(text);
    assert_eq!(codes(&report), [""; 0]);
    assert_eq!(
        folded_lines(&profile),
        [
            "{} Both:Both:count:: [thread_id=1] main 17",
            "{} Both:Both:count:: [thread_id=2] main 24",
            "{} Dr:Dr:count:: [thread_id=1] main 1",
            "{} Dr:Dr:count:: [thread_id=2] main 2",
            "{} Ir:Ir:count:: [thread_id=1] main 15",
            "{} Ir:Ir:count:: [thread_id=2] main 20",
        ]
    );
}

#[test]
fn recursion_neither_loses_nor_doubles() {
    let text = "\
events: Ir
fn=main
1 10
cfn=even
calls=1 1
1 90
fn=even
1 50
cfn=odd
calls=16 1
2 400
fn=odd
1 40
cfn=even
calls=15 1
2 380
cfn=odd
calls=3 1
3 7
";
    let (profile, _) = read_text(text);
    assert_eq!(
        stacks(&profile, 0),
        ["main 10", "main;even 50", "main;even;odd 40"]
    );
}

#[test]
fn broken_files_give_what_is_sound() {
    let text = "events: Ir\nfn=(3)\n1 10\nwhat is this\n1 x\n1 2 3\ncalls=1 2\n1 5\n+99999999999999999999 4\nfn=b\n2 7";
    let (profile, report) = read_text(text);
    assert_eq!(profile.series[0].total(), 10 + 2 + 7);
    assert_eq!(codes(&report), ["names_undefined", "lines_not_understood"]);
    for (text, message) in [
        ("", "no line has a cost"),
        ("events: Ir\n", "no line has a cost"),
        ("fn=main\n1 2\n", "line 2 has costs, and no `events:` line"),
        ("version: 2\nevents: Ir\n", "line 1: version 2 is newer"),
    ] {
        let error = read_callgrind(text.as_bytes(), &ReadOptions::default()).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    }
    let wide = format!("events:{}\n", " x y".repeat(200));
    assert!(read_callgrind(wide.as_bytes(), &ReadOptions::default()).is_err());
}

#[test]
fn more_stacks_than_can_be_written_keep_their_sum() {
    // Thirty layers of two functions that all call each other: 2^30 stacks.
    let mut text = "events: Ir\nfn=main\n1 1\n".to_owned();
    for side in 0..2 {
        text += &format!("cfn=f0_{side}\ncalls=1 1\n1 1000000\n");
    }
    for layer in 0..30 {
        for side in 0..2 {
            text += &format!("fn=f{layer}_{side}\n1 1000\n");
            for next in 0..2 {
                text += &format!("cfn=f{}_{next}\ncalls=1 1\n1 500000\n", layer + 1);
            }
        }
    }
    let limits = Limits {
        max_samples: 10_000,
        ..Limits::default()
    };
    let options = ReadOptions {
        limits,
        ..ReadOptions::default()
    };
    let (profile, report) = read_callgrind(text.as_bytes(), &options).unwrap();
    assert_eq!(codes(&report), ["functions_without_costs", "stacks_joined"]);
    assert_eq!(profile.series[0].total(), 1 + 60 * 1000);
    let tree = tree(&profile, 0);
    for row in tree.function_table() {
        let name = tree.frames.name(row.frame);
        assert!(
            name == "main" || name.starts_with("f30") || row.self_value == 1000,
            "{name}"
        );
    }
}

#[test]
fn what_is_written_reads_back() {
    let (profile, _) = read_text(EXAMPLE);
    let text = written(&profile);
    assert_eq!(detect(text.as_bytes()), Some(Format::Callgrind));
    let (again, report) = read_text(&text);
    assert_eq!(codes(&report), [""; 0]);
    assert_eq!(folded_lines(&again), folded_lines(&profile));
    let folded = "a;(2) b;c 5\na;(2) b 1\n;x 2\n";
    let (profile, _) = read(Format::Folded, folded.as_bytes(), &ReadOptions::default()).unwrap();
    let (again, report) = read_text(&written(&profile));
    assert_eq!(codes(&report), [""; 0]);
    assert_eq!(
        stacks(&again, 0),
        ["[unknown];x 2", "a;(2) b 1", "a;(2) b;c 5"]
    );
    let negative = read(Format::Folded, &b"a -3\n"[..], &ReadOptions::default())
        .unwrap()
        .0;
    let error = write(
        Format::Callgrind,
        &negative,
        Vec::new(),
        &WriteOptions::default(),
    );
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("negative values, as \"a\" has")
    );
}

proptest! {
    #[test]
    fn own_costs_survive_the_way_there_and_back(
        stacks in prop::collection::vec((prop::collection::vec(0_u8..6, 1..8), 1_i64..1_000_000), 1..30)
    ) {
        let folded: String = stacks
            .iter()
            .map(|(stack, value)| {
                let names: Vec<String> = stack.iter().map(|name| format!("f{name}")).collect();
                format!("{} {value}\n", names.join(";"))
            })
            .collect();
        let (profile, _) = read(Format::Folded, folded.as_bytes(), &ReadOptions::default()).unwrap();
        let (again, report) = read_text(&written(&profile));
        prop_assert_eq!(codes(&report), [""; 0]);
        prop_assert_eq!(own_costs(&again), own_costs(&profile));
        prop_assert_eq!(&again.series[0].profile_type, &profile.series[0].profile_type);
    }

    #[test]
    fn trees_without_sharing_come_back_whole(
        values in prop::collection::vec(1_i64..1_000_000, 1..20), depth in 1_usize..10
    ) {
        let folded: String = values
            .iter()
            .enumerate()
            .map(|(stack, value)| {
                let names: Vec<String> = (0..depth).map(|level| format!("f{stack}_{level}")).collect();
                format!("main;{} {value}\n", names.join(";"))
            })
            .collect();
        let (profile, _) = read(Format::Folded, folded.as_bytes(), &ReadOptions::default()).unwrap();
        let (again, _) = read_text(&written(&profile));
        prop_assert_eq!(folded_lines(&again), folded_lines(&profile));
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = read_callgrind(&bytes[..], &ReadOptions::default());
    }

    #[test]
    fn any_mutation_is_survived(at in 0_usize..400, byte in any::<u8>()) {
        let mut bytes = EXAMPLE.as_bytes().to_vec();
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok((profile, _)) = read_callgrind(&bytes[..], &ReadOptions::default()) {
            prop_assert_eq!(profile.validate(), Ok(()));
        }
    }
}
