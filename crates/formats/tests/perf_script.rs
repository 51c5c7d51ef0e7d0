//! The text of `perf script`: what perf writes, what breaks, and the way back.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::io::Read;

use crate::common;
use crate::common::assert_same_content;
use crate::common::perf_text::read;
use crate::common::perf_text::types;
use crate::common::perf_text::written;
use crate::common::stack_lines;
use candela_formats::Format;
use candela_formats::Limits;
use candela_formats::ReadOptions;
use candela_formats::detect;
use candela_formats::read_perf_script;
use candela_formats::write_perf_script;
use candela_model::FrameKind;
use candela_model::LabelValue;
use candela_model::Labels;
use candela_model::Location;
use candela_model::Mapping;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::ProfileType;
use candela_model::Sample;
use candela_model::SampleLabel;
use proptest::prelude::*;

#[test]
fn what_perf_writes_of_inlined_frames_and_sources_is_one_location() {
    let text = "\
my thr/1 x 12/21969 [001]  2311.039543:    5000000 cpu-clock: 
	            11aa inl+0x11
  t.c:4 (inlined)
	            11aa work+0x11 (/tmp/t prog)
  t.c:5 (discriminator 2)
	           27304 __libc_start_main_impl+0x84 (inlined)
	            10d0 _start+0x20 (/tmp/t prog)
  ??:0
	ffffffff82200691 schedule_timeout+0xc1 ([kernel.kallsyms])

";
    let (profile, report) = read(text.as_bytes());
    assert_eq!(report.notes, []);
    let sample = profile.series[0].samples[0];
    let described = common::describe(&profile, &sample);
    let expected = "[\"0x11aa//tmp/t prog//0-0+0/\
        [\\\"inl||t.c|0@4:0\\\", \\\"work||t.c|0@5:0\\\"]\", \
        \"0x27304///0-0+0/[\\\"__libc_start_main_impl|||0@0:0\\\"]\", \
        \"0x10d0//tmp/t prog//0-0+0/[\\\"_start|||0@0:0\\\"]\", \
        \"0xffffffff82200691/[kernel.kallsyms]//0-0+0/\
        [\\\"schedule_timeout|||0@0:0\\\"]\"] \
        [\"cpu=1 \", \"pid=12 \", \"thread_id=21969 \", \"thread_name=\\\"my thr/1 x\\\"\"]";
    assert!(described.starts_with(expected), "{described}");
    assert!(described.ends_with("2311039543000"), "{described}");
    let series = &profile.series[0];
    assert_eq!((series.period, series.total()), (5_000_000, 5_000_000));
    let kinds: Vec<FrameKind> = profile
        .stacks
        .get(sample.stack)
        .iter()
        .map(|location| profile.symbols.location(*location).kind)
        .collect();
    use FrameKind::{Kernel, Native, Unknown};
    assert_eq!(kinds, [Native, Unknown, Native, Kernel]);
}

#[test]
fn events_that_count_the_same_are_series_apart() {
    let mut text = String::new();
    for (event, period) in [
        ("cycles:u", 3),
        ("cycles", 5),
        ("task-clock", 7),
        ("cpu-clock", 7),
        ("cycles:k", 9),
    ] {
        text += &format!("x 1 1.5: {period} {event}: \n\t 1 f (/x)\n\n");
    }
    let (profile, _) = read(text.as_bytes());
    assert_eq!(
        types(&profile),
        [
            "cycles_u:cycles_u:count:cycles_u:count",
            "cycles:cycles:count:cycles:count",
            "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
            "cpu-clock:cpu-clock:nanoseconds:cpu-clock:nanoseconds",
            "cycles_k:cycles_k:count:cycles_k:count",
        ]
    );
    let (again, _) = read(&written(&profile));
    assert_eq!(types(&again), types(&profile));
}

#[test]
fn times_are_moved_to_the_time_of_reading() {
    let text = "x 1 100.5: 1 cycles: \n\ny 2 101.0: 1 cycles: \n";
    let options = ReadOptions {
        now_ns: 1_732_190_400_000_000_000,
        default_service: "svc".to_owned(),
        ..ReadOptions::default()
    };
    let (profile, _) = read_perf_script(text.as_bytes(), &options).unwrap();
    let series = &profile.series[0];
    assert_eq!(series.start_ns, options.now_ns);
    assert_eq!(series.duration_ns, 500_000_000);
    assert_eq!(series.samples[1].time_ns, options.now_ns + 500_000_000);
    assert_eq!(series.labels.get("service_name"), Some("svc"));
    // What is read again stays where it is.
    let (again, _) = read(&written(&profile));
    assert_eq!(again.series[0].start_ns, series.start_ns);
    assert_eq!(again.series[0].samples, series.samples);
}

#[test]
fn what_is_broken_is_left_out_and_told() {
    let text = "\
\t 1 orphan (/x)
noise
x 1 1.0: PERF_RECORD_MMAP2 1/1: [0x55(0x1000) @ 0 fe:00 9 0]: r-xp /x
x 1 1.0: PERF_RECORD_EXIT(1:1):(1:1)
x 1 1.0: 18446744073709551615 cycles: \n\t 1 f (/x)\n\tnothing known
";
    let (profile, report) = read(text.as_bytes());
    let codes = [
        "frames_without_sample",
        "records_left_out",
        "values_cut",
        "lines_not_understood",
    ];
    assert_eq!(codes.map(|code| report.count(code)), [1, 2, 1, 2]);
    assert_eq!(profile.series[0].total(), i64::MAX);
    let error = read_perf_script(&b"# x\nnoise\nmore\n"[..], &ReadOptions::default());
    let message = error.unwrap_err().to_string();
    assert!(message.contains("line 2 is another"), "{message}");
    let folded = read_perf_script(&b"main;work 3\nmain;rest 1\n"[..], &ReadOptions::default());
    let message = folded.unwrap_err().to_string();
    assert!(message.contains("line 1 is another"), "{message}");
    assert!(read_perf_script(&b""[..], &ReadOptions::default()).is_err());
}

/// Known or not: what stands below a record that is no sample is of none.
#[test]
fn frames_below_other_records_are_told_each_time() {
    let stack = "\t1 f (/x)\n\n";
    let text =
        format!("PERF_RECORD_FOO:\n{stack}x 1 1.0: 1 cycles:\n{stack}PERF_RECORD_FOO:\n{stack}");
    let (profile, report) = read(text.as_bytes());
    assert_eq!(profile.series[0].total(), 1);
    assert_eq!(report.count("frames_without_sample"), 2);
}

#[test]
fn other_texts_are_not_taken_for_it() {
    for text in [
        "main;work 3\nmain;rest 1\n",
        "  <idle>-0  [001] d..2. 6.5: sched_switch: prev_comm=a\n  b-1 [001] d..2. 6.6: x: y\n",
        "2024-01-01 12:00:00 INFO 7 started: yes\n",
        "[ 12.345678] usb 1-1: new device\n",
        "name,file,self\nmain,x,1\n",
        // Valgrind's massif, and go tool pprof -raw.
        "n3: 1616 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n \
         n1: 1024 0x48F78CB: _IO_file_doallocate (filedoalloc.c:101)\n  \
         n1: 1024 0x490509F: _IO_doallocbuf (genops.c:347)\n",
        "samples/count cpu/nanoseconds\n         19  190000000: 1 2 3 \n          5   50000000: 4 5 \n",
    ] {
        assert_ne!(detect(text.as_bytes()), Some(Format::PerfScript), "{text}");
    }
    let after_a_warning = "Warning: something\nx 1 1.5: 1 cycles: \n\t 1 f (/x)\n";
    assert_eq!(detect(after_a_warning.as_bytes()), Some(Format::PerfScript));
}

#[test]
fn frames_need_no_indentation_if_all_parts_are_there() {
    let text = "\
java 19983 cycles:
ffffffff8103d0ca native_write_msr_safe ([kernel.kallsyms])
7f7241fbe6d8 arrayOopDesc::base(BasicType) const (/jre/libjvm.so)
feed me
7f72432b4e9a start_thread (/lib/libpthread-2.15.so)

7f72432b4e9a of_no_sample (/lib/libpthread-2.15.so)
";
    assert_eq!(detect(text.as_bytes()), Some(Format::PerfScript));
    let (profile, report) = read(text.as_bytes());
    assert_eq!(
        stack_lines(&profile),
        ["[thread_id=19983 thread_name=java] start_thread;\
             arrayOopDesc::base(BasicType) const;native_write_msr_safe 1"]
    );
    assert_eq!(report.count("lines_not_understood"), 2);
}

#[test]
fn little_is_a_header_where_frames_follow() {
    let frames = "\tffffffff96613abf [unknown]\n\t7f5a47896360 work\n\n";
    let headers = [
        ("perf 10447 \n", "[thread_id=10447 thread_name=perf]"),
        ("cycles: \n", "[]"),
        ("perf 346832.330193: \n", "[thread_name=perf]"),
    ];
    for (header, labels) in headers {
        let text = format!("{header}{frames}{header}{frames}");
        assert_eq!(detect(text.as_bytes()), None, "{header}");
        let (profile, report) = read(text.as_bytes());
        assert_eq!(report.notes, []);
        let lines = stack_lines(&profile);
        let expected = format!("{labels} work;0xffffffff96613abf 1");
        assert_eq!(lines.len(), 2, "{header}");
        for line in lines {
            assert!(line.starts_with(&expected), "{line}");
        }
    }
    let without = "perf 1 \nsome: \n\nx 1 1.0: 1 cycles: \nwhat 12\n\t 1 f (/x)\n\nend 7\n";
    let (profile, report) = read(without.as_bytes());
    assert_eq!(types(&profile).len(), 1);
    assert_eq!(profile.series[0].total(), 1);
    assert_eq!(report.count("lines_not_understood"), 4);
    assert!(read_perf_script(&b"perf 1\n"[..], &ReadOptions::default()).is_err());
}

#[test]
fn branches_on_the_line_of_a_sample_leave_its_frame() {
    let text = "\
            perf  5805 12631.245939:          1 cycles:ppp:  ffffffffb42071f2 [unknown] ([kernel.kallsyms]) \
0xffffffffb4208e16([kernel.kallsyms])/0xffffffffb42071e3([kernel.kallsyms])/P/-/-/4/  0x0([unknown])/0x0([unknown])/P/-/-/0/
            perf  5805 12631.245946:          1 cycles:ppp:  ffffffffb42071f2 [unknown] ([kernel.kallsyms])\
[unknown]([kernel.kallsyms])/[unknown]([kernel.kallsyms])/P/-/-/4/
";
    let (profile, report) = read(text.as_bytes());
    assert_eq!(report.count("event_fields_left_out"), 2);
    let samples = &profile.series[0].samples;
    assert_eq!(samples.len(), 2);
    assert_eq!(samples[0].stack, samples[1].stack);
    let lines = stack_lines(&profile);
    assert!(lines[0].contains("+0xffffffffb42071f2 1"), "{lines:?}");
}

#[test]
fn negative_values_are_refused() {
    let mut profile = Profile::default();
    let mut series = ProfileSeries::new(Labels::default(), "a:b:c::".parse().unwrap());
    series.samples.push(Sample::new(Default::default(), -1));
    assert!(
        write_perf_script(&profile, Vec::new()).is_err(),
        "no series"
    );
    profile.series.push(series);
    let error = write_perf_script(&profile, Vec::new()).unwrap_err();
    assert!(error.to_string().contains("a:b"), "{error}");
}

/// Blocks without end, each with some numbers that differ.
struct Blocks {
    number: u64,
    left: usize,
    ready: Vec<u8>,
}

impl Read for Blocks {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.ready.is_empty() && self.left > 0 {
            self.number += 1;
            self.left -= 1;
            let number = self.number;
            let (seconds, thread) = (1_700_000_000 + number, number % 3);
            let mut block = format!("worker/{thread} 7/{thread} {seconds}.25: 10 cpu-clock: \n");
            for depth in 0..20 {
                let address = 0x40_0000 + depth * (number % 50);
                block += &format!("\t {address:x} function_of_program_{depth}+0x1 (/usr/bin/p)\n");
            }
            self.ready = block.into_bytes();
            self.ready.push(b'\n');
        }
        let count = self.ready.len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.ready[..count]);
        self.ready.drain(..count);
        Ok(count)
    }
}

#[test]
fn memory_is_bounded_by_the_profile_and_not_by_the_text() {
    let blocks = |left| {
        let ready = Vec::new();
        let number = 0;
        BufReader::with_capacity(
            1 << 16,
            Blocks {
                number,
                left,
                ready,
            },
        )
    };
    let limits = Limits {
        // The text has 17 MB.
        max_inflated_bytes: 1 << 20,
        ..Limits::default()
    };
    let options = ReadOptions {
        limits,
        ..ReadOptions::default()
    };
    let (profile, report) = read_perf_script(blocks(15_000), &options).unwrap();
    assert_eq!(report.notes, []);
    assert_eq!(profile.series[0].samples.len(), 15_000);
    assert_eq!(profile.series[0].total(), 150_000);
    // More samples than may be: what is equal is added up.
    let options = ReadOptions {
        limits: Limits {
            max_samples: 1000,
            ..limits
        },
        ..ReadOptions::default()
    };
    let (profile, report) = read_perf_script(blocks(15_000), &options).unwrap();
    assert_eq!(report.count("times_left_out"), 1);
    assert_eq!(profile.series[0].total(), 150_000);
    assert_eq!(profile.series[0].samples.len(), 150);
    let options = ReadOptions {
        limits: Limits {
            max_samples: 100,
            ..limits
        },
        ..ReadOptions::default()
    };
    let error = read_perf_script(blocks(15_000), &options).unwrap_err();
    assert!(error.to_string().contains("number of samples"), "{error}");
    let options = ReadOptions {
        limits: Limits {
            max_inflated_bytes: 1 << 16,
            ..limits
        },
        ..ReadOptions::default()
    };
    let error = read_perf_script(blocks(15_000), &options).unwrap_err();
    assert!(error.to_string().contains("size of the profile"), "{error}");
}

#[test]
fn deep_stacks_are_cut_at_the_leaf() {
    let mut text = "x 1 1.0: 1 cycles: \n".to_owned();
    for depth in 0..20_000 {
        text += &format!("\t 1 f{depth} (/x)\n");
    }
    let options = ReadOptions {
        limits: Limits {
            max_stack_depth: 3,
            ..Limits::default()
        },
        ..ReadOptions::default()
    };
    let (profile, report) = read_perf_script(text.as_bytes(), &options).unwrap();
    assert_eq!(report.count("stacks_cut"), 1);
    let lines = common::folded_lines(&profile);
    assert!(lines[0].ends_with(" f19999;f19998;f19997 1"), "{lines:?}");
}

/// Name, address, file, and how many functions are inlined into it.
type GivenFrame = (String, u64, usize, usize);
/// Type, stack, thread name, pid, thread, CPU, value and time.
type GivenSample = (
    usize,
    Vec<GivenFrame>,
    String,
    i64,
    i64,
    Option<i64>,
    i64,
    i64,
);

fn given_sample() -> impl Strategy<Value = GivenSample> {
    let frame = (
        "[a-zA-Z_<>:(), ]{0,6}[a-z0-9)>]",
        any::<u64>(),
        0_usize..5,
        0_usize..3,
    );
    let stack = prop::collection::vec(frame, 0..6);
    let comm = "[a-zA-Z_/][a-zA-Z0-9_/:() -]{0,12}[a-zA-Z_]";
    let cpu = prop::option::of(0_i64..300);
    let time = 1_000_000_000_000_000_000..i64::MAX;
    (
        0_usize..3,
        stack,
        comm,
        1_i64..9,
        1_i64..9,
        cpu,
        1_i64..1 << 40,
        time,
    )
}

fn given_profile(samples: &[GivenSample]) -> Profile {
    const TYPES: [&str; 3] = [
        "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
        "cycles:cycles:count:cycles:count",
        "memory:alloc_space:bytes:space:bytes",
    ];
    const FILES: [&str; 5] = [
        "",
        "/usr/bin/a b",
        "[kernel.kallsyms]",
        "/lib/x (deleted)",
        "/tmp/perf-1.map",
    ];
    let mut profile = Profile::default();
    let mut series: BTreeMap<usize, ProfileSeries> = BTreeMap::new();
    let mut order = Vec::new();
    for (column, stack, comm, pid, tid, cpu, value, time_ns) in samples {
        let symbols = &mut profile.symbols;
        let mut locations = Vec::new();
        for (name, address, file, inlined) in stack {
            let path = symbols.strings.intern(FILES[*file]);
            let mapping = symbols.intern_mapping(Mapping {
                file: path,
                ..Mapping::default()
            });
            let kind = match file {
                2 => FrameKind::Kernel,
                1 | 3 => FrameKind::Native,
                _ => FrameKind::Unknown,
            };
            let names = (0..=*inlined).map(|depth| format!("{}{depth}", name.trim()));
            let lines: Vec<_> = names
                .map(|name| (symbols.intern_function(&name, "", "", 0), 0, 0))
                .collect();
            let place = Location::new(kind, *address).in_mapping(mapping);
            locations.push(symbols.intern_location(&place, &lines));
        }
        let strings = &mut symbols.strings;
        let name = SampleLabel::text(strings.intern("thread_name"), strings.intern(comm));
        let mut labels = vec![name];
        let numbers = [
            ("pid", Some(*pid)),
            ("thread_id", Some(*tid)),
            ("cpu", *cpu),
        ];
        for (key, value) in numbers {
            let unit = strings.intern("");
            let key = strings.intern(key);
            labels.extend(value.map(|value| SampleLabel {
                key,
                value: LabelValue::Number { value, unit },
            }));
        }
        if !series.contains_key(column) {
            order.push(*column);
        }
        let profile_type: ProfileType = TYPES[*column].parse().unwrap();
        let series = series
            .entry(*column)
            .or_insert_with(|| ProfileSeries::new(Labels::default(), profile_type));
        series.samples.push(Sample {
            stack: profile.stacks.intern(&locations),
            value: *value,
            label_set: profile.label_sets.intern(labels),
            time_ns: *time_ns,
            ..Sample::default()
        });
    }
    profile.series = order
        .iter()
        .filter_map(|column| series.remove(column))
        .collect();
    profile
}

proptest! {
    #[test]
    fn what_is_written_reads_back(samples in prop::collection::vec(given_sample(), 1..12)) {
        let profile = given_profile(&samples);
        let text = written(&profile);
        let (mut again, report) = read(&text);
        prop_assert_eq!(report.notes, []);
        // The window and the period are those of the samples.
        for series in &mut again.series {
            series.start_ns = 0;
            series.duration_ns = 0;
            series.period = 0;
        }
        assert_same_content(&again, &profile, &String::from_utf8_lossy(&text));
    }

    #[test]
    fn names_with_numbers_and_colons_read_back(comm in "[a-z/] [0-9/]{1,2} [a-z-]{0,1}: [a-z]") {
        let profile = given_profile(&[(0, vec![], comm, 1, 1, None, 1, 1_000_000_000_000_000_000)]);
        let text = written(&profile);
        let (again, _) = read(&text);
        prop_assert_eq!(written(&again), text);
        let name = |profile: &Profile| {
            let sample = profile.series[0].samples[0];
            common::describe(profile, &sample)
        };
        prop_assert_eq!(name(&again), name(&profile));
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = read_perf_script(&bytes[..], &ReadOptions::default());
        let _ = detect(&bytes);
    }

    #[test]
    fn any_lines_are_survived(text in "(x 1 1\\.[0-9]: 1 [a-z:/]{0,5}: ?\n|[ \t]{0,2}[0-9a-f]{0,3} [(]?[a-z+]{0,2}[)]?\n|[ \t:/.()\\[\\]0-9a-z\n]{0,8}){0,12}") {
        if let Ok((profile, _)) = read_perf_script(text.as_bytes(), &ReadOptions::default()) {
            prop_assert_eq!(profile.validate(), Ok(()));
            let (again, _) = read(&written(&profile));
            let total = |profile: &Profile| -> i64 {
                profile.series.iter().map(ProfileSeries::total).sum()
            };
            prop_assert_eq!(total(&again), total(&profile));
        }
        let _ = detect(text.as_bytes());
    }
}
