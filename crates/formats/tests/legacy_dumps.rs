//! Stack dumps of Go and heap profiles of jemalloc.

use crate::common::folded_lines;
use crate::common::pprof_string;
use candela_formats::Format;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_formats::detect;
use candela_formats::read;
use candela_model::Profile;
use proptest::prelude::*;

const DUMP: &str = "\
panic: no more

goroutine 1 [running]:
main.work({0x1, 0x2}, 0xc000)
\t/src/main.go:17 +0x1d4
main.main()
\t/src/main.go:9 +0x25

goroutine 7 [chan receive, 5 minutes, locked to thread]:
main.(*Queue[...]).take(...)
\t/src/queue.go:5
created by main.main in goroutine 1
\t/src/main.go:8 +0x1a

goroutine 8 [chan receive, 5 minutes, locked to thread]:
main.(*Queue[...]).take(...)
\t/src/queue.go:5
created by main.main
\t/src/main.go:8 +0x1a

goroutine 9 [select (no cases) labels:{\"job\": \"a b\"}]:
...additional frames elided...
created by main.main in goroutine 1
\t/src/main.go:8 +0x1a

goroutine 10 [syscall]:
\tgoroutine running on other thread; stack unavailable
exit status 2
";

const JEMALLOC: &str = "\
heap_v2/4096
  t*: 289: 6726614 [0: 0]
  t0: 289: 6726614 [0: 0]
  t1: 0: 0 [0: 0] worker
@ 0x401176 0x4012b5
  t*: 269: 173014 [0: 0]
  t0: 269: 173014 [0: 0]
@ 0x4011ad 0x4012ba 0x7f9584a4524a
  t*: 20: 6553600 [0: 0]
  t0: 19: 6250000 [0: 0]
  t1: 1: 303600 [0: 0]

MAPPED_LIBRARIES:
00400000-00401000 r--p 00000000 fe:00 9994594                            /srv/work
00401000-00402000 r-xp 00001000 fe:00 9994594                            /srv/work
7f9584a00000-7f9584b00000 r-xp 00026000 fe:00 326789                     /lib/libc.so.6
";

fn read_detected(text: &str, format: Format) -> (Profile, Report) {
    assert_eq!(detect(text.as_bytes()), Some(format));
    let (profile, report) = read(format, text.as_bytes(), &ReadOptions::default()).unwrap();
    profile.validate().unwrap();
    (profile, report)
}

#[test]
fn goroutines_of_equal_stacks_and_states_count_together() {
    let (profile, report) = read_detected(DUMP, Format::GoStacks);
    let prefix = "{} goroutine:goroutine:count:goroutine:count";
    let waits = "created_by=main.main locked_to_thread=true state=chan receive wait=5";
    let expected = [
        format!("{prefix} [created_by=main.main job=a b state=select (no cases)]  1"),
        format!("{prefix} [{waits}] main.(*Queue[...]).take 2"),
        format!("{prefix} [state=running] main.main;main.work 1"),
        format!("{prefix} [state=syscall]  1"),
    ];
    assert_eq!(folded_lines(&profile), expected);
    assert_eq!(report.count("frames_elided"), 1);
    assert_eq!(report.count("lines_not_understood"), 2);
    let symbols = &profile.symbols;
    let stack = profile.stacks.get(profile.series[0].samples[0].stack);
    let line = symbols.lines(stack[0])[0];
    assert_eq!(line.line, 17);
    let file = symbols.function(line.function).file;
    assert_eq!(symbols.strings.get(file), "/src/main.go");
}

#[test]
fn a_text_that_speaks_of_goroutines_is_no_dump() {
    for text in [
        "goroutine 1 [running]:\n",
        "goroutine 1 [running]:\nmain.main()\n",
        "goroutine 1 [running]:\nwhat\n\tmain.go:1\n",
        "goroutine profile: total x\n",
    ] {
        assert_eq!(detect(text.as_bytes()), None, "{text}");
    }
    let error = read(Format::GoStacks, &b"x"[..], &ReadOptions::default()).unwrap_err();
    assert!(
        error.to_string().contains("no line has the form"),
        "{error}"
    );
}

#[test]
fn jemallocs_sums_of_all_threads_are_scaled() {
    let (profile, report) = read_detected(JEMALLOC, Format::Jemalloc);
    assert_eq!(report.notes, []);
    let types: Vec<String> = profile
        .series
        .iter()
        .map(|series| series.profile_type.to_string())
        .collect();
    let expected = [
        "memory:inuse_objects:count:space:bytes",
        "memory:inuse_space:bytes:space:bytes",
    ];
    assert_eq!(types, expected);
    assert_eq!(profile.series[0].period, 4096);
    // 173014 / 269 = 643.2 bytes on average, seen with 1 - e^(-643.2/4096) = 0.14532.
    let samples = pprof_string::samples_of(&profile);
    let small = &samples["[\"0x401175 in 0x400000\", \"0x4012b4 in 0x400000\"] "];
    assert_eq!(small, &[1851, 1_190_594]);
    let large: Vec<&Vec<i64>> = samples.values().filter(|values| values[0] == 20).collect();
    assert_eq!(large, [&[20, 6_553_600]]);
}

#[test]
fn jemallocs_brackets_are_all_allocations_where_they_were_counted() {
    let text = "heap_v2/1\n  t*: 1: 10 [3: 30]\n@ 0x11\n  t*: 1: 10 [3: 30]\nnonsense\n";
    let (profile, report) = read_detected(text, Format::Jemalloc);
    let totals: Vec<i64> = profile.series.iter().map(|series| series.total()).collect();
    assert_eq!(totals, [3, 30, 1, 10]);
    assert_eq!(report.count("lines_not_understood"), 1);
    for text in ["heap_v2/0\n", "heap_v2/x\n", "heap_v2\n"] {
        assert_ne!(detect(text.as_bytes()), Some(Format::Jemalloc));
        assert!(read(Format::Jemalloc, text.as_bytes(), &ReadOptions::default()).is_err());
    }
    let broken = "heap_v2/4\n  t*: x\n@ 0x11\n  t*: -\n";
    let error = read(Format::Jemalloc, broken.as_bytes(), &ReadOptions::default()).unwrap_err();
    assert!(error.to_string().contains("at byte 10"), "{error}");
}

proptest! {
    #[test]
    fn any_change_is_survived(
        is_dump in any::<bool>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let (seed, format) = if is_dump {
            (DUMP, Format::GoStacks)
        } else {
            (JEMALLOC, Format::Jemalloc)
        };
        let mut bytes = seed.as_bytes().to_vec();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        bytes.truncate(cut.index(bytes.len() * 2).max(1));
        let _ = detect(&bytes);
        if let Ok((profile, _)) = read(format, &bytes[..], &ReadOptions::default()) {
            prop_assert!(profile.validate().is_ok());
        }
    }
}
