//! Folding the stacks of a profile, where a location may stand for several functions.

use hashbrown::HashMap;

use super::collapse::Collapse;
use super::collapse::Folds;
use super::profile::LocationParts;
use crate::flame_builder::location_frames;
use crate::flame_tree::FrameId;
use crate::flame_tree::FrameTable;
use crate::ids::LocationId;
use crate::ids::MappingId;
use crate::ids::StackId;
use crate::profile::Profile;
use crate::symbols::Location;
use crate::symbols::Mapping;

/// A frame that is shown, and where it comes from.
#[derive(Clone, Copy, Debug)]
struct ShownFrame {
    frame: FrameId,
    source: FrameSource,
}

#[derive(Clone, Copy, Debug)]
enum FrameSource {
    /// One of the functions at a location: the position in the stack, and among the lines, innermost
    /// first.
    Line { position: usize, line: usize },
    /// It stands for others.
    Group,
}

/// What stacks are folded with.
struct ProfileFolds {
    frames: FrameTable,
    folds: Folds,
    /// The frames of each location, outermost first.
    of_location: Vec<Vec<FrameId>>,
    parts: LocationParts,
    groups: HashMap<FrameId, LocationId>,
}

impl Collapse {
    /// Folds the frames of all samples. Where an inlined function is folded into another one, its
    /// place keeps the others.
    pub(super) fn apply_to_profile(&self, profile: &mut Profile) {
        let mut frames = FrameTable::default();
        let locations = 0..profile.symbols.locations().len();
        let of_location = locations
            .map(|index| location_frames(&mut frames, profile, LocationId::from_index(index)))
            .collect();
        let folds = self.folds(&mut frames);
        let mut profile_folds = ProfileFolds {
            frames,
            folds,
            of_location,
            parts: LocationParts::default(),
            groups: HashMap::new(),
        };
        let stacks: Vec<StackId> = (0..profile.stacks.len())
            .map(|index| profile_folds.folded(profile, StackId::from_index(index)))
            .collect();
        for series in &mut profile.series {
            for sample in &mut series.samples {
                sample.stack = stacks[sample.stack.index()];
            }
        }
    }
}

impl ProfileFolds {
    fn folded(&mut self, profile: &mut Profile, stack: StackId) -> StackId {
        let root_first: Vec<LocationId> = profile.stacks.get(stack).iter().rev().copied().collect();
        let shown = self.shown_frames(&root_first);
        let mut folded: Vec<LocationId> = Vec::with_capacity(root_first.len());
        let mut rest = shown.as_slice();
        while let Some(first) = rest.first() {
            let length = match first.source {
                FrameSource::Group => {
                    folded.push(self.group(profile, first.frame));
                    1
                }
                FrameSource::Line { position, .. } => {
                    let location = root_first[position];
                    let lines = lines_at(rest, position);
                    let mut is_shown = vec![false; self.of_location[location.index()].len()];
                    for &line in &lines {
                        is_shown[line] = true;
                    }
                    let part = self.parts.part_of(&mut profile.symbols, location, is_shown);
                    folded.extend(part);
                    lines.len()
                }
            };
            rest = &rest[length..];
        }
        folded.reverse();
        profile.stacks.intern(&folded)
    }

    /// What is shown of a stack, root first.
    fn shown_frames(&self, root_first: &[LocationId]) -> Vec<ShownFrame> {
        let mut shown: Vec<ShownFrame> = Vec::new();
        for (position, location) in root_first.iter().enumerate() {
            let frames = &self.of_location[location.index()];
            for (place, &frame) in frames.iter().enumerate() {
                let innermost_first = shown.iter().rev().map(|shown| shown.frame);
                if let Some(steps) = self.folds.folds_into(frame, innermost_first) {
                    shown.truncate(shown.len() - steps);
                    continue;
                }
                let shown_as = self.folds.shown_as(frame);
                let line = frames.len() - 1 - place;
                shown.push(ShownFrame {
                    frame: shown_as,
                    source: if shown_as == frame {
                        FrameSource::Line { position, line }
                    } else {
                        FrameSource::Group
                    },
                });
            }
        }
        shown
    }

    /// The location of a frame that stands for others.
    fn group(&mut self, profile: &mut Profile, frame: FrameId) -> LocationId {
        let (frames, symbols) = (&self.frames, &mut profile.symbols);
        *self.groups.entry(frame).or_insert_with(|| {
            let place = *frames.get(frame);
            let text = |id| frames.strings.get(id);
            let function = symbols.intern_function(text(place.name), "", text(place.file), 0);
            let mapping = match text(place.mapping) {
                "" => MappingId::default(),
                file => {
                    let file = symbols.strings.intern(file);
                    symbols.intern_mapping(Mapping {
                        file,
                        ..Mapping::default()
                    })
                }
            };
            let location = Location::new(place.kind, 0).in_mapping(mapping);
            symbols.intern_location(&location, &[(function, 0, 0)])
        })
    }
}

/// The lines with which what is shown begins, of the location at this position of the stack.
fn lines_at(shown: &[ShownFrame], position: usize) -> Vec<usize> {
    let lines = shown.iter().map_while(|shown| match shown.source {
        FrameSource::Line { position: at, line } if at == position => Some(line),
        _ => None,
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::super::FilterKind;
    use super::super::Filters;
    use super::super::tests::REAL_FOLDS;
    use super::super::tests::REAL_NAMES;
    use super::*;
    use crate::flame_builder::FlameTreeBuilder;
    use crate::flame_tree::FlameTree;
    use crate::flame_tree::Frame;
    use crate::labels::Labels;
    use crate::profile::ProfileSeries;
    use crate::profile::Sample;
    use crate::profile_type::ProfileType;
    use proptest::prelude::*;

    /// Stacks of positions in [`REAL_NAMES`], root first.
    fn profile(stacks: &[(Vec<usize>, i64)]) -> Profile {
        let mut profile = Profile::default();
        let cpu = ProfileType::new("process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds");
        let mut series = ProfileSeries::new(Labels::default(), cpu);
        for (names, value) in stacks {
            let symbols = &mut profile.symbols;
            let ids = names.iter().rev().map(|&name| {
                let (name, file, binary, kind) = REAL_NAMES[name];
                let function = symbols.intern_function(name, "", file, 7);
                let file = symbols.strings.intern(binary);
                // A location is of more than its name: addresses of one function differ.
                let address = u64::from(value.unsigned_abs() as u32 % 2);
                let mapping = symbols.intern_mapping(Mapping {
                    file,
                    ..Mapping::default()
                });
                let place = Location::new(kind, address).in_mapping(mapping);
                symbols.intern_location(&place, &[(function, 1, 0)])
            });
            let ids: Vec<LocationId> = ids.collect();
            series
                .samples
                .push(Sample::new(profile.stacks.intern(&ids), *value));
        }
        profile.series.push(series);
        profile
    }

    fn tree_of(profile: &Profile) -> FlameTree {
        let mut builder = FlameTreeBuilder::new();
        builder.add_series(profile, 0);
        builder.finish()
    }

    /// With everything that tells frames apart.
    fn lines(tree: &FlameTree) -> Vec<(Vec<String>, i64)> {
        let mut lines = Vec::new();
        tree.for_each_stack(|frames, value| {
            let texts = frames.iter().map(|&id| {
                let &Frame {
                    name,
                    file,
                    mapping,
                    kind,
                    start_line,
                } = tree.frames.get(id);
                let text = |id| tree.frames.strings.get(id);
                format!(
                    "{}|{}|{}|{kind}|{start_line}",
                    text(name),
                    text(file),
                    text(mapping)
                )
            });
            lines.push((texts.collect(), value));
        });
        lines.sort();
        lines
    }

    proptest! {
        #[test]
        fn a_folded_profile_has_the_folded_tree(
            stacks in prop::collection::vec(
                (prop::collection::vec(0..REAL_NAMES.len(), 0..9), 1_i64..9),
                0..20,
            ),
            texts in prop::collection::vec(prop::sample::select(REAL_FOLDS.to_vec()), 1..4),
        ) {
            let texts: Vec<_> = texts.iter().map(|text| (FilterKind::Collapse, *text)).collect();
            let folds = Filters::parse(&texts).expect("patterns");
            let mut profile = profile(&stacks);
            let expected = lines(&folds.apply(tree_of(&profile)));
            folds.apply_to_profile(&mut profile);
            prop_assert_eq!(lines(&tree_of(&profile)), expected);
            prop_assert_eq!(profile.validate(), Ok(()));
        }
    }
}
