//! What a recording says of itself besides its records: sections behind the data, or records in
//! pipes.

use hashbrown::HashMap;

use crate::options::Limits;
use crate::perf_data::attr::Attr;
use crate::perf_data::bytes::Bytes;
use crate::perf_data::bytes::Endian;
use crate::perf_data::events::Events;
use crate::perf_data::files::build_id_hex;
use crate::perf_data::header::FileHeader;
use crate::perf_data::header::Section;
use crate::perf_data::own_symbols::OwnSymbols;
use crate::perf_data::records::Start;
use crate::perf_data::records::first_record;

/// Numbers of features (`HEADER_*` of perf).
const BUILD_IDS: u64 = 2;
const HOST_NAME: u64 = 3;
const COMMAND_LINE: u64 = 11;
const EVENT_DESCRIPTIONS: u64 = 12;
const CLOCK_DATA: u64 = 29;
/// The first of those that Android's simpleperf adds.
const SIMPLEPERF_FILES: u64 = 128;
const SIMPLEPERF_META: u64 = 129;
const SIMPLEPERF_FILES_AS_MESSAGES: u64 = 132;

/// `PERF_RECORD_MISC_BUILD_ID_SIZE`: the byte behind the id says how long it is.
const MISC_BUILD_ID_HAS_SIZE: u16 = 1 << 15;

/// Bytes that are kept for a build id, size included.
const BUILD_ID_FIELD_BYTES: usize = 24;
const SHA1_BYTES: usize = 20;

/// Words of a command line that are kept.
const MOST_WORDS: u32 = 1000;

/// Kinds of event whose names are read: a recording has no more events.
const MOST_EVENT_TYPES: usize = 4096;

/// What the features tell.
#[derive(Debug, Default)]
pub(crate) struct Features {
    /// Hexadecimal digits by what perf calls the file.
    build_ids: HashMap<Vec<u8>, String>,
    build_id_bytes: usize,
    pub(crate) own_symbols: OwnSymbols,
    pub(crate) host_name: String,
    pub(crate) command_line: String,
    /// Unix time minus that of the clock of the recording, nanoseconds.
    pub(crate) clock_offset_ns: Option<i128>,
}

impl Features {
    /// Hexadecimal digits of the build id of a file; empty when no feature tells it.
    pub(crate) fn build_id(&self, perf_path: &str) -> &str {
        let known = self.build_ids.get(perf_path.as_bytes());
        known.map_or("", String::as_str)
    }

    /// Reads the sections behind the data: `bytes` begins at the end of the data. `false` says that
    /// some are not there, or not whole.
    pub(crate) fn read_sections(
        &mut self,
        header: &FileHeader,
        bytes: &[u8],
        endian: Endian,
        events: &mut Events,
        limits: &Limits,
    ) -> bool {
        let start = header.data.offset.saturating_add(header.data.size);
        let mut table = Bytes::new(bytes, endian);
        let mut is_whole = true;
        for number in header.features() {
            let Some(section) = Section::parse(&mut table) else {
                return false;
            };
            let content = section.of(bytes, start);
            if (content.len() as u64) < section.size {
                return false;
            }
            let content = Bytes::new(content, endian);
            match u64::from(number) {
                // simpleperf writes into no pipe: only in files these are read, where each comes once.
                SIMPLEPERF_META => name_events(content.rest(), events, limits),
                SIMPLEPERF_FILES => {
                    let read = self.own_symbols.read_first_form(content, limits);
                    is_whole &= read.is_some();
                }
                SIMPLEPERF_FILES_AS_MESSAGES => {
                    let read = self.own_symbols.read_second_form(content, limits);
                    is_whole &= read.is_some();
                }
                number => self.read(number, content, events, limits),
            }
        }
        is_whole
    }

    /// Reads one feature; what is broken is left out.
    pub(crate) fn read(
        &mut self,
        number: u64,
        mut content: Bytes<'_>,
        events: &mut Events,
        limits: &Limits,
    ) {
        match number {
            BUILD_IDS => self.read_build_ids(content, limits),
            HOST_NAME => self.host_name = text(&mut content, limits).unwrap_or_default(),
            COMMAND_LINE => {
                self.command_line = words(&mut content, limits).unwrap_or_default();
            }
            EVENT_DESCRIPTIONS => {
                let _ = read_event_names(content, events, limits);
            }
            CLOCK_DATA => self.clock_offset_ns = clock_offset(content),
            _ => {}
        }
    }

    /// The body of a record that tells the build id of a file.
    pub(crate) fn add_build_id(&mut self, misc: u16, mut body: Bytes<'_>, limits: &Limits) {
        let _pid = body.u32();
        let Some(field) = body.take(BUILD_ID_FIELD_BYTES) else {
            return;
        };
        let size = if misc & MISC_BUILD_ID_HAS_SIZE == 0 {
            SHA1_BYTES
        } else {
            usize::from(field[SHA1_BYTES]).min(SHA1_BYTES)
        };
        let path = body.text();
        let bytes = path.len() + 4 * BUILD_ID_FIELD_BYTES;
        let is_kept = path.len() <= limits.max_string_bytes
            && self.build_id_bytes + bytes <= limits.inflated_bytes();
        if is_kept {
            self.build_id_bytes += bytes;
            let digits = build_id_hex(&field[..size]);
            self.build_ids.insert(path.to_vec(), digits);
        }
    }

    fn read_build_ids(&mut self, content: Bytes<'_>, limits: &Limits) {
        let mut rest = content.rest();
        while let Start::Record(record, size) = first_record(rest, content.endian()) {
            self.add_build_id(record.misc, record.body, limits);
            rest = rest.get(size..).unwrap_or(&[]);
        }
    }
}

/// A text with its length in front.
fn text(content: &mut Bytes<'_>, limits: &Limits) -> Option<String> {
    let length = content.u32()?;
    let field = content.part(length as usize)?;
    let text = String::from_utf8_lossy(field.text());
    Some(limits.cut(&text).to_owned())
}

/// The words of a command line.
fn words(content: &mut Bytes<'_>, limits: &Limits) -> Option<String> {
    let count = content.u32()?.min(MOST_WORDS);
    let mut line = String::new();
    for _ in 0..count {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&text(content, limits)?);
        if line.len() >= limits.max_string_bytes {
            break;
        }
    }
    Some(limits.cut(&line).to_owned())
}

fn read_event_names(mut content: Bytes<'_>, events: &mut Events, limits: &Limits) -> Option<()> {
    let count = content.u32()?;
    let attr_bytes = content.u32()? as usize;
    for position in 0..count as usize {
        let _attr: Option<Attr> = Attr::parse(content.part(attr_bytes)?);
        let id_count = content.u32()?;
        let name = text(&mut content, limits)?;
        let ids = content.words(u64::from(id_count))?;
        match ids.get(0) {
            Some(id) => events.set_name(id, &name),
            None => events.set_name_at(position, &name),
        }
    }
    Some(())
}

/// What simpleperf says of a recording: keys and values, each with a zero behind it. One of them has a
/// line for each kind of event: name, kind and configuration.
fn name_events(content: &[u8], events: &mut Events, limits: &Limits) {
    let mut texts = content.split(|byte| *byte == 0);
    while let (Some(key), Some(value)) = (texts.next(), texts.next()) {
        if key != b"event_type_info" {
            continue;
        }
        let value = String::from_utf8_lossy(value);
        for line in value.lines().take(MOST_EVENT_TYPES) {
            if let Some((name, kind, config)) = event_type(line) {
                events.set_missing_names(kind, config, limits.cut(name));
            }
        }
        return;
    }
}

fn event_type(line: &str) -> Option<(&str, u32, u64)> {
    let (rest, config) = line.rsplit_once(',')?;
    let (name, kind) = rest.rsplit_once(',')?;
    Some((name, kind.parse().ok()?, config.parse().ok()?))
}

/// The clock of the recording and the time of day, read at one moment.
fn clock_offset(mut content: Bytes<'_>) -> Option<i128> {
    let _version = content.u32()?;
    let _clock = content.u32()?;
    let unix_ns = content.u64()?;
    let clock_ns = content.u64()?;
    Some(i128::from(unix_ns) - i128::from(clock_ns))
}
