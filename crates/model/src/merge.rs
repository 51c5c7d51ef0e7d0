//! Taking one profile's content into another.

use crate::ids::FunctionId;
use crate::ids::LabelSetId;
use crate::ids::LinkId;
use crate::ids::LocationId;
use crate::ids::MappingId;
use crate::ids::StackId;
use crate::ids::StringId;
use crate::label_sets::LabelValue;
use crate::label_sets::SampleLabel;
use crate::profile::Profile;
use crate::profile::Sample;
use crate::symbols::Function;
use crate::symbols::Mapping;

/// For each id of the absorbed profile the id here.
struct Translation {
    stacks: Vec<StackId>,
    label_sets: Vec<LabelSetId>,
    links: Vec<LinkId>,
}

impl Profile {
    /// Adds all series of `other`, their symbols and stacks translated. Series are not merged:
    /// two of one label set and type with different windows stay two.
    ///
    /// `other` must be valid ([`Profile::validate`]).
    pub fn absorb(&mut self, other: &Self) {
        let translation = self.translate(other);
        for series in &other.series {
            let mut translated = series.clone();
            for sample in &mut translated.samples {
                *sample = Sample {
                    stack: translation.stacks[sample.stack.index()],
                    label_set: translation.label_sets[sample.label_set.index()],
                    link: translation.links[sample.link.index()],
                    ..*sample
                };
            }
            self.series.push(translated);
        }
    }

    fn translate(&mut self, other: &Self) -> Translation {
        let strings: Vec<StringId> = other
            .symbols
            .strings
            .iter()
            .map(|string| self.symbols.strings.intern(string))
            .collect();
        let locations = self.translate_locations(other, &strings);
        let mut scratch: Vec<LocationId> = Vec::new();
        let stacks = other
            .stacks
            .iter()
            .map(|stack| {
                scratch.clear();
                scratch.extend(stack.iter().map(|location| locations[location.index()]));
                self.stacks.intern(&scratch)
            })
            .collect();
        let label_sets = other
            .label_sets
            .iter()
            .map(|set| {
                let translated = set.iter().map(|label| translate_label(*label, &strings));
                self.label_sets.intern(translated.collect())
            })
            .collect();
        let links = other
            .links
            .iter()
            .map(|link| self.intern_link(*link))
            .collect();
        Translation {
            stacks,
            label_sets,
            links,
        }
    }

    fn translate_locations(&mut self, other: &Self, strings: &[StringId]) -> Vec<LocationId> {
        let mappings: Vec<MappingId> = other
            .symbols
            .mappings()
            .iter()
            .map(|mapping| {
                self.symbols.intern_mapping(Mapping {
                    file: strings[mapping.file.index()],
                    build_id: strings[mapping.build_id.index()],
                    ..*mapping
                })
            })
            .collect();
        let functions: Vec<FunctionId> = other
            .symbols
            .functions()
            .iter()
            .map(|function| {
                self.symbols.intern_function_ids(Function {
                    name: strings[function.name.index()],
                    system_name: strings[function.system_name.index()],
                    file: strings[function.file.index()],
                    start_line: function.start_line,
                })
            })
            .collect();
        (0..other.symbols.locations().len())
            .map(|index| {
                let id = LocationId::from_index(index);
                let location = *other.symbols.location(id);
                let lines: Vec<(FunctionId, u32, u32)> = other
                    .symbols
                    .lines(id)
                    .iter()
                    .map(|line| (functions[line.function.index()], line.line, line.column))
                    .collect();
                let mapping = mappings[location.mapping.index()];
                self.symbols
                    .intern_location(&location.in_mapping(mapping), &lines)
            })
            .collect()
    }
}

fn translate_label(label: SampleLabel, strings: &[StringId]) -> SampleLabel {
    let value = match label.value {
        LabelValue::Text(text) => LabelValue::Text(strings[text.index()]),
        LabelValue::Number { value, unit } => LabelValue::Number {
            value,
            unit: strings[unit.index()],
        },
    };
    SampleLabel {
        key: strings[label.key.index()],
        value,
    }
}

#[cfg(test)]
mod tests {
    use crate::FrameKind;
    use crate::Labels;
    use crate::Location;
    use crate::Profile;
    use crate::ProfileSeries;
    use crate::ProfileType;
    use crate::Sample;
    use crate::SampleLabel;

    fn profile(functions: &[&str]) -> Profile {
        let mut profile = Profile::default();
        let locations: Vec<_> = functions
            .iter()
            .map(|name| {
                let function = profile.symbols.intern_function(name, "", "f.c", 1);
                let location = Location::new(FrameKind::Native, 0);
                profile
                    .symbols
                    .intern_location(&location, &[(function, 3, 0)])
            })
            .collect();
        let stack = profile.stacks.intern(&locations);
        let key = profile.symbols.strings.intern("thread_name");
        let value = profile.symbols.strings.intern(functions[0]);
        let label_set = profile
            .label_sets
            .intern(vec![SampleLabel::text(key, value)]);
        let profile_type =
            ProfileType::new("process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds");
        let mut series = ProfileSeries::new(Labels::default(), profile_type);
        series.samples.push(Sample {
            label_set,
            ..Sample::new(stack, 5)
        });
        profile.series.push(series);
        profile
    }

    #[test]
    fn absorbed_samples_keep_their_names() {
        let mut merged = profile(&["leaf", "root"]);
        merged.absorb(&profile(&["other", "root"]));
        assert_eq!(merged.validate(), Ok(()));
        assert_eq!(merged.series.len(), 2);
        let sample = merged.series[1].samples[0];
        let names: Vec<&str> = merged
            .stacks
            .get(sample.stack)
            .iter()
            .map(|&location| {
                let function = merged.symbols.lines(location)[0].function;
                merged
                    .symbols
                    .strings
                    .get(merged.symbols.function(function).name)
            })
            .collect();
        assert_eq!(names, ["other", "root"]);
        let label = merged.label_sets.get(sample.label_set)[0];
        assert_eq!(merged.symbols.strings.get(label.key), "thread_name");
    }

    #[test]
    fn absorbing_the_same_again_adds_no_symbols() {
        let mut merged = profile(&["leaf", "root"]);
        let before = merged.symbols.locations().len();
        merged.absorb(&profile(&["leaf", "root"]));
        assert_eq!(merged.symbols.locations().len(), before);
    }
}
