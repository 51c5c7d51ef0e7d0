//! pprof bytes to a profile.

use std::io::BufRead;

use candela_model::FrameKind;
use candela_model::Function;
use candela_model::FunctionId;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::Mapping;
use candela_model::MappingId;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::ProfileType;
use candela_model::Sample;
use candela_model::StringId;

use crate::error::ReadError;
use crate::inflate::read_inflated;
use crate::naming;
use crate::options::Limits;
use crate::options::ReadOptions;
use crate::pprof::NAME;
use crate::pprof::id_map::IdMap;
use crate::pprof::labels::LabelReader;
use crate::pprof::metadata::Metadata;
use crate::pprof::raw::RawProfile;
use crate::pprof::raw::RawValueType;
use crate::pprof::raw::scan;
use crate::pprof::strings::Strings;
use crate::protobuf::reader::Problem;
use crate::protobuf::reader::Reader;
use crate::protobuf::reader::Span;
use crate::protobuf::reader::Value;
use crate::protobuf::reader::WireError;
use crate::protobuf::reader::error;
use crate::protobuf::reader::numbers;
use crate::report::Report;

/// Free texts of a profile, all together.
const MAX_COMMENT_BYTES: usize = 1 << 20;

/// Reads a pprof profile, plain or compressed with gzip or zstd. Each value column becomes a
/// series; samples whose value is 0 are left out of it.
///
/// # Errors
/// When the bytes are damaged or cut, refer to what does not exist (as Go's `CheckValid` refuses),
/// or exceed a limit. Lesser faults are repaired and noted: functions and mappings with id 0, lines
/// without function, unknown mappings, bad UTF-8.
pub fn read_pprof(
    input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let data = read_inflated(input, options.limits.inflated_bytes())?;
    read_inflated_pprof(&data, options)
}

/// The same of bytes that are not compressed, or no more: for callers that count them.
///
/// # Errors
/// As [`read_pprof`]; bytes that are compressed are no pprof here.
pub fn read_inflated_pprof(
    data: &[u8],
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    if data.is_empty() {
        return Err(invalid("the input is empty".to_owned()));
    }
    let mut raw = scan(data, &options.limits)?;
    if raw.sample_types.is_empty() {
        return Err(invalid("the profile has no sample types".to_owned()));
    }
    let mut builder = Builder {
        strings: Strings::new(data, std::mem::take(&mut raw.strings), options.limits),
        functions: IdMap::new(raw.functions.len()),
        mappings: IdMap::new(raw.mappings.len()),
        locations: IdMap::new(raw.locations.len()),
        profile: Profile::default(),
        report: Report::default(),
        raw,
    };
    builder.read_mappings()?;
    builder.read_functions()?;
    builder.read_locations()?;
    builder.start_series(options)?;
    builder.read_samples(&options.limits)?;
    builder.note_what_is_lost();
    Ok((builder.profile, builder.report))
}

struct Builder<'a> {
    raw: RawProfile,
    strings: Strings<'a>,
    functions: IdMap,
    mappings: IdMap,
    locations: IdMap,
    profile: Profile,
    report: Report,
}

impl Builder<'_> {
    fn read_mappings(&mut self) -> Result<(), ReadError> {
        for position in 0..self.raw.mappings.len() {
            let span = self.raw.mappings[position];
            let mut id = 0;
            let mut mapping = Mapping::default();
            let (mut file, mut build_id) = (0, 0);
            let mut reader = Reader::of(self.strings.data(), span);
            while let Some((field, value)) = reader.field().map_err(named)? {
                match (field, value) {
                    (1, Value::Varint(number)) => id = number,
                    (2, Value::Varint(address)) => mapping.memory_start = address,
                    (3, Value::Varint(address)) => mapping.memory_limit = address,
                    (4, Value::Varint(offset)) => mapping.file_offset = offset,
                    (5, Value::Varint(index)) => file = index,
                    (6, Value::Varint(index)) => build_id = index,
                    (1..=6, _) => return Err(mismatch(field, span)),
                    _ => {}
                }
            }
            if id == 0 {
                // To a location 0 is no mapping.
                self.report.note(
                    "mapping_id_zero",
                    "mappings with the reserved id 0 were left out",
                );
                continue;
            }
            mapping.file = self.strings.id(&mut self.profile, file, span)?;
            mapping.build_id = self.strings.id(&mut self.profile, build_id, span)?;
            let ours = self.profile.symbols.intern_mapping(mapping);
            if !self.mappings.insert(id, ours.0) {
                return Err(corrupt(format!("two mappings have the id {id}"), span));
            }
        }
        Ok(())
    }

    fn read_functions(&mut self) -> Result<(), ReadError> {
        let mut without_id: Vec<FunctionId> = Vec::new();
        for position in 0..self.raw.functions.len() {
            let span = self.raw.functions[position];
            let (mut id, mut name, mut system_name, mut file, mut start_line) = (0, 0, 0, 0, 0);
            let mut reader = Reader::of(self.strings.data(), span);
            while let Some((field, value)) = reader.field().map_err(named)? {
                match (field, value) {
                    (1, Value::Varint(number)) => id = number,
                    (2, Value::Varint(index)) => name = index,
                    (3, Value::Varint(index)) => system_name = index,
                    (4, Value::Varint(index)) => file = index,
                    (5, Value::Varint(line)) => start_line = line_number(line),
                    (1..=5, _) => return Err(mismatch(field, span)),
                    _ => {}
                }
            }
            let profile = &mut self.profile;
            let name = self.strings.id(profile, name, span)?;
            let system_name = self.strings.id(profile, system_name, span)?;
            let file = self.strings.id(profile, file, span)?;
            let name = if name == StringId(0) {
                system_name
            } else {
                name
            };
            let ours = profile.symbols.intern_function_ids(Function {
                name,
                system_name: if system_name == name {
                    StringId(0)
                } else {
                    system_name
                },
                file,
                start_line,
            });
            if id == 0 {
                without_id.push(ours);
                continue;
            }
            if !self.functions.insert(id, ours.0) {
                return Err(corrupt(format!("two functions have the id {id}"), span));
            }
        }
        self.take_functions_without_id(&without_id);
        Ok(())
    }

    /// A line without the id of a function refers to the only one without an id. Some profilers of
    /// .NET write none at all, as many functions as locations, and lines that count them from 1.
    fn take_functions_without_id(&mut self, functions: &[FunctionId]) {
        let count = functions.len();
        let is_numbered = count == self.raw.functions.len() && count == self.raw.locations.len();
        if is_numbered {
            for (position, function) in functions.iter().enumerate() {
                self.functions.insert(position as u64 + 1, function.0);
            }
        }
        let (code, text) = match functions {
            [only] => {
                self.functions.insert(0, only.0);
                let text = "functions with the reserved id 0 were taken as they are";
                ("function_id_zero", text)
            }
            _ if is_numbered => (
                "functions_numbered",
                "functions with the reserved id 0 were numbered in their order, as lines count them",
            ),
            _ => (
                "functions_left_out",
                "functions with the reserved id 0 were left out: which one a line means is not known",
            ),
        };
        self.report.note_many(code, text, count as u64);
    }

    fn read_locations(&mut self) -> Result<(), ReadError> {
        let mut lines: Vec<(FunctionId, u32, u32)> = Vec::new();
        let kernel_mappings: Vec<bool> = self
            .profile
            .symbols
            .mappings()
            .iter()
            .map(|mapping| {
                self.profile
                    .symbols
                    .strings
                    .get(mapping.file)
                    .starts_with("[kernel")
            })
            .collect();
        for position in 0..self.raw.locations.len() {
            let span = self.raw.locations[position];
            let (mut id, mut mapping, mut address) = (0, 0, 0);
            lines.clear();
            let mut reader = Reader::of(self.strings.data(), span);
            while let Some((field, value)) = reader.field().map_err(named)? {
                match (field, value) {
                    (1, Value::Varint(number)) => id = number,
                    (2, Value::Varint(number)) => mapping = number,
                    (3, Value::Varint(number)) => address = number,
                    (4, Value::Bytes(line)) => lines.extend(self.read_line(line)?),
                    (1..=4, _) => return Err(mismatch(field, span)),
                    _ => {}
                }
            }
            if id == 0 {
                return Err(corrupt("a location has the reserved id 0".to_owned(), span));
            }
            let mapping = self.mapping_id(mapping);
            let kind = if kernel_mappings[mapping.index()] {
                FrameKind::Kernel
            } else {
                FrameKind::Unknown
            };
            let location = Location::new(kind, address).in_mapping(mapping);
            let ours = self.profile.symbols.intern_location(&location, &lines);
            if !self.locations.insert(id, ours.0) {
                return Err(corrupt(format!("two locations have the id {id}"), span));
            }
        }
        Ok(())
    }

    fn mapping_id(&mut self, id: u64) -> MappingId {
        if id == 0 {
            return MappingId(0);
        }
        if let Some(ours) = self.mappings.get(id) {
            return MappingId(ours);
        }
        self.report.note(
            "mapping_unknown",
            "locations refer to mappings that do not exist; they have none now",
        );
        MappingId(0)
    }

    fn read_line(&mut self, span: Span) -> Result<Option<(FunctionId, u32, u32)>, ReadError> {
        let (mut function, mut line, mut column) = (0, 0, 0);
        let mut reader = Reader::of(self.strings.data(), span);
        while let Some((field, value)) = reader.field().map_err(named)? {
            match (field, value) {
                (1, Value::Varint(number)) => function = number,
                (2, Value::Varint(number)) => line = line_number(number),
                (3, Value::Varint(number)) => column = line_number(number),
                (1..=3, _) => return Err(mismatch(field, span)),
                _ => {}
            }
        }
        match self.functions.get(function) {
            Some(ours) if self.is_named(FunctionId(ours)) => {
                Ok(Some((FunctionId(ours), line, column)))
            }
            // Without a name the address tells more than the line.
            Some(_) => Ok(self.leave_line_out()),
            None if function == 0 => Ok(self.leave_line_out()),
            None => {
                let problem = format!("a line refers to function {function}, which does not exist");
                Err(corrupt(problem, span))
            }
        }
    }

    fn is_named(&self, function: FunctionId) -> bool {
        self.profile.symbols.function(function).name != StringId(0)
    }

    fn leave_line_out<T>(&mut self) -> Option<T> {
        self.report.note(
            "lines_without_function",
            "lines without a function's name were left out",
        );
        None
    }

    /// One empty series for each column.
    fn start_series(&mut self, options: &ReadOptions) -> Result<(), ReadError> {
        let everywhere = Span { start: 0, end: 0 };
        let mut metadata = Metadata::default();
        let mut room = MAX_COMMENT_BYTES;
        for &index in &self.raw.comments {
            let comment = self.strings.text(index, everywhere)?;
            if metadata.take(&comment) {
                continue;
            }
            // Comments are numbers of texts: a thousand of them may name one of the longest.
            if comment.len() > room {
                let text = "comments above a megabyte were left out";
                self.report.note("comments_too_long", text);
                continue;
            }
            room -= comment.len();
            self.report.comments.push(comment.into_owned());
        }
        if self.raw.default_sample_type != 0 {
            let text = self
                .strings
                .text(self.raw.default_sample_type, everywhere)?;
            self.report.default_sample_type = Some(text.into_owned());
        }
        if metadata.types.len() != self.raw.sample_types.len() {
            metadata.types = self.types_by_columns(options)?;
        }
        let labels = options.series_labels(metadata.labels);
        let (start_ns, duration_ns) = self.window(options.now_ns);
        for profile_type in metadata.types {
            self.profile.series.push(ProfileSeries {
                labels: labels.clone(),
                profile_type,
                start_ns,
                duration_ns,
                period: self.raw.period,
                samples: Vec::new(),
            });
        }
        Ok(())
    }

    fn types_by_columns(&mut self, options: &ReadOptions) -> Result<Vec<ProfileType>, ReadError> {
        let everywhere = Span { start: 0, end: 0 };
        let strings = &mut self.strings;
        let mut texts = |raw: RawValueType| {
            let kind = strings.text(raw.kind, everywhere)?;
            let unit = strings.text(raw.unit, everywhere)?;
            Ok::<_, ReadError>((kind, unit))
        };
        let period = texts(self.raw.period_type)?;
        let mut types = Vec::with_capacity(self.raw.sample_types.len());
        for &raw in &self.raw.sample_types {
            let sample = texts(raw)?;
            types.push(naming::profile_type(
                (&sample.0, &sample.1),
                (&period.0, &period.1),
                options.profile_name.as_deref(),
            ));
        }
        Ok(types)
    }

    fn window(&mut self, now_ns: i64) -> (i64, i64) {
        let (start, duration) = (self.raw.time_nanos, self.raw.duration_nanos);
        let start = if start == 0 { now_ns } else { start };
        if start >= 0 && duration >= 0 && start.checked_add(duration).is_some() {
            return (start, duration);
        }
        self.report.note(
            "window_repaired",
            "a time window that is none was set to a moment",
        );
        (start.max(0), 0)
    }

    fn read_samples(&mut self, limits: &Limits) -> Result<(), ReadError> {
        let data = self.strings.data();
        let column_count = self.raw.sample_types.len();
        let samples = std::mem::take(&mut self.raw.samples);
        let mut rows = 0;
        let mut label_reader = LabelReader::default();
        let mut location_ids: Vec<u64> = Vec::new();
        let mut stack: Vec<LocationId> = Vec::new();
        let mut values: Vec<i64> = Vec::with_capacity(column_count);
        let mut label_spans: Vec<Span> = Vec::new();
        let mut cut_stacks = 0;
        for &span in &samples {
            location_ids.clear();
            values.clear();
            label_spans.clear();
            let mut label_range = Span { start: 0, end: 0 };
            let mut reader = Reader::of(data, span);
            loop {
                let start = reader.position() as u32;
                let Some((field, value)) = reader.field().map_err(named)? else {
                    break;
                };
                match (field, value) {
                    (1, value) => numbers(data, 1, value, |id| location_ids.push(id)),
                    (2, value) => numbers(data, 2, value, |number| values.push(number as i64)),
                    (3, Value::Bytes(label)) => {
                        if label_spans.is_empty() {
                            label_range.start = start;
                        }
                        label_range.end = label.end;
                        label_spans.push(label);
                        Ok(())
                    }
                    (3, _) => Err(error(Problem::Mismatch(3), span.start as usize)),
                    _ => Ok(()),
                }
                .map_err(named)?;
            }
            if values.len() != column_count {
                let problem = format!(
                    "a sample has {} values, the profile has {column_count} sample types",
                    values.len()
                );
                return Err(corrupt(problem, span));
            }
            if label_spans.len() > limits.max_labels_per_sample {
                return Err(ReadError::TooLarge {
                    what: "the number of labels of a sample",
                    limit: limits.max_labels_per_sample,
                });
            }
            if rows == 0 {
                // Not before a sample has shown that it has a value for each of the columns.
                let all_rows = samples.len().saturating_mul(column_count);
                let column_rows = all_rows.min(limits.max_samples) / column_count;
                for series in &mut self.profile.series {
                    series.samples.reserve(column_rows);
                }
            }
            // The leaf comes first, so what is too deep for us is cut in front: stacks stay rooted.
            let cut = location_ids.len().saturating_sub(limits.max_stack_depth);
            cut_stacks += u64::from(cut > 0);
            stack.clear();
            for &id in &location_ids[cut..] {
                let Some(location) = self.locations.get(id) else {
                    let problem = format!("a sample refers to location {id}, which does not exist");
                    return Err(corrupt(problem, span));
                };
                stack.push(LocationId(location));
            }
            let labelled = label_reader.read(
                &mut self.profile,
                &mut self.strings,
                &mut self.report,
                label_range,
                &label_spans,
            )?;
            let sample = Sample {
                stack: self.profile.stacks.intern(&stack),
                value: 0,
                label_set: labelled.label_set,
                link: labelled.link,
                time_ns: labelled.time_ns,
            };
            for (series, &value) in self.profile.series.iter_mut().zip(&values) {
                if value != 0 {
                    rows += 1;
                    series.samples.push(Sample { value, ..sample });
                }
            }
            if rows > limits.max_samples {
                return Err(ReadError::TooLarge {
                    what: "the number of values that are not 0",
                    limit: limits.max_samples,
                });
            }
        }
        self.report.note_many(
            "stacks_cut",
            "stacks deeper than the limit were cut at the leaf",
            cut_stacks,
        );
        Ok(())
    }

    fn note_what_is_lost(&mut self) {
        let report = &mut self.report;
        report.note_repaired(self.strings.repaired);
        report.note_many(
            "strings_cut",
            "strings longer than the limit were cut at their end",
            self.strings.cut,
        );
        report.note_many(
            "frame_filters",
            "drop_frames and keep_frames were not applied",
            u64::from(self.raw.has_frame_filter),
        );
        report.note_many(
            "doc_url",
            "the link to a documentation page is not kept",
            u64::from(self.raw.has_doc_url),
        );
    }
}

/// Line and column numbers are signed 64-bit in the format; nonsense counts as unknown.
fn line_number(raw: u64) -> u32 {
    u32::try_from(raw).unwrap_or(0)
}

#[cold]
fn named(error: WireError) -> ReadError {
    error.named(NAME)
}

#[cold]
fn mismatch(field: u32, span: Span) -> ReadError {
    named(error(Problem::Mismatch(field), span.start as usize))
}

#[cold]
pub(crate) fn corrupt(problem: String, span: Span) -> ReadError {
    ReadError::Corrupt {
        format: NAME,
        problem,
        offset: span.start as usize,
    }
}

fn invalid(problem: String) -> ReadError {
    ReadError::Invalid {
        format: NAME,
        problem,
    }
}
