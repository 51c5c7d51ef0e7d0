//! Traces of .NET of all versions, written by hand.

/// Bytes under construction.
#[derive(Clone, Default)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl Bytes {
    pub(crate) fn u8(mut self, value: u8) -> Self {
        self.0.push(value);
        self
    }

    pub(crate) fn u16(mut self, value: u16) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn u64(mut self, value: u64) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn varuint(mut self, mut value: u64) -> Self {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.u8(value as u8)
    }

    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn utf16(self, text: &str) -> Self {
        let units = text.encode_utf16().chain([0]);
        units.fold(self, |bytes, unit| bytes.u16(unit))
    }

    pub(crate) fn utf8(self, text: &str) -> Self {
        self.varuint(text.len() as u64).raw(text.as_bytes())
    }

    pub(crate) fn align(mut self) -> Self {
        while !self.0.len().is_multiple_of(4) {
            self.0.push(0);
        }
        self
    }
}

pub(crate) fn bytes() -> Bytes {
    Bytes::default()
}

/// 2024-05-06 07:08:09.010, the clock at 1000 with a million ticks a second.
pub(crate) fn clock() -> Bytes {
    let date = [2024, 5, 1, 6, 7, 8, 9, 10];
    date.into_iter()
        .fold(bytes(), Bytes::u16)
        .u64(1_000)
        .u64(1_000_000)
        .u32(8)
}

pub(crate) const START_NS: i64 = 1_714_979_289_010_000_000;

pub(crate) fn object(file: Bytes, name: &str, version: u32, begin: u8) -> Bytes {
    file.u8(begin)
        .u8(begin)
        .u8(1)
        .u32(version)
        .u32(version)
        .u32(name.len() as u32)
        .raw(name.as_bytes())
        .u8(6)
}

pub(crate) fn trace_object(file: Bytes, version: u32, begin: u8) -> Bytes {
    let file = object(file, "Trace", version, begin);
    file.raw(&clock().0).u32(77).u32(4).u32(2_000_000).u8(6)
}

pub(crate) fn block(file: Bytes, name: &str, begin: u8, data: &[u8]) -> Bytes {
    let file = object(file, name, 2, begin).u32(data.len() as u32).align();
    file.raw(data).u8(6)
}

pub(crate) fn metadata(number: u32, provider: &str, event: u32, version: u32) -> Vec<u8> {
    bytes()
        .u32(number)
        .utf16(provider)
        .u32(event)
        .utf16("")
        .u64(0)
        .u32(version)
        .u32(0)
        .u32(0)
        .0
}

/// A method of module 5 with 0x100 bytes.
pub(crate) fn method(start: u64, namespace: &str, name: &str) -> Vec<u8> {
    bytes()
        .u64(1)
        .u64(5)
        .u64(start)
        .u32(0x100)
        .u32(0)
        .u32(0)
        .utf16(namespace)
        .utf16(name)
        .utf16("void  (int32)")
        .u16(0)
        .0
}

pub(crate) fn module() -> Vec<u8> {
    bytes()
        .u64(5)
        .u64(0)
        .u32(0)
        .u32(0)
        .utf16("/app/app.dll")
        .utf16("")
        .0
}

pub(crate) fn allocation() -> Vec<u8> {
    bytes()
        .u32(100)
        .u32(0)
        .u16(0)
        .u64(102_400)
        .u64(0xabc)
        .utf16("System.String")
        .0
}

pub(crate) const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
pub(crate) const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";
pub(crate) const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";

pub(crate) const SAMPLE: u32 = 1;
pub(crate) const ALLOCATION: u32 = 2;
pub(crate) const METHOD: u32 = 3;
pub(crate) const MODULE: u32 = 4;

pub(crate) fn all_metadata() -> [Vec<u8>; 4] {
    [
        metadata(SAMPLE, SAMPLER, 0, 0),
        metadata(ALLOCATION, RUNTIME, 10, 3),
        metadata(METHOD, RUNDOWN, 144, 1),
        metadata(MODULE, RUNDOWN, 154, 2),
    ]
}

/// Metadata, ticks, stack and payload of an event.
pub(crate) type Row = (u32, u64, u32, Vec<u8>);

/// The events of the example: `Main` calls `Work`, which is
/// sampled twice and allocates; one sample is in code that nobody names.
pub(crate) fn example() -> Vec<Row> {
    vec![
        (SAMPLE, 2_000, 1, bytes().u32(2).0),
        (SAMPLE, 4_000, 1, bytes().u32(1).0),
        (SAMPLE, 6_000, 2, bytes().u32(2).0),
        (ALLOCATION, 6_500, 1, allocation()),
        (METHOD, 9_000, 0, method(0x1000, "App.Program", "Main")),
        (METHOD, 9_000, 0, method(0x2000, "App.Worker", "Work")),
        (MODULE, 9_000, 0, module()),
    ]
}

/// The leaf first; the caller is behind the last byte of `Main`.
pub(crate) fn stack(number: u32) -> Vec<u8> {
    let leaf = if number == 1 { 0x2010 } else { 0x9999 };
    bytes().u64(leaf).u64(0x1100).0
}

pub(crate) fn version_3() -> Vec<u8> {
    let event = |data: Bytes, (number, ticks, stack_number, payload): Row| {
        let stack = if stack_number == 0 {
            vec![]
        } else {
            stack(stack_number)
        };
        data.u32(0)
            .u32(number)
            .u32(9)
            .u64(ticks)
            .raw(&[0; 32])
            .u32(payload.len() as u32)
            .raw(&payload)
            .u32(stack.len() as u32)
            .raw(&stack)
            .align()
    };
    let all = all_metadata()
        .into_iter()
        .map(|payload| (0, 2_000, 0, payload));
    let data = all.chain(example()).fold(bytes(), event);
    let file = bytes().u32(20).raw(b"!FastSerialization.1");
    block(trace_object(file, 3, 4), "EventBlock", 4, &data.0)
        .u8(1)
        .0
}

pub(crate) fn version_4(is_compressed: bool) -> Vec<u8> {
    of_objects(4, is_compressed, all_metadata())
}

/// Version 5 adds tagged fields behind the metadata: here an operation code (kind 1) of one byte.
pub(crate) fn version_5() -> Vec<u8> {
    let tagged = |payload: Vec<u8>| bytes().raw(&payload).u32(1).u8(1).u8(10).0;
    of_objects(5, true, all_metadata().map(tagged))
}

fn of_objects(version: u32, is_compressed: bool, metadata: [Vec<u8>; 4]) -> Vec<u8> {
    let start = || bytes().u16(20).u16(u16::from(is_compressed)).u64(0).u64(0);
    let plain = |data: Bytes, (number, ticks, stack, payload): Row| {
        data.u32(0)
            .u32(number)
            .u32(0)
            .u64(9)
            .u64(9)
            .u32(0)
            .u32(stack)
            .u64(ticks)
            .raw(&[0; 32])
            .u32(payload.len() as u32)
            .raw(&payload)
            .align()
    };
    let rows = |events: Vec<Row>| {
        if !is_compressed {
            return events.into_iter().fold(start(), plain).0;
        }
        let mut last_ticks = 0;
        let mut data = start();
        for event in events {
            let distance = event.1 - std::mem::replace(&mut last_ticks, event.1);
            data = compressed_row(data, event, distance);
        }
        data.0
    };
    let metadata_rows = rows(
        metadata
            .into_iter()
            .map(|payload| (0, 0, 0, payload))
            .collect(),
    );
    let event_rows = rows(example());
    let stacks = (1..=2).fold(bytes().u32(1).u32(2), |data, number| {
        data.u32(16).raw(&stack(number))
    });
    let file = bytes()
        .raw(b"Nettrace")
        .u32(20)
        .raw(b"!FastSerialization.1");
    let file = block(
        trace_object(file, version, 5),
        "MetadataBlock",
        5,
        &metadata_rows,
    );
    let file = block(file, "StackBlock", 5, &stacks.0);
    let file = block(file, "EventBlock", 5, &event_rows);
    block(file, "SPBlock", 5, &[0; 12]).u8(1).0
}

pub(crate) fn compressed_row(data: Bytes, event: Row, distance: u64) -> Bytes {
    let (number, _, stack, payload) = event;
    data.u8(0xff)
        .varuint(u64::from(number))
        .varuint(1)
        .varuint(9)
        .varuint(0)
        .varuint(9)
        .varuint(u64::from(stack))
        .varuint(distance)
        .raw(&[7; 32])
        .varuint(payload.len() as u64)
        .raw(&payload)
}

pub(crate) fn version_6() -> Vec<u8> {
    let block =
        |file: Bytes, kind: u32, data: &[u8]| file.u32(data.len() as u32 | kind << 24).raw(data);
    let trace = clock()
        .u32(2)
        .utf8("ProcessId")
        .utf8("77")
        .utf8("ExpectedCPUSamplingRate")
        .utf8("2000000");
    let thread = bytes().varuint(3).u8(3).varuint(9).u8(1).utf8("");
    let threads = bytes().u16(thread.0.len() as u16).raw(&thread.0);
    let kinds = [
        (SAMPLE, SAMPLER, 0),
        (ALLOCATION, RUNTIME, 10),
        (METHOD, RUNDOWN, 144),
        (MODULE, RUNDOWN, 154),
    ];
    let rows = kinds
        .iter()
        .fold(bytes().u16(0), |data, (number, provider, event)| {
            let row = bytes()
                .varuint(u64::from(*number))
                .utf8(provider)
                .varuint(*event)
                .utf8("")
                .u16(0)
                .u16(0);
            data.u16(row.0.len() as u16).raw(&row.0)
        });
    let stacks = (1..=2).fold(bytes().u32(1).u32(2), |data, number| {
        data.u32(16).raw(&stack(number))
    });
    let mut last_ticks = 0;
    let mut events = bytes().u16(20).u16(1).u64(0).u64(0);
    for (position, (number, ticks, stack, payload)) in example().into_iter().enumerate() {
        let distance = ticks - std::mem::replace(&mut last_ticks, ticks);
        // The thread is said once.
        let thread_flag = if position == 0 { 4 } else { 0 };
        events = events
            .u8(1 | thread_flag | 8 | 16 | 128)
            .varuint(u64::from(number));
        if position == 0 {
            events = events.varuint(3);
        }
        events = events
            .varuint(u64::from(stack))
            .varuint(distance)
            .varuint(0)
            .varuint(payload.len() as u64)
            .raw(&payload);
    }
    let file = bytes().raw(b"Nettrace").u32(0).u32(6).u32(0);
    let file = block(file, 1, &trace.0);
    let file = block(file, 6, &threads.0);
    let file = block(file, 3, &rows.0);
    let file = block(file, 5, &stacks.0);
    let file = block(file, 99, b"unknown");
    let file = block(file, 2, &events.0);
    block(file, 0, &[]).0
}

pub(crate) fn all_versions() -> [Vec<u8>; 5] {
    [
        version_3(),
        version_4(false),
        version_4(true),
        version_5(),
        version_6(),
    ]
}
