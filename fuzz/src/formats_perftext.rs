//! Texts that other profilers print.

use candela_formats::read_perf_script;
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
