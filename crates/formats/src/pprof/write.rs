//! A profile to pprof bytes.

use std::io::Write;

use candela_model::FunctionId;
use candela_model::LabelValue;
use candela_model::Line;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::Profile;
use candela_model::StringId;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::error::WriteError;
use crate::hex::hex;
use crate::pprof::SPAN_ID_LABEL;
use crate::pprof::TIME_LABEL;
use crate::pprof::TRACE_ID_LABEL;
use crate::pprof::rows::Columns;
use crate::pprof::rows::Row;
use crate::protobuf::writer::Message;
use crate::report::Report;

/// How to write pprof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PprofOptions {
    /// Compress with gzip, as every reader expects of `.pb.gz`.
    pub compress: bool,
    /// Write the time of each sample as the label `timestamp_ns`. Without it samples of equal
    /// stack and labels are added up, which is what most tools want.
    pub keep_times: bool,
    /// Free text to carry along.
    pub comments: Vec<String>,
    /// The sample type that tools show first.
    pub default_sample_type: Option<String>,
}

impl Default for PprofOptions {
    fn default() -> Self {
        Self {
            compress: true,
            keep_times: false,
            comments: Vec::new(),
            default_sample_type: None,
        }
    }
}

/// Writes all series as value columns of one pprof profile; equal profiles give equal bytes.
///
/// Samples of several series join where stack, labels and link are equal. Labels that all series
/// share go to comments that [`read_pprof`](crate::read_pprof) understands, those that tell series
/// apart become sample labels; trace and span ids become the labels `trace_id` and `span_id`.
///
/// # Errors
/// When the sink fails, there is no series, or the profile is not valid.
pub fn write_pprof(
    profile: &Profile,
    output: impl Write,
    options: &PprofOptions,
) -> Result<Report, WriteError> {
    profile.validate()?;
    if profile.series.is_empty() {
        return Err(WriteError::Empty);
    }
    write_valid(profile, output, options)
}

/// The same for a profile that was checked.
pub(crate) fn write_valid(
    profile: &Profile,
    mut output: impl Write,
    options: &PprofOptions,
) -> Result<Report, WriteError> {
    let mut report = Report::default();
    let columns = Columns::of(profile, &mut report);
    let rows = columns.rows(profile, options.keep_times);
    let mut writer = Writer::new(profile);
    for row in &rows {
        writer.sample(row, &columns);
    }
    let bytes = writer.finish(&columns, options);
    if !options.compress {
        output.write_all(&bytes)?;
        return Ok(report);
    }
    let mut encoder = GzEncoder::new(output, Compression::new(6));
    encoder.write_all(&bytes)?;
    encoder.finish()?.flush()?;
    Ok(report)
}

/// Numbers in the file are handed out by first use, so that what is not used is not written.
struct Numbering {
    number_of: Vec<u64>,
    used: Vec<usize>,
}

struct Writer<'a> {
    profile: &'a Profile,
    body: Message,
    message: Message,
    nested: Message,
    scratch: Message,
    strings: Vec<&'a str>,
    /// Position in `strings` of each string of the profile that is used.
    string_numbers: Vec<u64>,
    extra_strings: hashbrown::HashMap<String, u64>,
    extra_texts: Vec<(u64, String)>,
    locations: Numbering,
    functions: Numbering,
    is_mapping_used: Vec<bool>,
    /// Whether a mapping has a location without lines: tools would symbolize it again.
    has_unnamed: Vec<bool>,
}

impl Numbering {
    fn new(count: usize) -> Self {
        Self {
            number_of: vec![0; count],
            used: Vec::new(),
        }
    }

    /// The number of the entry at `index`, counted from 1.
    #[inline]
    fn number(&mut self, index: usize) -> u64 {
        if self.number_of[index] == 0 {
            self.used.push(index);
            self.number_of[index] = self.used.len() as u64;
        }
        self.number_of[index]
    }
}

impl<'a> Writer<'a> {
    fn new(profile: &'a Profile) -> Self {
        let symbols = &profile.symbols;
        Self {
            profile,
            body: Message::default(),
            message: Message::default(),
            nested: Message::default(),
            scratch: Message::default(),
            strings: vec![""],
            string_numbers: vec![0; symbols.strings.len()],
            extra_strings: hashbrown::HashMap::new(),
            extra_texts: Vec::new(),
            locations: Numbering::new(symbols.locations().len()),
            functions: Numbering::new(symbols.functions().len()),
            is_mapping_used: vec![false; symbols.mappings().len()],
            has_unnamed: vec![false; symbols.mappings().len()],
        }
    }

    fn sample(&mut self, row: &Row, columns: &Columns) {
        let profile = self.profile;
        let mut sample = std::mem::take(&mut self.message);
        sample.bytes.clear();
        let stack = profile.stacks.get(row.key.stack);
        if !stack.is_empty() {
            let locations = &mut self.locations;
            let numbers = stack
                .iter()
                .map(|location| locations.number(location.index()));
            sample.packed(1, numbers, &mut self.scratch);
        }
        let values = row.values.iter().map(|&value| value as u64);
        sample.packed(2, values, &mut self.scratch);
        self.labels(&mut sample, row, columns);
        self.body.bytes(2, &sample.bytes);
        self.message = sample;
    }

    fn labels(&mut self, sample: &mut Message, row: &Row, columns: &Columns) {
        let profile = self.profile;
        let own = &columns.distinct_labels[row.key.labels as usize];
        for label in profile.label_sets.get(row.key.label_set) {
            let name = profile.symbols.strings.get(label.key);
            if own.get(name).is_some() {
                continue;
            }
            let key = self.string(label.key);
            match label.value {
                LabelValue::Text(text) => {
                    let text = self.string(text);
                    self.text_label(sample, key, text);
                }
                LabelValue::Number { value, unit } => {
                    let unit = self.string(unit);
                    self.number_label(sample, key, value, unit);
                }
            }
        }
        for (name, value) in own.iter() {
            let (key, text) = (self.extra_string(name), self.extra_string(value));
            self.text_label(sample, key, text);
        }
        let link = profile.links[row.key.link.index()];
        if link.trace_id != [0; 16] {
            let text = self.extra_string(&hex(&link.trace_id));
            let key = self.extra_string(TRACE_ID_LABEL);
            self.text_label(sample, key, text);
        }
        if link.span_id != [0; 8] {
            let text = self.extra_string(&hex(&link.span_id));
            let key = self.extra_string(SPAN_ID_LABEL);
            self.text_label(sample, key, text);
        }
        if row.key.time_ns != 0 {
            let key = self.extra_string(TIME_LABEL);
            let unit = self.extra_string("nanoseconds");
            self.number_label(sample, key, row.key.time_ns, unit);
        }
    }

    fn text_label(&mut self, sample: &mut Message, key: u64, text: u64) {
        self.nested.bytes.clear();
        self.nested.number(1, key);
        self.nested.explicit_number(2, text);
        sample.bytes(3, &self.nested.bytes);
    }

    fn number_label(&mut self, sample: &mut Message, key: u64, value: i64, unit: u64) {
        self.nested.bytes.clear();
        self.nested.number(1, key);
        self.nested.explicit_number(3, value as u64);
        self.nested.number(4, unit);
        sample.bytes(3, &self.nested.bytes);
    }

    fn string(&mut self, id: StringId) -> u64 {
        let known = self.string_numbers[id.index()];
        if known != 0 || id == StringId(0) {
            return known;
        }
        let number = self.next_string(self.profile.symbols.strings.get(id));
        self.string_numbers[id.index()] = number;
        number
    }

    /// A string that may not be in the profile's table.
    fn extra_string(&mut self, text: &str) -> u64 {
        if let Some(id) = self.profile.symbols.strings.find(text) {
            return self.string(id);
        }
        if let Some(&number) = self.extra_strings.get(text) {
            return number;
        }
        let number = self.next_string("");
        self.extra_strings.insert(text.to_owned(), number);
        self.extra_texts.push((number, text.to_owned()));
        number
    }

    fn next_string(&mut self, text: &'a str) -> u64 {
        self.strings.push(text);
        self.strings.len() as u64 - 1
    }

    /// Writes what the samples used, then everything that names it.
    fn finish(mut self, columns: &Columns, options: &PprofOptions) -> Vec<u8> {
        self.write_locations();
        self.write_functions();
        self.write_mappings();
        for profile_type in &columns.types {
            self.value_type(1, &profile_type.sample_type, &profile_type.sample_unit);
        }
        let first = &columns.types[0];
        if !first.period_type.is_empty() {
            self.value_type(11, &first.period_type, &first.period_unit);
        }
        self.body.number(9, columns.start_ns as u64);
        self.body.number(10, columns.duration_ns as u64);
        self.body.number(12, columns.period as u64);
        let own = columns.metadata.comments();
        for comment in own.iter().chain(&options.comments) {
            let number = self.extra_string(comment);
            self.body.explicit_number(13, number);
        }
        if let Some(sample_type) = &options.default_sample_type {
            let number = self.extra_string(sample_type);
            self.body.number(14, number);
        }
        let mut texts = self.strings;
        for (number, text) in &self.extra_texts {
            texts[*number as usize] = text;
        }
        for text in texts {
            self.body.bytes(6, text.as_bytes());
        }
        self.body.bytes
    }

    fn value_type(&mut self, field: u32, kind: &str, unit: &str) {
        let (kind, unit) = (self.extra_string(kind), self.extra_string(unit));
        self.nested.bytes.clear();
        self.nested.number(1, kind);
        self.nested.number(2, unit);
        self.body.bytes(field, &self.nested.bytes);
    }

    fn write_locations(&mut self) {
        let used = std::mem::take(&mut self.locations.used);
        for (position, &index) in used.iter().enumerate() {
            let id = LocationId::from_index(index);
            let location = *self.profile.symbols.location(id);
            let lines = self.profile.symbols.lines(id);
            self.location(position as u64 + 1, &location, lines);
        }
    }

    fn location(&mut self, number: u64, location: &Location, lines: &[Line]) {
        let mapping = location.mapping.index();
        self.is_mapping_used[mapping] = true;
        self.has_unnamed[mapping] |= lines.is_empty();
        self.message.bytes.clear();
        self.message.number(1, number);
        self.message.number(2, mapping as u64);
        self.message.number(3, location.address);
        for line in lines {
            let function = self.functions.number(line.function.index());
            self.nested.bytes.clear();
            self.nested.number(1, function);
            self.nested.number(2, u64::from(line.line));
            self.nested.number(3, u64::from(line.column));
            self.message.bytes(4, &self.nested.bytes);
        }
        self.body.bytes(4, &self.message.bytes);
    }

    fn write_functions(&mut self) {
        let used = std::mem::take(&mut self.functions.used);
        for (position, &index) in used.iter().enumerate() {
            let function = *self.profile.symbols.function(FunctionId::from_index(index));
            let name = self.string(function.name);
            let system_name = match function.system_name {
                StringId(0) => name,
                other => self.string(other),
            };
            let file = self.string(function.file);
            self.message.bytes.clear();
            self.message.number(1, position as u64 + 1);
            self.message.number(2, name);
            self.message.number(3, system_name);
            self.message.number(4, file);
            self.message.number(5, u64::from(function.start_line));
            self.body.bytes(5, &self.message.bytes);
        }
    }

    /// Mappings keep their order: tools take the first for the main binary.
    fn write_mappings(&mut self) {
        for index in 1..self.is_mapping_used.len() {
            if !self.is_mapping_used[index] {
                continue;
            }
            let mapping = self.profile.symbols.mappings()[index];
            let (file, build_id) = (self.string(mapping.file), self.string(mapping.build_id));
            let is_symbolized = u64::from(!self.has_unnamed[index]);
            self.message.bytes.clear();
            self.message.number(1, index as u64);
            self.message.number(2, mapping.memory_start);
            self.message.number(3, mapping.memory_limit);
            self.message.number(4, mapping.file_offset);
            self.message.number(5, file);
            self.message.number(6, build_id);
            // has_functions, has_filenames, has_line_numbers, has_inline_frames
            for field in 7..=10 {
                self.message.number(field, is_symbolized);
            }
            self.body.bytes(3, &self.message.bytes);
        }
    }
}
