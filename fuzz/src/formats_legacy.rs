//! What pprof, gperftools and Go wrote before protobuf, and write to this day.

use candela_formats::Format;
use candela_formats::read;

use crate::formats::check_valid;
use crate::formats::options;

/// What was read is valid.
pub(crate) fn gperftools_cpu(bytes: &[u8]) {
    if let Ok((profile, _)) = read(Format::GperftoolsCpu, bytes, &options()) {
        check_valid(&profile);
    }
}

pub(crate) fn gperftools_cpu_seeds() -> Vec<Vec<u8>> {
    let samples = |version: u64| {
        [
            0, 3, version, 1000, 0, 5, 2, 0x1010, 0x1021, 1, 1, 0x40, 0, 1, 0,
        ]
    };
    let little = samples(0).into_iter().flat_map(u64::to_le_bytes);
    let big = samples(1)
        .into_iter()
        .flat_map(|word| (word as u32).to_be_bytes());
    let with_text = |words: Vec<u8>, text: &str| [&words[..], text.as_bytes()].concat();
    vec![
        with_text(
            little.collect(),
            "1000-2000 r-xp 00000010 08:01 7  /bin/x\n",
        ),
        with_text(big.collect(), " 0x1010 a.B.c (B.java:17)\n 0x1021 GC\n"),
    ]
}

/// What was read is valid.
pub(crate) fn legacy_text(bytes: &[u8]) {
    if let Ok((profile, _)) = read(Format::LegacyText, bytes, &options()) {
        check_valid(&profile);
    }
}

pub(crate) fn legacy_text_seeds() -> Vec<Vec<u8>> {
    let texts = [
        "heap profile: 1: 512 [2: 900] @ heap/1024\n1: 512 [2: 900] @ 0x1011 0x1021\n\
         #\t0x1020\tmain.f+0x10\t/src/x.go:7\n\n# runtime.MemStats\nMAPPED_LIBRARIES:\n\
         a=/srv\n1000-2000: $a/program (@10) abc\n",
        "--- contentionz 1 ---\ncycles/second = 2000000000\nsampling period = 100\n\
         ms since reset = 5\n  512  3 @ 0x1011 0x1021\n--- Memory map: ---\n  1000-2000: /bin/x\n",
        "--- mutex:\ncycles/second=2000000000\nsampling period=5\n512 5 @ 0x1011\n\
         #\t0x1010\tmain.f+0x10\t/src/x.go:7\n",
        "--- heapz 1 ---\nformat = java\nresolution = bytes\n 512 1 @ 0x1 0x2\n\n\
         0x1 a.B.c (B.java:7)\n0x2 GC\n",
        "--- threadz 1 ---\n\n--- Thread 7f (name: main/17) stack: ---\n  PC:  0x1010: f(int)\n  \
         0x1021: main\n--- Thread 80 (name: b/18) stack: ---\n  [same as previous thread]\n\
         --- Memory map: ---\n",
        "goroutine profile: total 2\n2 @ 0x1011 0x1021\n# labels: {\"a\":\"b\\n\\u00fc\"}\n\
         #\t0x1010\tmain.f+0x10\t/src/x.go:7\n",
    ];
    texts.map(|text| text.as_bytes().to_vec()).to_vec()
}

/// What was read is valid.
pub(crate) fn jemalloc(bytes: &[u8]) {
    if let Ok((profile, _)) = read(Format::Jemalloc, bytes, &options()) {
        check_valid(&profile);
    }
}

pub(crate) fn jemalloc_seeds() -> Vec<Vec<u8>> {
    let text = "heap_v2/4096\n  t*: 3: 900 [4: 1000]\n  t0: 3: 900 [4: 1000] main\n@ 0x1011 0x1021\n\
                \x20 t*: 3: 900 [4: 1000]\n  t0: 3: 900 [4: 1000]\n\nMAPPED_LIBRARIES:\n\
                1000-2000 r-xp 00000010 08:01 7  /bin/x (deleted)\n";
    vec![text.as_bytes().to_vec()]
}

/// What was read is valid.
pub(crate) fn goroutines(bytes: &[u8]) {
    if let Ok((profile, _)) = read(Format::GoStacks, bytes, &options()) {
        check_valid(&profile);
    }
}

pub(crate) fn goroutines_seeds() -> Vec<Vec<u8>> {
    let text = "panic: no\n\ngoroutine 1 [running]:\nmain.work({0x1, 0x2}, 0xc0)\n\t/src/main.go:17 +0x1d4\n\
                main.main()\n\t/src/main.go:9 +0x25\n\n\
                goroutine 7 [chan receive, 5 minutes, locked to thread labels:{\"a\": \"b\\n\"}]:\n\
                main.(*T[...]).take(...)\n\t/src/main.go:5\n...additional frames elided...\n\
                created by main.main in goroutine 1\n\t/src/main.go:8 +0x1a\n";
    vec![text.as_bytes().to_vec()]
}
