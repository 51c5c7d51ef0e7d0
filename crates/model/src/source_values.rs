//! What the source lines of a function have of a profile.

use hashbrown::HashMap;

use crate::frame_kind::FrameKind;
use crate::ids::LocationId;
use crate::ids::MappingId;
use crate::ids::StackId;
use crate::ids::StringId;
use crate::profile::Profile;
use crate::profile_type::ProfileType;
use crate::symbols::Mapping;

/// Which code is asked for. What is `None` is left open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceQuestion {
    /// The exact name of a function; without it all functions of the file.
    pub function: Option<String>,
    /// The source file, as the symbols name it.
    pub file: Option<String>,
    /// Path of the mapped file.
    pub binary: Option<String>,
}

/// What was spent somewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodeValue {
    /// In the code itself.
    pub self_value: i64,
    /// With everything it called. A stack that is there several times counts once.
    pub total: i64,
}

/// The code that was asked for, as far as it is in one file of one binary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourcePlace {
    /// The source file; empty when unknown.
    pub file: String,
    /// Path of the mapped file; empty when unknown.
    pub binary: String,
    /// Build ids of that binary, those with the largest total first. None is empty.
    pub build_ids: Vec<String>,
    /// The kind of code.
    pub kind: FrameKind,
    /// First line of the first function; 0 when unknown.
    pub start_line: u32,
    /// All of it.
    pub value: CodeValue,
    /// By line, in their order. Self values of lines and [`unknown`](Self::unknown) add up to that of
    /// the place; totals do not, where a function calls itself.
    pub lines: Vec<(u32, CodeValue)>,
    /// What has no line.
    pub unknown: CodeValue,
    /// The same by position, which is finer where symbols tell columns.
    pub positions: Vec<CodePosition>,
    /// Addresses that stand for it.
    pub addresses: Vec<CodeAddress>,
}

/// A position in the source, in one build of a binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodePosition {
    /// The build; empty when unknown.
    pub build_id: String,
    /// 0 when unknown.
    pub line: u32,
    /// 0 when unknown.
    pub column: u32,
    /// What was spent there.
    pub value: CodeValue,
}

/// An address of a profile. Where profiles keep one for each line alone it is one of many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeAddress {
    /// Its mapping; the strings are those of the profile.
    pub mapping: Mapping,
    /// In the address space of the mapping.
    pub address: u64,
    /// What was spent there.
    pub value: CodeValue,
}

/// The file and the binary of a place.
type PlaceKey = (StringId, StringId);

/// A frame of the code in question.
#[derive(Clone, Copy, Debug)]
struct Hit {
    place: usize,
    line: usize,
    position: usize,
    address: usize,
    /// Whether nothing is inlined into it here.
    is_innermost: bool,
}

/// Values by key. A stack adds to a total once, whatever it passes through.
#[derive(Debug)]
struct Cells<K> {
    numbers: HashMap<K, usize>,
    keys: Vec<K>,
    values: Vec<CodeValue>,
    /// The latest stack that was added to each.
    seen: Vec<u32>,
}

#[derive(Debug)]
struct Collector<'a> {
    profile: &'a Profile,
    question: &'a SourceQuestion,
    places: Cells<PlaceKey>,
    kinds: Vec<FrameKind>,
    start_lines: Vec<u32>,
    lines: Cells<(usize, u32)>,
    positions: Cells<(usize, StringId, u32, u32)>,
    addresses: Cells<(usize, MappingId, u64)>,
    hits: HashMap<LocationId, Vec<Hit>>,
}

impl Profile {
    /// What the lines of some code have of all series of a type, by file and binary, the largest
    /// total first.
    #[must_use]
    pub fn source_values(
        &self,
        profile_type: &ProfileType,
        question: &SourceQuestion,
    ) -> Vec<SourcePlace> {
        let mut by_stack: HashMap<StackId, i64> = HashMap::new();
        let series = self.series.iter();
        for series in series.filter(|series| series.profile_type == *profile_type) {
            for sample in &series.samples {
                let sum = by_stack.entry(sample.stack).or_default();
                *sum = sum.saturating_add(sample.value);
            }
        }
        let mut collector = Collector::new(self, question);
        for (number, (stack, value)) in (1..).zip(by_stack) {
            collector.add_stack(number, stack, value);
        }
        collector.finish()
    }
}

impl SourceQuestion {
    /// The same in whatever file and binary, where a function is asked for: who asks for one of its
    /// files has to know of the others.
    #[must_use]
    pub fn everywhere(&self) -> Self {
        Self {
            function: self.function.clone(),
            file: self.file.clone().filter(|_| self.function.is_none()),
            binary: None,
        }
    }

    /// The first of these places that is in the file and the binary in question.
    #[must_use]
    pub fn choose<'a>(&self, places: &'a [SourcePlace]) -> Option<&'a SourcePlace> {
        places
            .iter()
            .find(|place| wants(&self.file, &place.file) && wants(&self.binary, &place.binary))
    }
}

fn wants(wanted: &Option<String>, given: &str) -> bool {
    wanted.as_deref().is_none_or(|wanted| wanted == given)
}

impl SourcePlace {
    /// The line with the largest total, then the largest self value, then the first.
    #[must_use]
    pub fn hottest_line(&self) -> Option<u32> {
        let weight =
            |value: &CodeValue| (value.total.unsigned_abs(), value.self_value.unsigned_abs());
        let lines = self.lines.iter().rev();
        let hottest = lines.max_by_key(|(_, value)| weight(value));
        hottest.map(|&(line, _)| line)
    }
}

impl<'a> Collector<'a> {
    fn new(profile: &'a Profile, question: &'a SourceQuestion) -> Self {
        Self {
            profile,
            question,
            places: Cells::new(),
            kinds: Vec::new(),
            start_lines: Vec::new(),
            lines: Cells::new(),
            positions: Cells::new(),
            addresses: Cells::new(),
            hits: HashMap::new(),
        }
    }

    /// Stacks are numbered from 1 on.
    fn add_stack(&mut self, number: u32, stack: StackId, value: i64) {
        let profile = self.profile;
        for (depth, &location) in profile.stacks.get(stack).iter().enumerate() {
            let hits = match self.hits.remove(&location) {
                Some(known) => known,
                None => self.hits_of(location),
            };
            for hit in &hits {
                let is_leaf = depth == 0 && hit.is_innermost;
                self.places.add(hit.place, number, value, is_leaf);
                self.lines.add(hit.line, number, value, is_leaf);
                self.positions.add(hit.position, number, value, is_leaf);
                self.addresses.add(hit.address, number, value, is_leaf);
            }
            self.hits.insert(location, hits);
        }
    }

    fn hits_of(&mut self, id: LocationId) -> Vec<Hit> {
        let symbols = &self.profile.symbols;
        let location = *symbols.location(id);
        let mapping = *symbols.mapping(location.mapping);
        let text = |id| symbols.strings.get(id);
        if !wants(&self.question.binary, text(mapping.file)) {
            return Vec::new();
        }
        // File, first line, line and column of each function here, innermost first.
        let mut found: Vec<(StringId, u32, u32, u32, bool)> = Vec::new();
        if symbols.lines(id).is_empty() {
            let is_wanted = wants(&self.question.file, "")
                && wants(&self.question.function, &symbols.address_name(id));
            if is_wanted {
                found.push((StringId::default(), 0, 0, 0, true));
            }
        }
        for (depth, line) in symbols.lines(id).iter().enumerate() {
            let function = symbols.function(line.function);
            let is_wanted = wants(&self.question.function, text(function.name))
                && wants(&self.question.file, text(function.file));
            if is_wanted {
                let first_line = function.start_line;
                found.push((
                    function.file,
                    first_line,
                    line.line,
                    line.column,
                    depth == 0,
                ));
            }
        }
        let hits = found.into_iter();
        hits.map(|(file, start_line, line, column, is_innermost)| {
            let place = self.place(file, mapping.file, location.kind, start_line);
            Hit {
                place,
                line: self.lines.number((place, line)),
                position: self
                    .positions
                    .number((place, mapping.build_id, line, column)),
                address: self
                    .addresses
                    .number((place, location.mapping, location.address)),
                is_innermost,
            }
        })
        .collect()
    }

    fn place(&mut self, file: StringId, binary: StringId, kind: FrameKind, line: u32) -> usize {
        let place = self.places.number((file, binary));
        if place == self.kinds.len() {
            self.kinds.push(kind);
            self.start_lines.push(0);
        }
        let first = &mut self.start_lines[place];
        if line != 0 && (*first == 0 || line < *first) {
            *first = line;
        }
        place
    }

    fn finish(self) -> Vec<SourcePlace> {
        let symbols = &self.profile.symbols;
        let text = |id| symbols.strings.get(id).to_owned();
        let mut places: Vec<SourcePlace> = Vec::with_capacity(self.places.keys.len());
        for (number, (&(file, binary), &value)) in self.places.entries().enumerate() {
            places.push(SourcePlace {
                file: text(file),
                binary: text(binary),
                kind: self.kinds[number],
                start_line: self.start_lines[number],
                value,
                ..SourcePlace::default()
            });
        }
        for (&(place, line), &value) in self.lines.entries() {
            if line == 0 {
                places[place].unknown = value;
            } else {
                places[place].lines.push((line, value));
            }
        }
        for (&(place, build_id, line, column), &value) in self.positions.entries() {
            places[place].positions.push(CodePosition {
                build_id: text(build_id),
                line,
                column,
                value,
            });
        }
        for (&(place, mapping, address), &value) in self.addresses.entries() {
            places[place].addresses.push(CodeAddress {
                mapping: *symbols.mapping(mapping),
                address,
                value,
            });
        }
        for place in &mut places {
            place.put_in_order();
        }
        places.retain(|place| place.value != CodeValue::default());
        places.sort_by(|left, right| {
            let by_value = right.value.total.cmp(&left.value.total);
            by_value.then_with(|| (&left.file, &left.binary).cmp(&(&right.file, &right.binary)))
        });
        places
    }
}

impl SourcePlace {
    fn put_in_order(&mut self) {
        self.lines.sort_unstable_by_key(|&(line, _)| line);
        self.positions.sort_by(|left, right| {
            let key = |at: &CodePosition| (at.line, at.column);
            key(left)
                .cmp(&key(right))
                .then_with(|| left.build_id.cmp(&right.build_id))
        });
        self.addresses
            .sort_unstable_by_key(|at| (at.mapping.build_id, at.address));
        let mut totals: HashMap<&str, i64> = HashMap::new();
        for at in self.positions.iter().filter(|at| !at.build_id.is_empty()) {
            let total = totals.entry(&at.build_id).or_default();
            *total = total.saturating_add(at.value.total);
        }
        let mut totals: Vec<(&str, i64)> = totals.into_iter().collect();
        totals.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(right.0)));
        self.build_ids = totals.into_iter().map(|(id, _)| id.to_owned()).collect();
    }
}

impl<K: Copy + Eq + std::hash::Hash> Cells<K> {
    fn new() -> Self {
        Self {
            numbers: HashMap::new(),
            keys: Vec::new(),
            values: Vec::new(),
            seen: Vec::new(),
        }
    }

    fn number(&mut self, key: K) -> usize {
        let next = self.keys.len();
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.keys.push(key);
            self.values.push(CodeValue::default());
            self.seen.push(0);
        }
        number
    }

    fn add(&mut self, number: usize, stack: u32, value: i64, is_leaf: bool) {
        let cell = &mut self.values[number];
        if is_leaf {
            cell.self_value = cell.self_value.saturating_add(value);
        }
        if std::mem::replace(&mut self.seen[number], stack) != stack {
            cell.total = cell.total.saturating_add(value);
        }
    }

    fn entries(&self) -> impl Iterator<Item = (&K, &CodeValue)> {
        self.keys.iter().zip(&self.values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flame_builder::FlameTreeBuilder;
    use crate::labels::Labels;
    use crate::profile::ProfileSeries;
    use crate::profile::Sample;
    use crate::symbols::Location;
    use proptest::prelude::*;

    fn cpu() -> ProfileType {
        ProfileType::new("process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds")
    }

    /// Frames are functions at lines; each location is a list of them, innermost first.
    type Frames = Vec<(u8, u32)>;

    fn profile(stacks: &[(Vec<Frames>, i64)]) -> Profile {
        let mut profile = Profile::default();
        let mut series = ProfileSeries::new(Labels::default(), cpu());
        for (locations, value) in stacks {
            let symbols = &mut profile.symbols;
            let ids: Vec<LocationId> = locations
                .iter()
                .enumerate()
                .map(|(address, frames)| {
                    let lines: Vec<_> = frames
                        .iter()
                        .map(|&(name, line)| {
                            let file = format!("{}.c", name % 2);
                            (
                                symbols.intern_function(&format!("f{name}"), "", &file, 1),
                                line,
                                0,
                            )
                        })
                        .collect();
                    symbols
                        .intern_location(&Location::new(FrameKind::Native, address as u64), &lines)
                })
                .collect();
            let stack = profile.stacks.intern(&ids);
            series.samples.push(Sample::new(stack, *value));
        }
        profile.series.push(series);
        profile
    }

    fn of_function(name: &str) -> SourceQuestion {
        SourceQuestion {
            function: Some(name.to_owned()),
            ..SourceQuestion::default()
        }
    }

    fn value(self_value: i64, total: i64) -> CodeValue {
        CodeValue { self_value, total }
    }

    #[test]
    fn recursion_counts_once_in_each_line_and_in_the_function() {
        let profile = profile(&[
            (
                vec![vec![(1, 7)], vec![(1, 9)], vec![(1, 9)], vec![(0, 3)]],
                10,
            ),
            (vec![vec![(2, 0)], vec![(1, 9)], vec![(0, 3)]], 5),
        ]);
        let places = profile.source_values(&cpu(), &of_function("f1"));
        assert_eq!(places.len(), 1);
        assert_eq!(places[0].value, value(10, 15));
        assert_eq!(places[0].lines, [(7, value(10, 10)), (9, value(0, 15))]);
        assert_eq!(places[0].hottest_line(), Some(9));
    }

    #[test]
    fn what_has_no_line_is_told_apart() {
        let profile = profile(&[(vec![vec![(1, 0)], vec![(1, 4)]], 3)]);
        let places = profile.source_values(&cpu(), &of_function("f1"));
        assert_eq!(places[0].unknown, value(3, 3));
        assert_eq!(places[0].lines, [(4, value(0, 3))]);
    }

    #[test]
    fn a_call_that_was_inlined_has_its_own_lines() {
        let profile = profile(&[(vec![vec![(3, 20), (1, 8)]], 6)]);
        let outer = profile.source_values(&cpu(), &of_function("f1"));
        assert_eq!(outer[0].lines, [(8, value(0, 6))]);
        let inner = profile.source_values(&cpu(), &of_function("f3"));
        assert_eq!(inner[0].lines, [(20, value(6, 6))]);
        let file = SourceQuestion {
            file: Some("1.c".to_owned()),
            ..SourceQuestion::default()
        };
        let file = profile.source_values(&cpu(), &file);
        assert_eq!(file[0].value, value(6, 6));
        assert_eq!(file[0].lines, [(8, value(0, 6)), (20, value(6, 6))]);
    }

    #[test]
    fn an_address_without_symbols_is_a_function_without_lines() {
        let mut profile = Profile::default();
        let id = profile
            .symbols
            .intern_location(&Location::new(FrameKind::Native, 0x2f), &[]);
        let stack = profile.stacks.intern(&[id]);
        let mut series = ProfileSeries::new(Labels::default(), cpu());
        series.samples.push(Sample::new(stack, 4));
        profile.series.push(series);
        let places = profile.source_values(&cpu(), &of_function("0x2f"));
        assert_eq!(places[0].unknown, value(4, 4));
        assert_eq!(places[0].addresses[0].address, 0x2f);
    }

    proptest! {
        #[test]
        fn lines_add_up_to_the_table_of_functions(
            stacks in prop::collection::vec(
                (
                    prop::collection::vec(prop::collection::vec((0_u8..4, 0_u32..4), 1..3), 1..5),
                    1_i64..9,
                ),
                0..20,
            ),
        ) {
            let profile = profile(&stacks);
            let mut builder = FlameTreeBuilder::new();
            builder.add_series(&profile, 0);
            let tree = builder.finish();
            for row in tree.function_table() {
                let places = profile.source_values(&cpu(), &of_function(tree.frames.name(row.frame)));
                prop_assert_eq!(places.len(), 1);
                let place = &places[0];
                prop_assert_eq!(place.value, value(row.self_value, row.total));
                let lines = place.lines.iter().map(|(_, value)| value);
                let own: i64 = lines.clone().map(|value| value.self_value).sum();
                prop_assert_eq!(own + place.unknown.self_value, row.self_value);
                for line in lines {
                    prop_assert!(line.total <= row.total && line.self_value <= line.total);
                }
            }
        }
    }
}
