//! Reading a recording: a file or what was written into a pipe.

use std::io::BufRead;
use std::io::Read;

use candela_model::Profile;

use crate::error::ReadError;
use crate::inflate::Inflating;
use crate::inflate::read_error;
use crate::options::ReadOptions;
use crate::perf_data::NAME;
use crate::perf_data::PerfDataOptions;
use crate::perf_data::attr::Attr;
use crate::perf_data::bytes::Bytes;
use crate::perf_data::bytes::Words;
use crate::perf_data::compressed::Inflater;
use crate::perf_data::header::FILE_HEADER_BYTES;
use crate::perf_data::header::FileHeader;
use crate::perf_data::header::PIPE_HEADER_BYTES;
use crate::perf_data::header::Section;
use crate::perf_data::header::endian_of;
use crate::perf_data::header::header_size;
use crate::perf_data::header::is_of_version_1;
use crate::perf_data::profile::build_profile;
use crate::perf_data::records::Next;
use crate::perf_data::records::Record;
use crate::perf_data::records::RecordReader;
use crate::perf_data::records::Start;
use crate::perf_data::records::first_record;
use crate::perf_data::records::kinds;
use crate::perf_data::records::read_full;
use crate::perf_data::resolver::AddressResolver;
use crate::perf_data::session::Session;
use crate::perf_data::session::corrupt;
use crate::report::Report;

/// Reads a recording of Linux's `perf record`: each event that has samples becomes a series whose
/// values are the periods of its samples.
///
/// Records are read one by one, so memory is bounded by the profile and not by the recording. What is
/// compressed counts against [`max_inflated_bytes`](crate::Limits::max_inflated_bytes).
///
/// Without a resolver frames are addresses, and copied stacks (`--call-graph dwarf`) stay with their
/// innermost function. Addresses of files are offsets in the file, in a mapping that says so.
///
/// # Errors
/// When the input cannot be read, is no recording, exceeds a limit, or is broken before its first
/// sample.
pub fn read_perf_data(
    input: impl BufRead,
    perf_options: &PerfDataOptions,
    resolver: Option<&mut dyn AddressResolver>,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let mut input = Inflating::new(input, options.limits.inflated_bytes())?;
    let mut header = [0; FILE_HEADER_BYTES];
    let (start, rest) = header.split_at_mut(PIPE_HEADER_BYTES);
    let found = fill(&mut input, start)?;
    if is_of_version_1(start) {
        return Err(ReadError::Invalid {
            format: NAME,
            problem: "version 1 of perf.data is not read; record it with a newer perf".to_owned(),
        });
    }
    let endian = endian_of(start).ok_or_else(|| corrupt("there is no magic number", 0))?;
    let size = header_size(start, endian).filter(|_| found == PIPE_HEADER_BYTES);
    let Some(size) = size else {
        return Err(corrupt("the header breaks off", found as u64));
    };
    let session = Session::new(endian, options.limits, resolver);
    let mut recording = Recording {
        session,
        inflater: None,
        inflated: Vec::new(),
        is_compressed: input.is_compressed(),
        bytes_outside: 0,
    };
    if size == PIPE_HEADER_BYTES as u64 {
        let reader = RecordReader::new(&mut input, endian, size, u64::MAX);
        recording.read_records(reader)?;
    } else {
        let found = fill(&mut input, rest)?;
        let header = FileHeader::parse(&header, endian).filter(|_| found == rest_bytes());
        let header = header.ok_or_else(|| corrupt("the header breaks off", (16 + found) as u64))?;
        recording.read_file(&mut input, header)?;
    }
    let inner_bytes = recording.inflater.map_or(0, |it| it.inflated_bytes as u64);
    let mut session = recording.session;
    session.finish()?;
    if session.events.list().is_empty() {
        return Err(ReadError::Invalid {
            format: NAME,
            problem: "the recording describes no event".to_owned(),
        });
    }
    let (profile, mut report) = build_profile(session, perf_options, options);
    report.inner_bytes = inner_bytes;
    Ok((profile, report))
}

/// How many bytes of tracing data follow a record that tells their size. perf writes them behind the
/// record; simpleperf writes them into it, where they are counted by its own size.
fn tracing_bytes_behind(mut body: Bytes<'_>) -> u64 {
    let size = body.u32().map_or(0, u64::from);
    match body.len() as u64 >= size {
        true => 0,
        false => size,
    }
}

const fn rest_bytes() -> usize {
    FILE_HEADER_BYTES - PIPE_HEADER_BYTES
}

fn fill(input: &mut Inflating<'_>, buffer: &mut [u8]) -> Result<usize, ReadError> {
    read_full(input, buffer).map_err(read_error)
}

/// A recording that is being read.
struct Recording<'r> {
    session: Session<'r>,
    inflater: Option<Inflater>,
    /// What came out of compressed records and is not yet a whole record.
    inflated: Vec<u8>,
    /// Whether the recording as a whole is compressed, too.
    is_compressed: bool,
    /// What came out of that so far; 0 where it is not.
    bytes_outside: usize,
}

impl Recording<'_> {
    fn read_file(
        &mut self,
        input: &mut Inflating<'_>,
        mut header: FileHeader,
    ) -> Result<(), ReadError> {
        let endian = self.session.endian;
        let data_start = header.data.offset;
        let Some(between) = data_start.checked_sub(FILE_HEADER_BYTES as u64) else {
            return Err(corrupt("the data begins inside of the header", 40));
        };
        let front = self.read_part(input, between)?;
        if (front.len() as u64) < between {
            let offset = (FILE_HEADER_BYTES + front.len()) as u64;
            return Err(corrupt("the input ends before the data", offset));
        }
        // `perf record` writes the sizes last.
        if header.data.size == 0 {
            self.session.losses.is_unfinished = true;
            header.data.size = u64::MAX;
        }
        let front_start = FILE_HEADER_BYTES as u64;
        if header.attrs.offset < data_start {
            self.read_attrs(&header, &front, front_start)?;
            let size = header.data.size;
            let reader = RecordReader::new(input, endian, data_start, size);
            let input = self.read_records(reader)?;
            let behind = self.read_part_or_less(input, u64::MAX);
            self.read_features(&header, &behind);
            return Ok(());
        }
        // What changes recordings (`perf inject`) writes the events behind the data.
        let all = self.read_part(input, u64::MAX)?;
        self.read_attrs(&header, &all, data_start)?;
        let data = header.data.of(&all, data_start);
        let behind = all.get(data.len()..).unwrap_or(&[]);
        self.read_features(&header, behind);
        let reader = RecordReader::new(data, endian, data_start, header.data.size);
        self.read_records(reader)?;
        Ok(())
    }

    /// At most so many of the next bytes, into memory.
    fn read_part(&self, input: &mut Inflating<'_>, size: u64) -> Result<Vec<u8>, ReadError> {
        let limit = self.session.limits.inflated_bytes();
        let mut bytes = Vec::new();
        let wanted = size.min(limit as u64 + 1);
        let read = input.by_ref().take(wanted).read_to_end(&mut bytes);
        read.map_err(read_error)?;
        if bytes.len() > limit {
            return Err(ReadError::TooLarge {
                what: "the size of what stands around the data in bytes",
                limit,
            });
        }
        Ok(bytes)
    }

    /// What stands behind the data is no reason to lose the data.
    fn read_part_or_less(&mut self, input: &mut Inflating<'_>, size: u64) -> Vec<u8> {
        self.read_part(input, size).unwrap_or_else(|_| {
            self.session.losses.has_broken_features = true;
            Vec::new()
        })
    }

    /// The events, from bytes that begin at `start` of the file.
    fn read_attrs(
        &mut self,
        header: &FileHeader,
        bytes: &[u8],
        start: u64,
    ) -> Result<(), ReadError> {
        let endian = self.session.endian;
        let entries = header.attrs.of(bytes, start);
        let entry_bytes = usize::try_from(header.attr_entry_bytes).unwrap_or(0);
        if entry_bytes == 0 || entries.is_empty() {
            return Err(corrupt("there are no events", header.attrs.offset));
        }
        for (position, entry) in entries.chunks_exact(entry_bytes).enumerate() {
            let entry = Bytes::new(entry, endian);
            let parsed = Attr::parse(entry).and_then(|attr| {
                let mut ids = entry;
                ids.take(attr.size as usize)?;
                Some((attr, Section::parse(&mut ids)?))
            });
            let Some((attr, ids)) = parsed else {
                let offset = (position * entry_bytes) as u64;
                return Err(corrupt(
                    "an event is described in too few bytes",
                    header.attrs.offset.saturating_add(offset),
                ));
            };
            let mut ids = Bytes::new(ids.of(bytes, start), endian);
            let ids = ids.words(ids.len() as u64 / 8);
            let count = ids.map_or(0, Words::len);
            self.session.work.spend(count)?;
            let ids = ids.into_iter().flat_map(Words::iter);
            self.session.add_event(attr, ids)?;
        }
        Ok(())
    }

    fn read_features(&mut self, header: &FileHeader, behind: &[u8]) {
        let session = &mut self.session;
        if session.losses.is_unfinished {
            return;
        }
        let (endian, limits) = (session.endian, session.limits);
        let events = &mut session.events;
        let is_whole = session
            .features
            .read_sections(header, behind, endian, events, &limits);
        session.losses.has_broken_features |= !is_whole;
    }

    /// Reads all records, and returns the input behind them.
    fn read_records<R: Read>(&mut self, mut reader: RecordReader<R>) -> Result<R, ReadError> {
        loop {
            let offset = reader.offset();
            if self.is_compressed {
                self.bytes_outside = usize::try_from(offset).unwrap_or(usize::MAX);
            }
            let next = match reader.next().map_err(read_error) {
                // Of a compressed recording that breaks off, too, the start is worth reading.
                Err(ReadError::Compression { .. }) if self.has_events() => Next::Cut,
                next => next?,
            };
            let followed_by = match next {
                Next::Record(record) => self.take(record)?,
                Next::End => break,
                Next::Cut => {
                    self.end_early(offset, "the recording breaks off")?;
                    self.session.losses.is_cut = true;
                    break;
                }
                Next::Broken => {
                    self.end_early(offset, "a record is smaller than its header")?;
                    let behind = reader.skip(u64::MAX).map(|()| reader.offset() - offset);
                    self.session.losses.bytes_not_read = behind.unwrap_or(1);
                    break;
                }
            };
            if reader.skip(followed_by).is_err() {
                self.session.losses.is_cut = true;
                break;
            }
        }
        Ok(reader.into_input())
    }

    /// A break is an error where nothing sound stands in front of it.
    fn end_early(&self, offset: u64, problem: &str) -> Result<(), ReadError> {
        if self.has_events() {
            return Ok(());
        }
        Err(corrupt(problem, offset))
    }

    fn has_events(&self) -> bool {
        !self.session.events.list().is_empty()
    }

    /// Takes a record; what is returned is how many bytes that are no record follow it.
    fn take(&mut self, record: Record<'_>) -> Result<u64, ReadError> {
        let mut body = record.body;
        match record.kind {
            kinds::TRACING_DATA => return Ok(tracing_bytes_behind(body)),
            kinds::AUXTRACE => return Ok(body.u64().unwrap_or(0)),
            kinds::COMPRESSED => self.inflate(body.rest())?,
            kinds::COMPRESSED2 => {
                let size = body.u64().map(usize::try_from);
                let piece = match size {
                    Some(Ok(size)) => body.take(size),
                    _ => None,
                };
                match piece {
                    Some(piece) => self.inflate(piece)?,
                    None => self.session.losses.damaged_records += 1,
                }
            }
            _ => self.session.take(record)?,
        }
        Ok(0)
    }

    /// Takes the records that a piece of the compressed stream completes.
    fn inflate(&mut self, mut piece: &[u8]) -> Result<(), ReadError> {
        if self.session.losses.has_broken_compression {
            return Ok(());
        }
        let max_bytes = self.session.limits.inflated_bytes();
        let mut inflater = match self.inflater.take() {
            Some(inflater) => inflater,
            None => Inflater::new(max_bytes)?,
        };
        loop {
            let (known, left) = (self.inflated.len(), piece.len());
            match inflater.step(&mut piece, &mut self.inflated, self.bytes_outside) {
                Ok(()) => {}
                Err(error @ ReadError::TooLarge { .. }) => return Err(error),
                Err(_) => {
                    self.session.losses.has_broken_compression = true;
                    break;
                }
            }
            let has_moved = self.inflated.len() > known || piece.len() < left;
            if !has_moved {
                // What is left cannot be taken in.
                self.session.losses.has_broken_compression |= !piece.is_empty();
                break;
            }
            self.take_inflated()?;
            if self.session.losses.has_broken_compression {
                break;
            }
        }
        self.inflater = Some(inflater);
        Ok(())
    }

    /// What stays is moved to the front only behind a record, whose end came with all that stays: so
    /// no byte is moved twice, however small the pieces are.
    fn take_inflated(&mut self) -> Result<(), ReadError> {
        let mut taken = 0;
        loop {
            let rest = self.inflated.get(taken..).unwrap_or(&[]);
            match first_record(rest, self.session.endian) {
                Start::Record(record, size) => {
                    self.session.take(record)?;
                    taken += size;
                }
                Start::Cut => break,
                Start::Broken => {
                    self.session.losses.has_broken_compression = true;
                    taken = self.inflated.len();
                    break;
                }
            }
        }
        self.inflated.drain(..taken);
        Ok(())
    }
}
