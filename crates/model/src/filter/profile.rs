//! The same filters over a profile, where a location may stand for several functions.

use hashbrown::HashMap;

use super::Filters;
use super::TagValue;
use super::frame::FrameTexts;
use super::path::PathFrame;
use super::stage::FrameStage;
use super::stage::Walk;
use crate::ids::LabelSetId;
use crate::ids::LocationId;
use crate::ids::StackId;
use crate::profile::Profile;
use crate::symbols::SymbolTables;

impl Filters {
    /// Leaves the samples whose tags and stacks count, with the frames that are shown. Where an
    /// inlined function is taken out, its place keeps the others.
    pub fn apply_to_profile(&self, profile: &mut Profile) {
        if !self.keeps_samples() {
            self.apply_tags(profile);
        }
        self.apply_frames_to_profile(profile);
    }

    /// A label of the series hides those of samples.
    fn apply_tags(&self, profile: &mut Profile) {
        let (strings, sets) = (&profile.symbols.strings, &profile.label_sets);
        for series in &mut profile.series {
            let labels = &series.labels;
            let own = labels
                .iter()
                .map(|(key, value)| (key, TagValue::Text(value)));
            let own = self.tag_matches(own);
            let mut known: HashMap<LabelSetId, bool> = HashMap::new();
            series.samples.retain(|sample| {
                *known.entry(sample.label_set).or_insert_with(|| {
                    let of_sample = sets.get(sample.label_set).iter();
                    let of_sample = of_sample.map(|label| label.as_tag(strings));
                    let visible = of_sample.filter(|(key, _)| labels.get(key).is_none());
                    self.passes_tags(own | self.tag_matches(visible))
                })
            });
        }
    }

    /// The same for a profile of samples that were chosen by their tags before.
    pub fn apply_frames_to_profile(&self, profile: &mut Profile) {
        for (stage, collapse) in &self.before_last {
            stage.apply_to_profile(profile);
            collapse.apply_to_profile(profile);
        }
        self.last.apply_to_profile(profile);
    }
}

impl FrameStage {
    fn apply_to_profile(&self, profile: &mut Profile) {
        if self.is_empty() {
            return;
        }
        let locations = 0..profile.symbols.locations().len();
        let frames: Vec<Vec<u64>> = locations
            .map(|index| self.matches_of_lines(&profile.symbols, LocationId::from_index(index)))
            .collect();
        let mut parts = LocationParts::default();
        let stacks: Vec<Option<StackId>> = (0..profile.stacks.len())
            .map(|index| {
                self.filtered_stack(profile, StackId::from_index(index), &frames, &mut parts)
            })
            .collect();
        for series in &mut profile.series {
            series.samples.retain_mut(|sample| {
                let Some(stack) = stacks[sample.stack.index()] else {
                    return false;
                };
                sample.stack = stack;
                true
            });
        }
    }

    /// For each function at a location, innermost first, the filters that it matches.
    fn matches_of_lines(&self, symbols: &SymbolTables, location: LocationId) -> Vec<u64> {
        let lines = symbols.lines(location);
        if lines.is_empty() {
            let function = symbols.address_name(location);
            return vec![self.matches(&address_texts(symbols, location, &function))];
        }
        let bits = (0..lines.len()).map(|line| self.matches(&line_texts(symbols, location, line)));
        bits.collect()
    }

    /// `None` for a stack that does not count.
    fn filtered_stack(
        &self,
        profile: &mut Profile,
        stack: StackId,
        frames: &[Vec<u64>],
        parts: &mut LocationParts,
    ) -> Option<StackId> {
        let locations = profile.stacks.get(stack).to_vec();
        let mut walk = Walk::default();
        let mut kept_root_first: Vec<LocationId> = Vec::new();
        for &location in locations.iter().rev() {
            let matches = &frames[location.index()];
            // By line, innermost first as in the profile.
            let mut is_shown = vec![false; matches.len()];
            for (line, &bits) in matches.iter().enumerate().rev() {
                let symbols = &profile.symbols;
                let is_frame = |wanted: &PathFrame| {
                    if symbols.lines(location).is_empty() {
                        let address = symbols.address_name(location);
                        return wanted.is(&address_texts(symbols, location, &address));
                    }
                    wanted.is(&line_texts(symbols, location, line))
                };
                (walk, is_shown[line]) = self.step(walk, bits, is_frame);
            }
            if walk.is_refused() {
                return None;
            }
            kept_root_first.extend(parts.part_of(&mut profile.symbols, location, is_shown));
        }
        if !self.counts(walk) {
            return None;
        }
        kept_root_first.reverse();
        Some(profile.stacks.intern(&kept_root_first))
    }
}

/// The texts of an address without symbols.
fn address_texts<'a>(
    symbols: &'a SymbolTables,
    location: LocationId,
    function: &'a str,
) -> FrameTexts<'a> {
    let place = symbols.location(location);
    FrameTexts {
        function,
        file: "",
        start_line: 0,
        binary: symbols.strings.get(symbols.mapping(place.mapping).file),
        kind: place.kind,
    }
}

/// The texts of one of the functions at a location.
fn line_texts(symbols: &SymbolTables, location: LocationId, line: usize) -> FrameTexts<'_> {
    let place = symbols.location(location);
    let function = symbols.function(symbols.lines(location)[line].function);
    let text = |id| symbols.strings.get(id);
    FrameTexts {
        function: text(function.name),
        file: text(function.file),
        start_line: function.start_line,
        binary: text(symbols.mapping(place.mapping).file),
        kind: place.kind,
    }
}

/// Locations with some of their lines taken out.
#[derive(Debug, Default)]
pub(super) struct LocationParts {
    known: HashMap<(LocationId, Vec<bool>), LocationId>,
}

impl LocationParts {
    /// The location with the lines that are shown; `None` when it has none of them.
    pub(super) fn part_of(
        &mut self,
        symbols: &mut SymbolTables,
        location: LocationId,
        is_shown: Vec<bool>,
    ) -> Option<LocationId> {
        if is_shown.iter().all(|&shown| shown) {
            return Some(location);
        }
        if !is_shown.contains(&true) {
            return None;
        }
        if let Some(&known) = self.known.get(&(location, is_shown.clone())) {
            return Some(known);
        }
        let lines = symbols.lines(location).iter().zip(&is_shown);
        let lines: Vec<_> = lines
            .filter(|(_, shown)| **shown)
            .map(|(line, _)| (line.function, line.line, line.column))
            .collect();
        let place = *symbols.location(location);
        let part = symbols.intern_location(&place, &lines);
        self.known.insert((location, is_shown), part);
        Some(part)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Filter;
    use super::super::FilterKind;
    use super::*;
    use crate::flame_builder::FlameTreeBuilder;
    use crate::flame_tree::FlameTree;
    use crate::frame_kind::FrameKind;
    use crate::labels::Labels;
    use crate::profile::ProfileSeries;
    use crate::profile::Sample;
    use crate::profile_type::ProfileType;
    use crate::symbols::Location;
    use proptest::prelude::*;

    /// Each location is a list of functions, innermost first; a stack is a list of locations, leaf
    /// first.
    fn profile(stacks: &[(Vec<Vec<u8>>, i64)]) -> Profile {
        let mut profile = Profile::default();
        let cpu = ProfileType::new("process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds");
        let labels = Labels::from_pairs([("service_name", "x")]);
        let mut series = ProfileSeries::new(labels, cpu);
        for (locations, value) in stacks {
            let symbols = &mut profile.symbols;
            let ids: Vec<LocationId> = locations
                .iter()
                .map(|functions| {
                    let lines: Vec<_> = functions
                        .iter()
                        .map(|name| (symbols.intern_function(&name.to_string(), "", "", 0), 1, 0))
                        .collect();
                    symbols.intern_location(&Location::new(FrameKind::Go, 0), &lines)
                })
                .collect();
            let stack = profile.stacks.intern(&ids);
            series.samples.push(Sample::new(stack, *value));
        }
        profile.series.push(series);
        profile
    }

    fn tree_of(profile: &Profile) -> FlameTree {
        let mut builder = FlameTreeBuilder::new();
        builder.add_series(profile, 0);
        builder.finish()
    }

    fn lines(tree: &FlameTree) -> Vec<(Vec<String>, i64)> {
        let mut lines = Vec::new();
        tree.for_each_stack(|frames, value| {
            let names = frames.iter().map(|&id| tree.frames.name(id).to_owned());
            lines.push((names.collect(), value));
        });
        lines.sort();
        lines
    }

    proptest! {
        #[test]
        fn a_filtered_profile_has_the_filtered_tree(
            stacks in prop::collection::vec(
                (
                    prop::collection::vec(prop::collection::vec(0_u8..5, 1..3), 0..5),
                    1_i64..9,
                ),
                0..20,
            ),
            filters in prop::collection::vec(
                (prop::sample::select(super::super::tests::FRAME_FILTERS.to_vec()), 0_u8..5),
                0..4,
            ),
            path in prop::collection::vec(0_u8..5, 0..3),
        ) {
            let filters_of_frames = filters
                .iter()
                .map(|(kind, name)| Filter::new(*kind, &super::super::tests::text_of(*kind, *name)).expect("a pattern"));
            let filters_of_path = path
                .iter()
                .map(|name| Filter::new(FilterKind::Path, &name.to_string()).expect("a name"));
            let chain = filters_of_frames.chain(filters_of_path).collect();
            let chain = Filters::new(chain).expect("few");
            let mut profile = profile(&stacks);
            let expected = lines(&chain.apply(tree_of(&profile)));
            chain.apply_to_profile(&mut profile);
            prop_assert_eq!(lines(&tree_of(&profile)), expected);
            prop_assert_eq!(profile.validate(), Ok(()));
        }
    }
}
