//! The row of records that a recording is made of.

use std::io;
use std::io::Read;

use crate::perf_data::bytes::Bytes;
use crate::perf_data::bytes::Endian;

/// Kinds of record (`enum perf_event_type`, `enum perf_user_event_type`).
pub(crate) mod kinds {
    pub(crate) const MMAP: u32 = 1;
    pub(crate) const LOST: u32 = 2;
    pub(crate) const COMM: u32 = 3;
    pub(crate) const EXIT: u32 = 4;
    pub(crate) const THROTTLE: u32 = 5;
    pub(crate) const FORK: u32 = 7;
    pub(crate) const SAMPLE: u32 = 9;
    pub(crate) const MMAP2: u32 = 10;
    pub(crate) const LOST_SAMPLES: u32 = 13;
    pub(crate) const KSYMBOL: u32 = 17;
    /// What perf itself adds begins here.
    pub(crate) const FIRST_OF_PERF: u32 = 64;
    pub(crate) const HEADER_ATTR: u32 = 64;
    pub(crate) const TRACING_DATA: u32 = 66;
    pub(crate) const BUILD_ID: u32 = 67;
    pub(crate) const FINISHED_ROUND: u32 = 68;
    pub(crate) const AUXTRACE: u32 = 71;
    pub(crate) const EVENT_UPDATE: u32 = 78;
    pub(crate) const HEADER_FEATURE: u32 = 80;
    pub(crate) const COMPRESSED: u32 = 81;
    pub(crate) const COMPRESSED2: u32 = 83;
    /// What Android's simpleperf adds begins here.
    pub(crate) const FIRST_OF_SIMPLEPERF: u32 = 1 << 15;
}

/// Kind, flags and size.
const HEADER_BYTES: usize = 8;

/// One record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    pub(crate) kind: u32,
    /// Flags, and in the lowest three bits where the processor was.
    pub(crate) misc: u16,
    pub(crate) body: Bytes<'a>,
}

/// What the start of some bytes is.
#[derive(Debug)]
pub(crate) enum Start<'a> {
    /// A record, and how many bytes it takes.
    Record(Record<'a>, usize),
    /// The start of a record.
    Cut,
    /// No record: its size is less than that of its header.
    Broken,
}

/// Takes the first record of some bytes.
pub(crate) fn first_record(bytes: &[u8], endian: Endian) -> Start<'_> {
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
        return Start::Cut;
    };
    let (kind, misc, size) = parse_header(*header, endian);
    let Some(body_bytes) = size.checked_sub(HEADER_BYTES) else {
        return Start::Broken;
    };
    let Some(body) = rest.get(..body_bytes) else {
        return Start::Cut;
    };
    let body = Bytes::new(body, endian);
    Start::Record(Record { kind, misc, body }, size)
}

fn parse_header(header: [u8; HEADER_BYTES], endian: Endian) -> (u32, u16, usize) {
    let [a, b, c, d, e, f, g, h] = header;
    let kind = endian.u32([a, b, c, d]);
    let (misc, size) = (endian.u16([e, f]), usize::from(endian.u16([g, h])));
    // simpleperf has no flags in its own records: the upper half of their size stands there.
    match kind >= kinds::FIRST_OF_SIMPLEPERF {
        true => (kind, 0, usize::from(misc) << 16 | size),
        false => (kind, misc, size),
    }
}

/// Reads records one by one; a record that is kept has at most 64 KiB.
#[derive(Debug)]
pub(crate) struct RecordReader<R> {
    input: R,
    endian: Endian,
    /// Bytes that are left of the data by what the header says.
    left: u64,
    /// Where the next record stands.
    offset: u64,
    record: Vec<u8>,
}

/// What comes next.
#[derive(Debug)]
pub(crate) enum Next<'a> {
    Record(Record<'a>),
    End,
    /// The input ends inside of a record, or before the data do.
    Cut,
    Broken,
}

impl<R: Read> RecordReader<R> {
    /// Reads the `size` bytes of data that begin at `offset` of the file.
    pub(crate) fn new(input: R, endian: Endian, offset: u64, size: u64) -> Self {
        Self {
            input,
            endian,
            left: size,
            offset,
            record: Vec::new(),
        }
    }

    /// Where the next record stands in the file.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// What follows the data.
    pub(crate) fn into_input(self) -> R {
        self.input
    }

    pub(crate) fn next(&mut self) -> io::Result<Next<'_>> {
        let mut header = [0; HEADER_BYTES];
        match self.fill_header(&mut header)? {
            HEADER_BYTES => {}
            // A pipe ends where it ends; a file says how much there is.
            0 if self.left == 0 || self.left > u64::MAX / 2 => return Ok(Next::End),
            _ => return Ok(Next::Cut),
        }
        let (kind, misc, size) = parse_header(header, self.endian);
        let Some(body_bytes) = size.checked_sub(HEADER_BYTES) else {
            return Ok(Next::Broken);
        };
        // Nothing is read of simpleperf's own records, which may say that they have 4 GiB.
        if kind >= kinds::FIRST_OF_SIMPLEPERF {
            let before = self.offset;
            self.skip(body_bytes as u64)?;
            if self.offset - before < body_bytes as u64 {
                return Ok(Next::Cut);
            }
            let body = Bytes::new(&[], self.endian);
            return Ok(Next::Record(Record { kind, misc, body }));
        }
        self.record.resize(body_bytes, 0);
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX);
        let wanted = wanted.min(body_bytes);
        let found = read_full(&mut self.input, &mut self.record[..wanted])?;
        self.advance(found as u64);
        if found < body_bytes {
            return Ok(Next::Cut);
        }
        let body = Bytes::new(&self.record, self.endian);
        Ok(Next::Record(Record { kind, misc, body }))
    }

    /// Steps over bytes that belong to no record: traces of the processor, formats of tracepoints.
    pub(crate) fn skip(&mut self, bytes: u64) -> io::Result<()> {
        let wanted = bytes.min(self.left);
        let skipped = io::copy(&mut self.input.by_ref().take(wanted), &mut io::sink())?;
        self.advance(skipped);
        Ok(())
    }

    fn fill_header(&mut self, header: &mut [u8; HEADER_BYTES]) -> io::Result<usize> {
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX);
        let wanted = wanted.min(HEADER_BYTES);
        let found = read_full(&mut self.input, &mut header[..wanted])?;
        self.advance(found as u64);
        Ok(found)
    }

    fn advance(&mut self, bytes: u64) {
        self.left -= bytes.min(self.left);
        self.offset = self.offset.saturating_add(bytes);
    }
}

/// Reads as many bytes as there are, at most so many as fit.
pub(crate) fn read_full(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
