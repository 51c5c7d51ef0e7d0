//! Texts that other profilers print.

use candela_formats::read_ghc_prof;
use candela_formats::read_instruments;
use candela_formats::read_perf_script;
use candela_formats::read_pmcstat;
use candela_formats::write_perf_script;

use crate::formats::check_valid;
use crate::formats::may_overflow;
use crate::formats::options;
use crate::formats::total;

/// What was read is valid; written and read again it has the same sum.
pub(crate) fn perf_script(bytes: &[u8]) {
    let Ok((profile, _)) = read_perf_script(bytes, &options()) else {
        return;
    };
    check_valid(&profile);
    if may_overflow(&profile) || total(&profile) == 0 {
        return;
    }
    let mut written = Vec::new();
    write_perf_script(&profile, &mut written).expect("memory takes it");
    let (again, _) = read_perf_script(&written[..], &options()).expect("what we write can be read");
    check_valid(&again);
    assert_eq!(total(&again), total(&profile));
}

pub(crate) fn perf_script_seeds() -> Vec<Vec<u8>> {
    let texts = [
        "# captured on: Thu Aug 17 14:14:43 2017\n# hostname : h\n\
         my thr/1 x 12/69 [001] 2311.039543: 5000000 cpu-clock:u: \n\
         \t 11aa inl+0x11\n  t.c:4 (inlined)\n\t 11aa work+0x11 (/tmp/t prog)\n  t.c:5\n\
         \tffffffff82200691 schedule+0xc1 ([kernel.kallsyms])\n\n",
        "t 9 1.5: cycles: \n 7f LA;::f->LB;::g (/tmp/perf-1.map)\n\n\
         t 9 1.6: sched:sched_switch: prev_comm=a ==> next_comm=b\n",
        "    false 39 19.7:  1 cycles:u:  ffffffff9b201293 [unknown] ([unknown])\n\
         # candela event a:b = memory:alloc_space:bytes:space:bytes\nx 1 1732190400.5: 7 a:b: \n",
    ];
    texts.map(|text| text.as_bytes().to_vec()).to_vec()
}

/// What was read is valid. The first byte says who reads it.
pub(crate) fn printed_tree(bytes: &[u8]) {
    let Some((&reader, text)) = bytes.split_first() else {
        return;
    };
    let options = options();
    let read = match reader % 3 {
        0 => read_pmcstat(text, &options),
        1 => read_instruments(text, &options),
        _ => read_ghc_prof(text, &options),
    };
    if let Ok((profile, _)) = read {
        check_valid(&profile);
    }
}

pub(crate) fn printed_tree_seeds() -> Vec<Vec<u8>> {
    let texts = [
        "\0@ cycles [10 samples]\n\n60.00%  [6]        a @ /boot/kernel\n 100.0%  [6]        main\n",
        "\x01Weight\tSelf (ms)\t\tSymbol Name\n1.50 min  100.0%\t0\t \tprog (1)\n\
         90.00 s  100.0%\t10.25 s\t \t main\n",
        "\x02\tTue Sep  4 10:00 2018 Time and Allocation Profiling Report\n\
         total time  = 0.02 secs (20 ticks @ 1000 us, 1 processor)\ntotal alloc = 1,000 bytes\n\
         COST CENTRE  MODULE  SRC       no.  entries  %time %alloc   %time %alloc ticks bytes\n\
         MAIN         MAIN    <none>    1          0    0.0    0.0   100.0  100.0     0     7\n\
          my label    Main    a.hs:1:2  2          1   50.0   40.0    50.0   40.0    20   993\n",
    ];
    texts.map(|text| text.as_bytes().to_vec()).to_vec()
}
