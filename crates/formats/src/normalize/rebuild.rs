//! The same samples over tables that hold what they need and nothing else.

use std::borrow::Cow;

use candela_model::Function;
use candela_model::FunctionId;
use candela_model::LabelSetId;
use candela_model::LabelValue;
use candela_model::Link;
use candela_model::LinkId;
use candela_model::LocationId;
use candela_model::Mapping;
use candela_model::MappingId;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use candela_model::SampleLabel;
use candela_model::StackId;
use candela_model::StringId;
use hashbrown::HashMap;

use crate::normalize::go_stacks::Callers;
use crate::normalize::names::Names;

/// What became of the names of functions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Renamed {
    /// Those that got another name.
    pub(crate) functions: u64,
    /// Those that were not looked at, as the names of others took the bytes there are.
    pub(crate) functions_beyond: u64,
}

/// A copy with other names of functions and with other stacks in the place of some.
pub(crate) fn rebuilt(
    profile: &Profile,
    names: Names,
    mended: &HashMap<StackId, Callers>,
) -> (Profile, Renamed) {
    let mut copy = Copy {
        from: profile,
        to: Profile::default(),
        names,
        renamed: Renamed::default(),
        strings: vec![None; profile.symbols.strings.len()],
        functions: vec![None; profile.symbols.functions().len()],
        mappings: vec![None; profile.symbols.mappings().len()],
        locations: vec![None; profile.symbols.locations().len()],
        stacks: vec![None; profile.stacks.len()],
        label_sets: vec![None; profile.label_sets.len()],
        links: vec![None; profile.links.len()],
    };
    for series in &profile.series {
        let samples = series.samples.iter().map(|sample| Sample {
            stack: copy.stack(sample.stack, mended),
            label_set: copy.label_set(sample.label_set),
            link: copy.link(sample.link),
            ..*sample
        });
        let series = ProfileSeries {
            samples: samples.collect(),
            labels: series.labels.clone(),
            profile_type: series.profile_type.clone(),
            ..*series
        };
        copy.to.series.push(series);
    }
    (copy.to, copy.renamed)
}

struct Copy<'a> {
    from: &'a Profile,
    to: Profile,
    names: Names,
    renamed: Renamed,
    strings: Vec<Option<StringId>>,
    functions: Vec<Option<FunctionId>>,
    mappings: Vec<Option<MappingId>>,
    locations: Vec<Option<LocationId>>,
    stacks: Vec<Option<StackId>>,
    label_sets: Vec<Option<LabelSetId>>,
    links: Vec<Option<LinkId>>,
}

impl Copy<'_> {
    fn string(&mut self, id: StringId) -> StringId {
        if let Some(known) = self.strings[id.index()] {
            return known;
        }
        let text = self.from.symbols.strings.get(id);
        let copied = self.to.symbols.strings.intern(text);
        self.strings[id.index()] = Some(copied);
        copied
    }

    fn function(&mut self, id: FunctionId) -> FunctionId {
        if let Some(known) = self.functions[id.index()] {
            return known;
        }
        let symbols = &self.from.symbols;
        let function = *symbols.function(id);
        let name = match self.names.name(id, symbols) {
            Cow::Borrowed(_) => self.string(function.name),
            Cow::Owned(other) => {
                let is_other = other != symbols.strings.get(function.name);
                self.renamed.functions += u64::from(is_other);
                self.to.symbols.strings.intern(&other)
            }
        };
        self.renamed.functions_beyond += u64::from(self.names.is_beyond(id, symbols));
        let copied = Function {
            name,
            system_name: self.string(function.system_name),
            file: self.string(function.file),
            ..function
        };
        let copied = self.to.symbols.intern_function_ids(copied);
        self.functions[id.index()] = Some(copied);
        copied
    }

    fn mapping(&mut self, id: MappingId) -> MappingId {
        if let Some(known) = self.mappings[id.index()] {
            return known;
        }
        let mapping = *self.from.symbols.mapping(id);
        let copied = Mapping {
            file: self.string(mapping.file),
            build_id: self.string(mapping.build_id),
            ..mapping
        };
        let copied = self.to.symbols.intern_mapping(copied);
        self.mappings[id.index()] = Some(copied);
        copied
    }

    fn location(&mut self, id: LocationId) -> LocationId {
        if let Some(known) = self.locations[id.index()] {
            return known;
        }
        let location = *self.from.symbols.location(id);
        let mapping = self.mapping(location.mapping);
        let mut lines = Vec::new();
        for line in self.from.symbols.lines(id) {
            lines.push((self.function(line.function), line.line, line.column));
        }
        let location = location.in_mapping(mapping);
        let copied = self.to.symbols.intern_location(&location, &lines);
        self.locations[id.index()] = Some(copied);
        copied
    }

    fn stack(&mut self, id: StackId, mended: &HashMap<StackId, Callers>) -> StackId {
        if let Some(known) = self.stacks[id.index()] {
            return known;
        }
        let from = self.from;
        let callers = mended.get(&id).map(|callers| callers.of(from));
        let stack = from.stacks.get(id).iter().chain(callers.unwrap_or(&[]));
        let stack: Vec<LocationId> = stack.map(|&id| self.location(id)).collect();
        let copied = self.to.stacks.intern(&stack);
        self.stacks[id.index()] = Some(copied);
        copied
    }

    fn label_set(&mut self, id: LabelSetId) -> LabelSetId {
        if let Some(known) = self.label_sets[id.index()] {
            return known;
        }
        let from = self.from;
        let labels = from.label_sets.get(id).iter().map(|label| SampleLabel {
            key: self.string(label.key),
            value: match label.value {
                LabelValue::Text(text) => LabelValue::Text(self.string(text)),
                LabelValue::Number { value, unit } => LabelValue::Number {
                    value,
                    unit: self.string(unit),
                },
            },
        });
        let labels: Vec<SampleLabel> = labels.collect();
        let copied = self.to.label_sets.intern(labels);
        self.label_sets[id.index()] = Some(copied);
        copied
    }

    fn link(&mut self, id: LinkId) -> LinkId {
        if let Some(known) = self.links[id.index()] {
            return known;
        }
        let link: Link = self.from.links[id.index()];
        let copied = self.to.intern_link(link);
        self.links[id.index()] = Some(copied);
        copied
    }
}
