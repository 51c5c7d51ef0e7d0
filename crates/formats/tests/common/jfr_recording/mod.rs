//! Small recordings made by hand: as the virtual machine writes them, with what it rarely writes.
//!
//! They are what the tests of `candela-formats` look into, and what fuzzing starts from.
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::allow_attributes,
    reason = "shared by test programs that each use a part"
)]

pub mod datadog;
mod writer;

use self::writer::Writer;

// Types, by the ids that the metadata gives them.
const BOOLEAN: u64 = 1;
const INT: u64 = 2;
const LONG: u64 = 3;
const FLOAT: u64 = 4;
const SHORT: u64 = 5;
const STRING: u64 = 20;
const CLASS: u64 = 21;
const THREAD: u64 = 22;
const FRAME_TYPE: u64 = 24;
const THREAD_STATE: u64 = 25;
const STACK_TRACE: u64 = 26;
const STACK_FRAME: u64 = 27;
const METHOD: u64 = 28;
const SYMBOL: u64 = 31;
const GC_NAME: u64 = 32;
const GC_CAUSE: u64 = 33;
const INNER: u64 = 34;
const TIMESPAN: u64 = 40;
const EXECUTION: u64 = 101;
const MONITOR: u64 = 104;
const LOAD: u64 = 106;
const SETTING: u64 = 108;
const COLLECTION: u64 = 110;
const WALL: u64 = 118;
const ALLOCATION: u64 = 120;
const CPU_TIME: u64 = 130;
const OLD_OBJECT: u64 = 131;

const METADATA: u64 = 0;
const CHECKPOINT: u64 = 1;

const HEADER_BYTES: usize = 68;
pub const START_NS: i64 = 1_700_000_000_000_000_000;
const START_TICKS: i64 = 1_000;
/// Half a nanosecond each.
const TICKS_PER_SECOND: i64 = 2_000_000_000;

/// What tells recordings apart.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub is_compressed: bool,
    /// async-profiler's `event`.
    pub event: &'static str,
    /// Whether the checkpoint with stacks, threads and states is there.
    pub has_stacks: bool,
    /// Whether the header says where things are, as that of a finished chunk does.
    pub is_finished: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            is_compressed: true,
            event: "cpu",
            has_stacks: true,
            is_finished: true,
        }
    }
}

#[derive(Clone, Copy)]
struct Field(&'static str, u64, &'static str);

const CONSTANT: &str = "constant";
const ARRAY: &str = "array";
const TICKS: &str = "ticks";
const MILLISECONDS: &str = "milliseconds";

fn types() -> Vec<(u64, &'static str, Vec<Field>)> {
    let start = Field("startTime", LONG, "");
    let stack = Field("stackTrace", STACK_TRACE, CONSTANT);
    let thread = Field("eventThread", THREAD, CONSTANT);
    vec![
        (BOOLEAN, "boolean", vec![]),
        (INT, "int", vec![]),
        (LONG, "long", vec![]),
        (FLOAT, "float", vec![]),
        (SHORT, "short", vec![]),
        (STRING, "java.lang.String", vec![]),
        (
            CLASS,
            "java.lang.Class",
            vec![Field("name", SYMBOL, CONSTANT)],
        ),
        (
            THREAD,
            "java.lang.Thread",
            vec![
                Field("osName", STRING, ""),
                Field("osThreadId", LONG, ""),
                Field("javaName", STRING, ""),
            ],
        ),
        (
            FRAME_TYPE,
            "jdk.types.FrameType",
            vec![Field("description", STRING, "")],
        ),
        (
            THREAD_STATE,
            "jdk.types.ThreadState",
            vec![Field("name", STRING, "")],
        ),
        (
            STACK_TRACE,
            "jdk.types.StackTrace",
            vec![
                Field("truncated", BOOLEAN, ""),
                Field("frames", STACK_FRAME, ARRAY),
            ],
        ),
        (
            STACK_FRAME,
            "jdk.types.StackFrame",
            vec![
                Field("method", METHOD, CONSTANT),
                Field("lineNumber", INT, ""),
                Field("bytecodeIndex", INT, ""),
                Field("type", FRAME_TYPE, CONSTANT),
            ],
        ),
        (
            METHOD,
            "jdk.types.Method",
            vec![
                Field("type", CLASS, CONSTANT),
                Field("name", SYMBOL, CONSTANT),
                Field("hidden", BOOLEAN, ""),
            ],
        ),
        (
            SYMBOL,
            "jdk.types.Symbol",
            vec![Field("string", STRING, "")],
        ),
        (GC_NAME, "jdk.types.GCName", vec![Field("name", STRING, "")]),
        (
            GC_CAUSE,
            "jdk.types.GCCause",
            vec![Field("cause", STRING, "")],
        ),
        (
            INNER,
            "test.Inner",
            vec![Field("a", SHORT, ""), Field("b", STRING, ARRAY)],
        ),
        (TIMESPAN, "jdk.jfr.Timespan", vec![]),
        (
            EXECUTION,
            "jdk.ExecutionSample",
            vec![
                start,
                Field("sampledThread", THREAD, CONSTANT),
                stack,
                Field("state", THREAD_STATE, CONSTANT),
                Field("spanId", LONG, ""),
                Field("spanName", LONG, ""),
                Field("contextId", LONG, ""),
            ],
        ),
        (
            MONITOR,
            "jdk.JavaMonitorEnter",
            // A struct and an array in front of what matters are stepped over.
            vec![
                start,
                Field("inner", INNER, ""),
                Field("loads", FLOAT, ARRAY),
                Field("duration", LONG, TICKS),
                thread,
                stack,
            ],
        ),
        (
            LOAD,
            "jdk.CPULoad",
            vec![start, Field("jvmUser", FLOAT, "")],
        ),
        (
            SETTING,
            "jdk.ActiveSetting",
            vec![
                start,
                Field("id", LONG, ""),
                Field("name", STRING, ""),
                Field("value", STRING, ""),
            ],
        ),
        (
            COLLECTION,
            "jdk.GarbageCollection",
            vec![
                start,
                Field("duration", LONG, MILLISECONDS),
                Field("gcId", INT, ""),
                Field("name", GC_NAME, CONSTANT),
                Field("cause", GC_CAUSE, CONSTANT),
            ],
        ),
        (
            WALL,
            "profiler.WallClockSample",
            vec![
                start,
                Field("sampledThread", THREAD, CONSTANT),
                stack,
                Field("state", THREAD_STATE, CONSTANT),
                Field("samples", INT, ""),
            ],
        ),
        (
            ALLOCATION,
            "jdk.ObjectAllocationSample",
            vec![start, thread, stack, Field("weight", LONG, "")],
        ),
        (
            CPU_TIME,
            "jdk.CPUTimeSample",
            vec![
                start,
                stack,
                thread,
                Field("failed", BOOLEAN, ""),
                Field("samplingPeriod", LONG, TICKS),
                Field("biased", BOOLEAN, ""),
            ],
        ),
        (
            OLD_OBJECT,
            "jdk.OldObjectSample",
            vec![
                start,
                thread,
                stack,
                Field("objectAge", LONG, TICKS),
                Field("lastKnownHeapUsage", LONG, ""),
            ],
        ),
    ]
}

/// A recording of one chunk.
pub fn recording(shape: Shape) -> Vec<u8> {
    let mut writer = Writer {
        bytes: vec![0; HEADER_BYTES],
        is_compressed: shape.is_compressed,
    };
    writer.settings(shape.event);
    let symbols = writer.symbols();
    writer.samples();
    let metadata = writer.metadata();
    let mut last = symbols;
    if shape.has_stacks {
        last = writer.stacks(symbols);
    }
    with_header(writer.bytes, shape, last, metadata)
}

/// A recording of events that virtual machines write which are newer, or run longer, than those at
/// hand: the sampler of CPU time of JDK 25, and objects that stay.
pub fn recording_of_rare_events() -> Vec<u8> {
    let mut writer = Writer {
        bytes: vec![0; HEADER_BYTES],
        is_compressed: true,
    };
    let symbols = writer.symbols();
    // Stack, thread, whether it failed, and how far the samples are apart, in ticks.
    for (stack, thread, failed, period) in [
        (1, 1, 0, 20_000_000),
        (1, 1, 0, 40_000_000),
        (0, 2, 1, 20_000_000),
    ] {
        writer.event(CPU_TIME, |writer| {
            writer.long(START_TICKS + 10);
            writer.long(stack);
            writer.long(thread);
            writer.bytes.push(failed);
            writer.long(period);
            writer.bytes.push(0);
        });
    }
    for stack in [1, 1, 2] {
        writer.event(OLD_OBJECT, |writer| {
            for number in [START_TICKS + 20, 1, stack, 9_000, 1 << 20] {
                writer.long(number);
            }
        });
    }
    let metadata = writer.metadata();
    let last = writer.stacks(symbols);
    with_header(writer.bytes, Shape::default(), last, metadata)
}

/// A recording of nothing but settings, whose names are one constant of `text_bytes`.
pub fn recording_of_settings(count: usize, text_bytes: usize) -> Vec<u8> {
    let mut writer = Writer {
        bytes: vec![0; HEADER_BYTES],
        is_compressed: true,
    };
    for _ in 0..count {
        writer.event(SETTING, |writer| {
            writer.long(START_TICKS);
            writer.long(0);
            writer.constant(1);
            writer.null();
        });
    }
    let texts = writer.event(CHECKPOINT, |writer| {
        writer.checkpoint_head(0, 1);
        writer.pool(STRING, 1);
        writer.long(1);
        writer.utf8(&"x".repeat(text_bytes));
    });
    let metadata = writer.metadata();
    with_header(writer.bytes, Shape::default(), texts, metadata)
}

fn with_header(mut bytes: Vec<u8>, shape: Shape, last: usize, metadata: usize) -> Vec<u8> {
    let size = bytes.len() as i64;
    let mut header = Vec::new();
    header.extend(b"FLR\0");
    header.extend([0, 2, 0, 1]);
    let offsets = [size, last as i64, metadata as i64];
    for offset in offsets {
        let offset = if shape.is_finished { offset } else { 0 };
        header.extend(offset.to_be_bytes());
    }
    let duration = if shape.is_finished { 60_000_000_000 } else { 0 };
    for number in [START_NS, duration, START_TICKS, TICKS_PER_SECOND] {
        header.extend(i64::to_be_bytes(number));
    }
    header.extend(u32::from(shape.is_compressed).to_be_bytes());
    bytes[..HEADER_BYTES].copy_from_slice(&header);
    bytes
}

impl Writer {
    fn settings(&mut self, event: &str) {
        for (id, name, value) in [
            (0, "event", event),
            (EXECUTION, "interval", "5 ms"),
            (MONITOR, "period", "1 s"),
        ] {
            self.event(SETTING, |writer| {
                writer.long(START_TICKS);
                writer.long(id as i64);
                writer.utf8(name);
                writer.latin1(value);
            });
        }
    }

    /// Threads 1 and 2; stacks 1 (`Thread.run` > `App.main` > `App.work`), 2 (a kernel frame on
    /// top), and 3, which nobody has.
    fn samples(&mut self) {
        const RUNNABLE: i64 = 1;
        const SLEEPING: i64 = 2;
        let samples = [
            (10, 1, 1, RUNNABLE, 0, 0, 0),
            (20, 1, 1, RUNNABLE, 0, 0, 0),
            (30, 2, 2, RUNNABLE, 0xef, 5, 7),
            (40, 2, 1, SLEEPING, 0, 0, 0),
            (50, 1, 3, RUNNABLE, 0, 0, 0),
            (60, 1, 0, RUNNABLE, 0, 0, 0),
        ];
        for (ticks, thread, stack, state, span, span_name, context) in samples {
            self.event(EXECUTION, |writer| {
                writer.long(START_TICKS + ticks);
                for number in [thread, stack, state, span, span_name, context] {
                    writer.long(number);
                }
            });
        }
        self.event(MONITOR, |writer| {
            writer.long(START_TICKS + 100);
            writer.short(-3);
            writer.int(2);
            writer.utf8("skipped");
            writer.null();
            writer.int(2);
            writer.bytes.extend([0x3f, 0x80, 0, 0, 0x40, 0, 0, 0]);
            writer.long(3_000);
            writer.long(2);
            writer.long(1);
        });
        self.event(LOAD, |writer| {
            writer.long(START_TICKS);
            writer.bytes.extend([0; 4]);
        });
        self.event(COLLECTION, |writer| {
            writer.long(START_TICKS + 200);
            writer.long(8);
            writer.int(1);
            writer.long(1);
            writer.long(1);
        });
        for (state, samples) in [(RUNNABLE, 3), (SLEEPING, 40)] {
            self.event(WALL, |writer| {
                writer.long(START_TICKS + 300);
                for number in [1, 1, state] {
                    writer.long(number);
                }
                writer.int(samples);
            });
        }
        self.event(ALLOCATION, |writer| {
            writer.long(START_TICKS + 400);
            for number in [1, 1, 4096] {
                writer.long(number);
            }
        });
    }

    /// The first checkpoint: symbols in all encodings, classes and methods. The keys of methods
    /// are long, and one is negative.
    fn symbols(&mut self) -> usize {
        self.event(CHECKPOINT, |writer| {
            writer.checkpoint_head(0, 5);
            writer.pool(STRING, 1);
            writer.long(9);
            writer.utf8("main");
            writer.pool(SYMBOL, 7);
            writer.long(1);
            writer.latin1("java/lang/Thread");
            writer.long(2);
            writer.utf8("run");
            writer.long(3);
            writer.chars("App$$Lambda$7/0x00000001");
            writer.long(4);
            writer.constant(9);
            writer.long(5);
            writer.latin1("wörk");
            writer.long(6);
            writer.utf8("do_syscall_64");
            writer.long(7);
            writer.bytes.push(1);
            writer.pool(CLASS, 2);
            for (key, name) in [(1, 1), (2, 3)] {
                writer.long(key);
                writer.long(name);
            }
            writer.pool(METHOD, 4);
            for (key, class, name) in [(1, 1, 2), (-5, 2, 4), (1 << 40, 2, 5), (4, 9, 6)] {
                writer.long(key);
                writer.long(class);
                writer.long(name);
                writer.bytes.push(0);
            }
            // A type that no sample needs.
            writer.pool(INNER, 1);
            writer.long(1);
            writer.short(4);
            writer.int(0);
        })
    }

    /// The second checkpoint, which says where the first one is.
    fn stacks(&mut self, before: usize) -> usize {
        let here = self.bytes.len();
        self.event(CHECKPOINT, |writer| {
            writer.checkpoint_head(before as i64 - here as i64, 6);
            writer.pool(FRAME_TYPE, 3);
            for (key, name) in [(1, "JIT compiled"), (2, "Native"), (3, "Kernel")] {
                writer.long(key);
                writer.utf8(name);
            }
            writer.pool(THREAD_STATE, 2);
            for (key, name) in [(1, "STATE_RUNNABLE"), (2, "STATE_SLEEPING")] {
                writer.long(key);
                writer.utf8(name);
            }
            writer.pool(THREAD, 2);
            writer.long(1);
            writer.utf8("native-main");
            writer.long(11);
            writer.utf8("main");
            writer.long(2);
            writer.utf8("GC Thread#0");
            writer.long(12);
            writer.null();
            writer.pool(STACK_TRACE, 2);
            let rooted = [(1 << 40, 7, 1), (-5, 6, 1), (1, -1, 2)];
            let kernel = [(4, 0, 3), (99, 3, 1)];
            for (key, is_truncated, frames) in [(1, 0, &rooted[..]), (2, 1, &kernel[..])] {
                writer.long(key);
                writer.bytes.push(is_truncated);
                writer.int(frames.len() as i32);
                for &(method, line, frame_type) in frames {
                    writer.long(method);
                    writer.int(line);
                    writer.int(17);
                    writer.long(frame_type);
                }
            }
            writer.pool(GC_NAME, 1);
            writer.long(1);
            writer.utf8("G1New");
            writer.pool(GC_CAUSE, 1);
            writer.long(1);
            writer.utf8("G1 Evacuation Pause");
        })
    }

    fn metadata(&mut self) -> usize {
        let types = [types(), datadog::types()].concat();
        let mut strings: Vec<String> = Vec::new();
        let mut elements: Vec<u64> = Vec::new();
        let mut word = |text: &str| {
            let known = strings.iter().position(|string| string == text);
            known.unwrap_or_else(|| {
                strings.push(text.to_owned());
                strings.len() - 1
            }) as u64
        };
        // Name of the element, attributes, children.
        elements.extend([word("root"), 0, 2]);
        elements.extend([word("metadata"), 0, types.len() as u64]);
        for (id, name, fields) in types {
            elements.extend([word("class"), 2]);
            elements.extend([word("id"), word(&id.to_string())]);
            elements.extend([word("name"), word(name)]);
            elements.push(fields.len() as u64);
            for Field(name, class, kind) in fields {
                let extra = match kind {
                    CONSTANT => Some(("constantPool", "true")),
                    ARRAY => Some(("dimension", "1")),
                    _ => None,
                };
                elements.extend([word("field"), 2 + u64::from(extra.is_some())]);
                elements.extend([word("name"), word(name)]);
                elements.extend([word("class"), word(&class.to_string())]);
                if let Some((key, value)) = extra {
                    elements.extend([word(key), word(value)]);
                }
                let unit = match kind {
                    TICKS => Some("TICKS"),
                    MILLISECONDS => Some("MILLISECONDS"),
                    _ => None,
                };
                elements.push(u64::from(unit.is_some()));
                if let Some(unit) = unit {
                    elements.extend([word("annotation"), 2]);
                    elements.extend([word("class"), word(&TIMESPAN.to_string())]);
                    elements.extend([word("value"), word(unit), 0]);
                }
            }
        }
        elements.extend([word("region"), 0, 0]);
        self.event(METADATA, |writer| {
            for number in [START_TICKS, 0, 1] {
                writer.long(number);
            }
            writer.int(strings.len() as i32);
            for string in &strings {
                writer.utf8(string);
            }
            for &element in &elements {
                writer.int(element as i32);
            }
        })
    }
}

/// The labels snapshot that belongs to these recordings: context 7 is `endpoint` = `/pay`, and
/// string 5 names the span.
pub fn labels_snapshot() -> Vec<u8> {
    let mut bytes = vec![0x0a, 10, 0x08, 7, 0x12, 6, 0x0a, 4, 0x08, 1, 0x10, 2];
    for (number, text) in [(1, "endpoint"), (2, "/pay"), (5, "checkout")] {
        bytes.extend([
            0x12,
            4 + text.len() as u8,
            0x08,
            number,
            0x12,
            text.len() as u8,
        ]);
        bytes.extend(text.bytes());
    }
    bytes
}
