//! Recordings as `perf record` writes them, made by hand: either byte order, file or pipe.
#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::allow_attributes,
    reason = "shared by test programs that each use a part"
)]

/// `perf_event_attr` of a clock whose samples have thread, time, period, id and call chain.
pub const SAMPLE_TYPE: u64 = 1 << 16 | 1 | 1 << 1 | 1 << 2 | 1 << 8 | 1 << 5;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const ATTR_BYTES: usize = 64;

/// Kinds of record.
pub const MMAP: u32 = 1;
pub const LOST: u32 = 2;
pub const COMM: u32 = 3;
pub const EXIT: u32 = 4;
pub const FORK: u32 = 7;
pub const SAMPLE: u32 = 9;
pub const MMAP2: u32 = 10;
pub const KSYMBOL: u32 = 17;
pub const HEADER_ATTR: u32 = 64;
pub const TRACING_DATA: u32 = 66;
pub const BUILD_ID: u32 = 67;
pub const FINISHED_ROUND: u32 = 68;
pub const EVENT_UPDATE: u32 = 78;
pub const HEADER_FEATURE: u32 = 80;
pub const COMPRESSED: u32 = 81;
pub const COMPRESSED2: u32 = 83;

/// Where the processor was.
pub const IN_KERNEL: u16 = 1;
pub const IN_USER: u16 = 2;

/// Markers of call chains.
pub const CONTEXT_KERNEL: u64 = -128_i64 as u64;
pub const CONTEXT_USER: u64 = -512_i64 as u64;

/// Bytes in one byte order.
#[derive(Clone, Debug)]
pub struct Writer {
    pub is_big: bool,
    pub bytes: Vec<u8>,
}

/// One event: its kind, configuration, id and name.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub kind: u32,
    pub config: u64,
    pub sample_type: u64,
    pub id: u64,
    pub name: &'static str,
}

/// What stands at the end of a record that is no sample, and at the start of a sample.
#[derive(Clone, Copy, Debug)]
pub struct At {
    pub pid: u32,
    pub tid: u32,
    pub time: u64,
    pub id: u64,
}

impl Event {
    pub const CPU_CLOCK: Self = Self {
        kind: 1,
        config: 0,
        sample_type: SAMPLE_TYPE,
        id: 11,
        name: "cpu-clock",
    };
    pub const PAGE_FAULTS: Self = Self {
        kind: 1,
        config: 2,
        sample_type: SAMPLE_TYPE,
        id: 12,
        name: "page-faults:u",
    };
    pub const DUMMY: Self = Self {
        kind: 1,
        config: 9,
        sample_type: SAMPLE_TYPE,
        id: 13,
        name: "dummy:HG",
    };
}

impl Writer {
    pub fn new(is_big: bool) -> Self {
        Self {
            is_big,
            bytes: Vec::new(),
        }
    }

    pub fn u16(&mut self, number: u16) -> &mut Self {
        let bytes = if self.is_big {
            number.to_be_bytes()
        } else {
            number.to_le_bytes()
        };
        self.raw(&bytes)
    }

    pub fn u32(&mut self, number: u32) -> &mut Self {
        let bytes = if self.is_big {
            number.to_be_bytes()
        } else {
            number.to_le_bytes()
        };
        self.raw(&bytes)
    }

    pub fn u64(&mut self, number: u64) -> &mut Self {
        let bytes = if self.is_big {
            number.to_be_bytes()
        } else {
            number.to_le_bytes()
        };
        self.raw(&bytes)
    }

    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// A text, with zeros behind it up to a multiple of eight bytes.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.raw(text.as_bytes());
        let padding = 8 - self.bytes.len() % 8;
        self.raw(&[0; 8][..padding])
    }

    fn empty(&self) -> Self {
        Self::new(self.is_big)
    }

    pub fn record(&mut self, kind: u32, misc: u16, body: impl FnOnce(&mut Self)) -> &mut Self {
        let mut writer = self.empty();
        body(&mut writer);
        let size = u16::try_from(8 + writer.bytes.len()).expect("a record has less than 64 KiB");
        self.u32(kind).u16(misc).u16(size).raw(&writer.bytes)
    }

    /// A record that is no sample, with its ids.
    pub fn note(
        &mut self,
        kind: u32,
        misc: u16,
        at: At,
        body: impl FnOnce(&mut Self),
    ) -> &mut Self {
        self.record(kind, misc, |writer| {
            body(writer);
            writer.u32(at.pid).u32(at.tid).u64(at.time).u64(at.id);
        })
    }

    pub fn sample(&mut self, misc: u16, at: At, period: u64, chain: &[u64]) -> &mut Self {
        self.record(SAMPLE, misc, |writer| {
            let ip = chain.iter().find(|ip| **ip < CONTEXT_KERNEL - 4096);
            writer.u64(at.id).u64(ip.copied().unwrap_or(0));
            writer.u32(at.pid).u32(at.tid).u64(at.time);
            writer.u64(period).u64(chain.len() as u64);
            for ip in chain {
                writer.u64(*ip);
            }
        })
    }

    pub fn mmap(&mut self, misc: u16, at: At, range: (u64, u64, u64), path: &str) -> &mut Self {
        self.note(MMAP, misc, at, |writer| {
            writer.u32(at.pid).u32(at.tid);
            writer.u64(range.0).u64(range.1).u64(range.2).text(path);
        })
    }

    pub fn mmap2_with_build_id(
        &mut self,
        at: At,
        range: (u64, u64, u64),
        build_id: [u8; 20],
        path: &str,
    ) -> &mut Self {
        self.note(MMAP2, IN_USER | 1 << 14, at, |writer| {
            writer.u32(at.pid).u32(at.tid);
            writer.u64(range.0).u64(range.1).u64(range.2);
            writer.raw(&[20, 0, 0, 0]).raw(&build_id);
            writer.u32(5).u32(2).text(path);
        })
    }

    pub fn comm(&mut self, misc: u16, at: At, name: &str) -> &mut Self {
        self.note(COMM, misc, at, |writer| {
            writer.u32(at.pid).u32(at.tid).text(name);
        })
    }

    pub fn fork(&mut self, misc: u16, at: At, parent: (u32, u32)) -> &mut Self {
        self.note(FORK, misc, at, |writer| {
            writer.u32(at.pid).u32(parent.0).u32(at.tid).u32(parent.1);
            writer.u64(at.time);
        })
    }

    pub fn attr(&mut self, event: Event) -> &mut Self {
        let flags = if self.is_big {
            SAMPLE_ID_ALL.reverse_bits()
        } else {
            SAMPLE_ID_ALL
        };
        self.u32(event.kind)
            .u32(ATTR_BYTES as u32)
            .u64(event.config);
        self.u64(1).u64(event.sample_type).u64(0).u64(flags);
        self.u64(0).u64(0)
    }

    fn with_length(&mut self, text: &str) -> &mut Self {
        self.u32(text.len() as u32 + 1)
            .raw(text.as_bytes())
            .raw(&[0])
    }
}

/// A build id for a path, as a record or an entry of the feature.
pub fn build_id_record(writer: &mut Writer, misc: u16, build_id: [u8; 20], path: &str) {
    writer.record(BUILD_ID, misc, |writer| {
        writer.u32(u32::MAX).raw(&build_id).raw(&[20, 0, 0, 0]);
        writer.text(path);
    });
}

/// The clock feature: the recording's clock and the time of day at one moment.
pub fn clock_feature(writer: &mut Writer, unix_ns: u64, clock_ns: u64) {
    writer.u32(1).u32(1).u64(unix_ns).u64(clock_ns);
}

/// A recording that went through a pipe, from its records.
pub fn pipe(events: &[Event], records: &Writer) -> Vec<u8> {
    let mut writer = Writer::new(records.is_big);
    writer.u64(u64::from_le_bytes(*b"PERFILE2")).u64(16);
    for event in events {
        writer.record(HEADER_ATTR, 0, |writer| {
            writer.attr(*event).u64(event.id);
        });
        writer.record(EVENT_UPDATE, 0, |writer| {
            writer.u64(2).u64(event.id).text(event.name);
        });
    }
    writer.raw(&records.bytes);
    writer.bytes
}

/// A recording in a file, with its host, the names of its events and more features by number.
pub fn file(events: &[Event], records: &Writer, features: &[(u32, Writer)]) -> Vec<u8> {
    let mut host = records.empty();
    host.with_length("hosty");
    let mut names = records.empty();
    names.u32(events.len() as u32).u32(ATTR_BYTES as u32);
    for event in events {
        names
            .attr(*event)
            .u32(1)
            .with_length(event.name)
            .u64(event.id);
    }
    let mut features: Vec<(u32, Writer)> = features.to_vec();
    features.extend([(3, host), (12, names)]);
    features.sort_by_key(|(number, _)| *number);

    let ids_start = 104;
    let attrs_start = ids_start + 8 * events.len() as u64;
    let attr_entry_bytes = ATTR_BYTES as u64 + 16;
    let data_start = attrs_start + attr_entry_bytes * events.len() as u64;
    let data_size = records.bytes.len() as u64;

    let mut writer = Writer::new(records.is_big);
    writer.u64(u64::from_le_bytes(*b"PERFILE2")).u64(104);
    writer.u64(attr_entry_bytes);
    writer
        .u64(attrs_start)
        .u64(attr_entry_bytes * events.len() as u64);
    writer.u64(data_start).u64(data_size).u64(0).u64(0);
    let mut bits = [0_u64; 4];
    for (number, _) in &features {
        bits[(number / 64) as usize] |= 1 << (number % 64);
    }
    for word in bits {
        writer.u64(word);
    }
    for event in events {
        writer.u64(event.id);
    }
    for (position, event) in events.iter().enumerate() {
        writer
            .attr(*event)
            .u64(ids_start + 8 * position as u64)
            .u64(8);
    }
    writer.raw(&records.bytes);
    let mut offset = data_start + data_size + 16 * features.len() as u64;
    for (_, content) in &features {
        writer.u64(offset).u64(content.bytes.len() as u64);
        offset += content.bytes.len() as u64;
    }
    for (_, content) in &features {
        writer.raw(&content.bytes);
    }
    writer.bytes
}
