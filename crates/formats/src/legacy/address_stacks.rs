//! Stacks of addresses, which get mappings and names when the whole input was read.

use candela_model::FrameKind;
use candela_model::FunctionId;
use candela_model::LabelSetId;
use candela_model::LabelValue;
use candela_model::Labels;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::MappingId;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::ProfileType;
use candela_model::Sample;
use candela_model::SampleLabel;
use candela_model::StackId;
use candela_model::StackTable;
use hashbrown::HashMap;

use crate::error::ReadError;
use crate::legacy::lines::corrupt;
use crate::legacy::memory_map::MemoryMap;
use crate::options::Limits;
use crate::options::ReadOptions;
use crate::report::Report;
use crate::work::Work;

/// Builds a profile from samples of addresses with a value for each of some profile types. Equal
/// samples are added up.
pub(crate) struct AddressStacks<'a> {
    limits: &'a Limits,
    pub(crate) report: Report,
    /// Holds strings, functions and labels; stacks and samples come at the end.
    profile: Profile,
    kind: FrameKind,
    addresses: Vec<u64>,
    positions: HashMap<u64, u32>,
    lines: HashMap<u64, Vec<FrameLine>>,
    /// Stacks of positions in `addresses`.
    stacks: StackTable,
    rows: HashMap<(StackId, LabelSetId), usize>,
    keys: Vec<(StackId, LabelSetId)>,
    /// `column_count` for each row.
    values: Vec<i64>,
    column_count: usize,
    stack: Vec<LocationId>,
    first_bad_line: Option<usize>,
    /// Pays for the frames of samples. Each takes bytes of the text where it is written down; but
    /// a line of some texts means the stack of the line before.
    work: Work,
}

/// A function with a line and a column.
pub(crate) type FrameLine = (FunctionId, u32, u32);

/// What is known of the samples as a whole.
pub(crate) struct Whole {
    /// One for each value of the samples.
    pub(crate) types: Vec<ProfileType>,
    /// In the unit of the types' period.
    pub(crate) period: i64,
    /// Nanoseconds.
    pub(crate) duration_ns: i64,
    pub(crate) memory_map: MemoryMap,
    /// Whether addresses are only the numbers of frames, which a named frame does not need.
    pub(crate) addresses_are_ids: bool,
}

impl<'a> AddressStacks<'a> {
    pub(crate) fn new(limits: &'a Limits, kind: FrameKind, column_count: usize) -> Self {
        Self {
            limits,
            report: Report::default(),
            profile: Profile::default(),
            kind,
            addresses: Vec::new(),
            positions: HashMap::new(),
            lines: HashMap::new(),
            stacks: StackTable::default(),
            rows: HashMap::new(),
            keys: Vec::new(),
            values: Vec::new(),
            column_count,
            stack: Vec::new(),
            first_bad_line: None,
            work: Work::new(limits),
        }
    }

    /// Says what code the frames are of, where that is seen late.
    pub(crate) fn set_kind(&mut self, kind: FrameKind) {
        self.kind = kind;
    }

    /// Adds a sample. There are as many values as columns; missing ones count as 0.
    pub(crate) fn add(
        &mut self,
        leaf_first: &[u64],
        label_set: LabelSetId,
        values: &[i64],
    ) -> Result<(), ReadError> {
        let too_deep = leaf_first.len().saturating_sub(self.limits.max_stack_depth);
        if too_deep > 0 {
            self.report.note(
                "stacks_cut",
                "stacks deeper than the limit were cut at the leaf",
            );
        }
        let leaf_first = leaf_first.get(too_deep..).unwrap_or(&[]);
        self.work.spend(leaf_first.len())?;
        self.stack.clear();
        for &address in leaf_first {
            let addresses = &mut self.addresses;
            let position = *self.positions.entry(address).or_insert_with(|| {
                addresses.push(address);
                u32::try_from(addresses.len() - 1).expect("inputs are capped far below")
            });
            self.stack.push(LocationId(position));
        }
        let key = (self.stacks.intern(&self.stack), label_set);
        let next = self.keys.len();
        let row = *self.rows.entry(key).or_insert(next);
        if row == next {
            if next >= self.limits.max_samples {
                return Err(ReadError::TooLarge {
                    what: "the number of samples",
                    limit: self.limits.max_samples,
                });
            }
            self.keys.push(key);
            self.values.resize(self.values.len() + self.column_count, 0);
        }
        let sums = &mut self.values[row * self.column_count..];
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum = sum.saturating_add(*value);
        }
        Ok(())
    }

    /// Gives the frame at an address its lines, innermost first. The first who says it is believed.
    pub(crate) fn name(&mut self, address: u64, lines: Vec<FrameLine>) {
        self.lines.entry(address).or_insert(lines);
    }

    /// Whether a sample has a frame at an address.
    pub(crate) fn has_address(&self, address: u64) -> bool {
        self.positions.contains_key(&address)
    }

    pub(crate) fn function(&mut self, name: &str, file: &str) -> FunctionId {
        let (name, file) = (self.cut(name), self.cut(file));
        self.profile.symbols.intern_function(name, "", file, 0)
    }

    pub(crate) fn text_label(&mut self, key: &str, value: &str) -> SampleLabel {
        let (key, value) = (self.cut(key), self.cut(value));
        let strings = &mut self.profile.symbols.strings;
        SampleLabel::text(strings.intern(key), strings.intern(value))
    }

    pub(crate) fn number_label(&mut self, key: &str, value: i64, unit: &str) -> SampleLabel {
        let strings = &mut self.profile.symbols.strings;
        let (key, unit) = (strings.intern(key), strings.intern(unit));
        SampleLabel {
            key,
            value: LabelValue::Number { value, unit },
        }
    }

    pub(crate) fn label_set(&mut self, mut labels: Vec<SampleLabel>) -> LabelSetId {
        let most = self.limits.max_labels_per_sample;
        if labels.len() > most {
            self.report.note(
                "labels_left_out",
                "labels beyond the limit of labels of a sample were left out",
            );
            labels.truncate(most);
        }
        self.profile.label_sets.intern(labels)
    }

    /// Remembers a line that is no sample where one should be.
    pub(crate) fn bad_line(&mut self, offset: usize) {
        self.first_bad_line.get_or_insert(offset);
        self.report.note(
            "lines_not_understood",
            "lines that are not of the format were left out",
        );
    }

    /// The profile with a series for each type, without samples of value 0.
    ///
    /// # Errors
    /// When there were lines and none of them was a sample.
    pub(crate) fn finish(
        mut self,
        format: &'static str,
        whole: Whole,
        options: &ReadOptions,
    ) -> Result<(Profile, Report), ReadError> {
        if let Some(offset) = self.first_bad_line
            && self.keys.is_empty()
        {
            return Err(corrupt(
                format,
                "no line is a sample, the first that is none is",
                offset,
            ));
        }
        let locations = self.locations(whole.memory_map, whole.addresses_are_ids);
        let mut stack_ids = Vec::with_capacity(self.stacks.len());
        for positions in self.stacks.iter() {
            self.stack.clear();
            let stack = positions.iter().map(|position| locations[position.index()]);
            self.stack.extend(stack);
            stack_ids.push(self.profile.stacks.intern(&self.stack));
        }
        let start_ns = options.now_ns.max(0);
        let fits = start_ns.checked_add(whole.duration_ns.max(0)).is_some();
        for (column, profile_type) in whole.types.into_iter().enumerate() {
            let labels = options.series_labels(Labels::default());
            let mut series = ProfileSeries::new(labels, profile_type);
            series.start_ns = start_ns;
            series.duration_ns = if fits { whole.duration_ns.max(0) } else { 0 };
            series.period = whole.period;
            for (row, (stack, label_set)) in self.keys.iter().enumerate() {
                let value = self.values[row * self.column_count + column];
                if value != 0 {
                    series.samples.push(Sample {
                        label_set: *label_set,
                        ..Sample::new(stack_ids[stack.index()], value)
                    });
                }
            }
            self.profile.series.push(series);
        }
        Ok((self.profile, self.report))
    }

    /// The locations of all addresses, by position.
    fn locations(&mut self, memory_map: MemoryMap, addresses_are_ids: bool) -> Vec<LocationId> {
        let symbols = &mut self.profile.symbols;
        let mappings = memory_map.mappings_of(&self.addresses, symbols);
        let locations = self.addresses.iter().zip(mappings);
        let locations = locations.map(|(&address, mapping)| {
            let lines = self.lines.get(&address).map_or(&[][..], Vec::as_slice);
            let (address, mapping) = if addresses_are_ids && !lines.is_empty() {
                (0, MappingId(0))
            } else {
                (address, mapping)
            };
            let location = Location::new(self.kind, address).in_mapping(mapping);
            symbols.intern_location(&location, lines)
        });
        locations.collect()
    }

    fn cut<'t>(&mut self, text: &'t str) -> &'t str {
        let cut = self.limits.cut(text);
        if cut.len() < text.len() {
            self.report.note(
                "strings_cut",
                "strings longer than the limit were cut at their end",
            );
        }
        cut
    }
}
