//! The source of a function with what each of its lines took.

use std::collections::BTreeMap;

use candela_model::LocationId;
use candela_model::Profile;
use candela_model::StackId;

use super::frame_key::FrameKey;
use super::kind::Kind;

/// What a line took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LineValue {
    /// Of stacks that end in it.
    pub(crate) own: i64,
    /// Of stacks through it.
    pub(crate) total: i64,
    /// Whether it is a line of the function that was asked for.
    pub(crate) is_of_function: bool,
}

/// The picture of a function's source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceView {
    pub(crate) file: String,
    pub(crate) lines: Vec<SourceLine>,
    /// The first line that is shown.
    pub(crate) top: usize,
    /// Why there is no text.
    pub(crate) failure: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceLine {
    pub(crate) number: u32,
    pub(crate) text: String,
    pub(crate) value: LineValue,
}

// === impl SourceView ===

impl SourceView {
    /// From the text of a file and the values of its lines; without text the lines with values are there.
    pub(crate) fn new(
        file: &str,
        text: Result<String, String>,
        values: &BTreeMap<u32, LineValue>,
    ) -> Self {
        let value_of = |number| values.get(&number).copied().unwrap_or_default();
        let (texts, failure) = match text {
            Ok(text) => (Some(text), None),
            Err(reason) => (None, Some(reason)),
        };
        let lines = match &texts {
            Some(text) => (1..)
                .zip(text.lines())
                .map(|(number, line)| SourceLine {
                    number,
                    text: line.replace('\t', "    "),
                    value: value_of(number),
                })
                .collect(),
            None => values
                .iter()
                .map(|(&number, &value)| SourceLine {
                    number,
                    text: String::new(),
                    value,
                })
                .collect(),
        };
        let mut view = Self {
            file: file.to_owned(),
            lines,
            top: 0,
            failure,
        };
        let heaviest = values
            .iter()
            .max_by_key(|(_, value)| (value.is_of_function, value.total));
        let number = heaviest.map_or(1, |(&number, _)| number);
        let position = view.lines.iter().position(|line| line.number == number);
        view.top = position.unwrap_or(0).saturating_sub(5);
        view
    }

    pub(crate) fn step(&mut self, distance: isize) {
        let last = self.lines.len().saturating_sub(1);
        self.top = self.top.saturating_add_signed(distance).min(last);
    }
}

/// What the lines of a function's file took.
pub(crate) fn line_values(
    profile: &Profile,
    kind: Kind,
    function: &FrameKey,
) -> BTreeMap<u32, LineValue> {
    let mut of_stack: BTreeMap<StackId, i64> = BTreeMap::new();
    for series in &profile.series {
        if Kind::of(&series.profile_type) != Some(kind) {
            continue;
        }
        for sample in &series.samples {
            *of_stack.entry(sample.stack).or_default() += sample.value;
        }
    }
    let mut values: BTreeMap<u32, LineValue> = BTreeMap::new();
    for (stack, value) in of_stack {
        let locations = profile.stacks.get(stack);
        let mut seen: Vec<u32> = Vec::new();
        for (depth, &location) in locations.iter().enumerate() {
            for place in lines_in(profile, location, function) {
                let line = place.line;
                let entry = values.entry(line).or_default();
                entry.is_of_function |= place.is_of_function;
                if depth == 0 && place.is_innermost {
                    entry.own = entry.own.saturating_add(value);
                }
                // A line that called itself again took the time once.
                if !seen.contains(&line) {
                    entry.total = entry.total.saturating_add(value);
                    seen.push(line);
                }
            }
        }
    }
    values
}

/// A line of a location.
struct PlaceOfLine {
    line: u32,
    /// Nothing is inlined into it here.
    is_innermost: bool,
    is_of_function: bool,
}

/// The lines of a location that are in the file of a function.
fn lines_in<'a>(
    profile: &'a Profile,
    location: LocationId,
    function: &'a FrameKey,
) -> impl Iterator<Item = PlaceOfLine> + 'a {
    let symbols = &profile.symbols;
    let lines = symbols.lines(location).iter().enumerate();
    lines.filter_map(move |(inlined, line)| {
        let found = symbols.function(line.function);
        let is_in_file = symbols.strings.get(found.file) == function.file;
        is_in_file.then(|| PlaceOfLine {
            line: line.line,
            is_innermost: inlined == 0,
            is_of_function: symbols.strings.get(found.name) == function.name,
        })
    })
}
