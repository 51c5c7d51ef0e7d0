//! A flame tree as a profile again, for what reads profiles.

use crate::flame_tree::FlameTree;
use crate::flame_tree::Frame;
use crate::ids::LocationId;
use crate::labels::Labels;
use crate::profile::Profile;
use crate::profile::ProfileSeries;
use crate::profile::Sample;
use crate::profile_type::ProfileType;
use crate::symbols::Location;
use crate::symbols::Mapping;

impl FlameTree {
    /// A profile whose tree this is: one series without labels, one sample for each stack with a
    /// value, one location for each frame. Addresses, lines and inlining are not in a tree, and so
    /// not in the profile.
    #[must_use]
    pub fn to_profile(&self, profile_type: ProfileType) -> Profile {
        let mut profile = Profile::default();
        let locations: Vec<LocationId> = self
            .frames
            .frames()
            .iter()
            .map(|frame| self.location_of(frame, &mut profile))
            .collect();
        let mut series = ProfileSeries::new(Labels::default(), profile_type);
        let mut leaf_first = Vec::new();
        self.for_each_stack(|root_first, value| {
            leaf_first.clear();
            let frames = root_first.iter().rev();
            leaf_first.extend(frames.map(|frame| locations[frame.index()]));
            let stack = profile.stacks.intern(&leaf_first);
            series.samples.push(Sample::new(stack, value));
        });
        profile.series.push(series);
        profile
    }

    fn location_of(&self, frame: &Frame, profile: &mut Profile) -> LocationId {
        let text = |id| self.frames.strings.get(id);
        let symbols = &mut profile.symbols;
        let function =
            symbols.intern_function(text(frame.name), "", text(frame.file), frame.start_line);
        let file = symbols.strings.intern(text(frame.mapping));
        let mapping = symbols.intern_mapping(Mapping {
            file,
            ..Mapping::default()
        });
        let location = Location::new(frame.kind, 0).in_mapping(mapping);
        symbols.intern_location(&location, &[(function, 0, 0)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flame_builder::FlameTreeBuilder;
    use crate::frame_kind::FrameKind;

    #[test]
    fn the_profile_of_a_tree_has_that_tree() {
        let mut builder = FlameTreeBuilder::new();
        let mut frame = |name, file, mapping, kind, line| {
            builder.frames.intern(name, file, mapping, kind, line)
        };
        let main = frame("main", "main.c", "/usr/bin/shop", FrameKind::Native, 3);
        let same_name = frame("main", "", "/usr/bin/other", FrameKind::Native, 0);
        let kernel = frame("schedule", "", "[kernel]", FrameKind::Kernel, 0);
        builder.add_stack([main, same_name, kernel], 1 << 60);
        builder.add_stack([main, main], -3);
        builder.add_stack([main], 5);
        builder.add_stack([], 7);
        let tree = builder.finish();

        let profile = tree.to_profile("cpu:samples:count:cpu:nanoseconds".parse().expect("a type"));

        assert_eq!(profile.sample_count(), 4);
        let mut again = FlameTreeBuilder::new();
        again.add_series(&profile, 0);
        let again = again.finish();
        assert_eq!(again.total, tree.total);
        assert_eq!(again.self_value, tree.self_value);
        assert_eq!(again.depth, tree.depth);
        let described = |tree: &FlameTree| -> Vec<String> {
            let describe = |frame: &crate::flame_tree::FrameId| {
                let found = tree.frames.get(*frame);
                let text = |id| tree.frames.strings.get(id);
                format!(
                    "{} {} {} {:?} {}",
                    text(found.name),
                    text(found.file),
                    text(found.mapping),
                    found.kind,
                    found.start_line
                )
            };
            tree.frame.iter().map(describe).collect()
        };
        assert_eq!(described(&again), described(&tree));
    }
}
