//! What Datadog's profiler writes.

use super::CONSTANT;
use super::FLOAT;
use super::Field;
use super::HEADER_BYTES;
use super::LONG;
use super::SETTING;
use super::STACK_TRACE;
use super::START_TICKS;
use super::STRING;
use super::Shape;
use super::THREAD;
use super::THREAD_STATE;
use super::Writer;
use super::with_header;

const EXECUTION: u64 = 201;
const METHOD: u64 = 202;
const OBJECT: u64 = 203;
const LIVE_OBJECT: u64 = 204;

/// The span of a request, with the upper bit: these numbers have no sign.
pub const ROOT_SPAN: i64 = i64::MIN + 0xab;
pub const SPAN: i64 = 0xcd;

pub(super) fn types() -> Vec<(u64, &'static str, Vec<Field>)> {
    let head = [
        Field("startTime", LONG, ""),
        Field("eventThread", THREAD, CONSTANT),
        Field("stackTrace", STACK_TRACE, CONSTANT),
    ];
    let times = [
        Field("state", THREAD_STATE, CONSTANT),
        Field("mode", THREAD_STATE, CONSTANT),
        Field("weight", LONG, ""),
    ];
    let object = [Field("size", LONG, ""), Field("weight", FLOAT, "")];
    let spans = [
        Field("spanId", LONG, ""),
        Field("localRootSpanId", LONG, ""),
        Field("_dd.trace.operation", STRING, CONSTANT),
    ];
    vec![
        (
            EXECUTION,
            "datadog.ExecutionSample",
            [&head[..], &times, &spans].concat(),
        ),
        (
            METHOD,
            "datadog.MethodSample",
            [&head[..], &times, &spans].concat(),
        ),
        (
            OBJECT,
            "datadog.ObjectSample",
            [&head[..], &object, &spans].concat(),
        ),
        (
            LIVE_OBJECT,
            "datadog.HeapLiveObject",
            [&head[..], &object, &spans].concat(),
        ),
    ]
}

/// A recording of one chunk with all events that are samples.
pub fn recording(shape: Shape) -> Vec<u8> {
    let mut writer = Writer {
        bytes: vec![0; HEADER_BYTES],
        is_compressed: shape.is_compressed,
    };
    for (event, interval) in [(EXECUTION, "9000000"), (METHOD, "50000000")] {
        writer.event(SETTING, |writer| {
            writer.long(START_TICKS);
            writer.long(event as i64);
            writer.utf8("interval");
            writer.latin1(interval);
        });
    }
    let symbols = writer.symbols();
    // Event, stack, state, weight, spans.
    for (event, stack, state, weight, span, root_span) in [
        (EXECUTION, 1, 1, 1, SPAN, ROOT_SPAN),
        (EXECUTION, 1, 1, 2, 0, 0),
        (EXECUTION, 0, 1, 1, 0, 0),
        (METHOD, 1, 1, 1, 0, 0),
        (METHOD, 1, 2, 20, SPAN, ROOT_SPAN),
    ] {
        writer.event(event, |writer| {
            writer.long(START_TICKS + 10);
            for number in [1, stack, state, 1, weight, span, root_span, 0] {
                writer.long(number);
            }
        });
    }
    for (event, size, weight) in [
        (OBJECT, 16, 1000.25_f32),
        (OBJECT, 4096, 1.0),
        (OBJECT, 24, f32::NAN),
        (LIVE_OBJECT, 16, 1000.25),
    ] {
        writer.event(event, |writer| {
            for number in [START_TICKS + 20, 1, 1, size] {
                writer.long(number);
            }
            writer.bytes.extend(weight.to_be_bytes());
            for number in [SPAN, ROOT_SPAN, 0] {
                writer.long(number);
            }
        });
    }
    let metadata = writer.metadata();
    let last = writer.stacks(symbols);
    with_header(writer.bytes, shape, last, metadata)
}
