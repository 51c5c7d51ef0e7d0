//! Stacks of frames that have a name and little more: what most formats but pprof know.

use std::borrow::Cow;

use candela_model::FrameKind;
use candela_model::LabelSetId;
use candela_model::Labels;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::Mapping;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::ProfileType;
use candela_model::Sample;
use candela_model::StackId;
use hashbrown::HashMap;

use crate::count::Count;
use crate::error::ReadError;
use crate::options::Limits;
use crate::options::ReadOptions;
use crate::report::Report;

/// Builds a profile from stacks, adding up equal ones.
///
/// Formats that share the start of stacks (trees, tries, events) write in a megabyte what would take
/// gigabytes as stacks, so frames and the bytes of names are bounded by what the input may have:
/// where each is written down, there cannot be more.
#[derive(Debug)]
pub(crate) struct NamedStacks<'a> {
    limits: &'a Limits,
    pub(crate) profile: Profile,
    pub(crate) report: Report,
    locations: HashMap<Box<str>, LocationId>,
    leaf_first: Vec<LocationId>,
    positions: HashMap<Key, usize>,
    sums: Vec<(Key, Count)>,
    /// Whether only what is kept is paid for.
    is_streamed: bool,
    frames_left: usize,
    name_bytes_left: usize,
}

/// A frame of which more than the name is known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FrameText<'t> {
    pub(crate) name: &'t str,
    /// What stands before the name, with a dot between; empty for none.
    pub(crate) qualifier: &'t str,
    pub(crate) file: &'t str,
    pub(crate) start_line: u32,
    /// The path of the binary.
    pub(crate) mapping: &'t str,
    pub(crate) kind: FrameKind,
}

/// What samples are added up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    series: usize,
    stack: StackId,
    label_set: LabelSetId,
    time_ns: i64,
}

impl<'a> NamedStacks<'a> {
    pub(crate) fn new(limits: &'a Limits) -> Self {
        Self {
            limits,
            profile: Profile::default(),
            report: Report::default(),
            locations: HashMap::new(),
            leaf_first: Vec::new(),
            positions: HashMap::new(),
            sums: Vec::new(),
            is_streamed: false,
            frames_left: limits.inflated_bytes(),
            name_bytes_left: limits.inflated_bytes(),
        }
    }

    /// The same for input that writes each stack down and is not held in memory: it may be as long as
    /// it likes, as long as what is kept of it is not.
    pub(crate) fn of_stream(limits: &'a Limits) -> Self {
        Self {
            is_streamed: true,
            frames_left: limits.inflated_bytes() / size_of::<LocationId>(),
            ..Self::new(limits)
        }
    }

    /// As much of a name as may be kept.
    pub(crate) fn cut<'t>(&mut self, text: &'t str) -> &'t str {
        let cut = self.limits.cut(text);
        if cut.len() < text.len() {
            self.report.note(
                "strings_cut",
                "strings longer than the limit were cut at their end",
            );
        }
        cut
    }

    /// Bytes as text. Only as many as may be kept are looked at, as a trie repeats its starts.
    pub(crate) fn text<'t>(&mut self, bytes: &'t [u8]) -> Cow<'t, str> {
        // A byte more, so that the cut is seen where texts are cut.
        let looked_at = bytes
            .len()
            .min(self.limits.max_string_bytes.saturating_add(4));
        let bytes = &bytes[..looked_at];
        let text = String::from_utf8_lossy(bytes);
        self.report
            .note_repaired(u64::from(matches!(text, Cow::Owned(_))));
        text
    }

    /// Notes bytes behind the end of what was read.
    pub(crate) fn note_trailing(&mut self, bytes: usize) {
        let text = "bytes behind the end were ignored";
        self.report.note_many("trailing_bytes", text, bytes as u64);
    }

    /// The frame of a function of which only the name is known.
    pub(crate) fn frame(&mut self, name: &str) -> Result<LocationId, ReadError> {
        self.frame_described(name, |name| (name, FrameKind::Unknown))
    }

    /// The same where the text says more than the name; `describe` is asked once for each text.
    pub(crate) fn frame_described<'t>(
        &mut self,
        text: &'t str,
        describe: impl FnOnce(&'t str) -> (&'t str, FrameKind),
    ) -> Result<LocationId, ReadError> {
        let text = self.cut(text);
        if self.is_streamed
            && let Some(&known) = self.locations.get(text)
        {
            return Ok(known);
        }
        self.count_name(text)?;
        if let Some(&known) = self.locations.get(text) {
            return Ok(known);
        }
        let (name, kind) = describe(text);
        let symbols = &mut self.profile.symbols;
        let function = symbols.intern_function(name, "", "", 0);
        let location = symbols.intern_location(&Location::new(kind, 0), &[(function, 0, 0)]);
        self.locations.insert(text.into(), location);
        Ok(location)
    }

    /// The same for a frame of which more is known.
    pub(crate) fn frame_of(&mut self, frame: &FrameText<'_>) -> Result<LocationId, ReadError> {
        let name = match frame.qualifier {
            "" => Cow::Borrowed(frame.name),
            qualifier => Cow::Owned(format!("{qualifier}.{}", frame.name)),
        };
        let name = self.cut(&name);
        let (file, mapping) = (self.cut(frame.file), self.cut(frame.mapping));
        self.pay_names(name.len() + file.len() + mapping.len())?;
        let symbols = &mut self.profile.symbols;
        let function = symbols.intern_function(name, "", file, frame.start_line);
        let path = symbols.strings.intern(mapping);
        let mapping = symbols.intern_mapping(Mapping {
            file: path,
            ..Mapping::default()
        });
        let location = Location::new(frame.kind, 0).in_mapping(mapping);
        Ok(symbols.intern_location(&location, &[(function, 0, 0)]))
    }

    /// Counts the bytes of a name, for formats in which many frames refer to the same one.
    pub(crate) fn count_name(&mut self, text: &str) -> Result<(), ReadError> {
        self.pay_names(text.len())
    }

    fn pay_names(&mut self, bytes: usize) -> Result<(), ReadError> {
        let left = self.name_bytes_left.checked_sub(bytes);
        self.name_bytes_left = left.ok_or(ReadError::TooLarge {
            what: "the number of bytes of all names",
            limit: self.limits.inflated_bytes(),
        })?;
        Ok(())
    }

    /// Adds a value to a stack of the series at `series`, which comes into being with its first value.
    pub(crate) fn add(
        &mut self,
        series: usize,
        root_first: &[LocationId],
        label_set: LabelSetId,
        value: Count,
    ) -> Result<(), ReadError> {
        let stack = self.stack(root_first)?;
        self.add_at(series, stack, label_set, 0, value)
    }

    /// A stack, for formats in which many samples name the same one.
    pub(crate) fn stack(&mut self, root_first: &[LocationId]) -> Result<StackId, ReadError> {
        let kept = root_first.len().min(self.limits.max_stack_depth);
        if kept < root_first.len() {
            self.report.note(
                "stacks_cut",
                "stacks deeper than the limit were cut at the leaf",
            );
        }
        self.leaf_first.clear();
        self.leaf_first.extend(root_first[..kept].iter().rev());
        let known_stacks = self.profile.stacks.len();
        let stack = self.profile.stacks.intern(&self.leaf_first);
        if !self.is_streamed || self.profile.stacks.len() > known_stacks {
            let left = self.frames_left.checked_sub(kept);
            self.frames_left = left.ok_or(ReadError::TooLarge {
                what: "the number of frames of all stacks",
                limit: self.limits.inflated_bytes(),
            })?;
        }
        Ok(stack)
    }

    /// Adds a value to a known stack at a time, 0 when only the window is known.
    pub(crate) fn add_at(
        &mut self,
        series: usize,
        stack: StackId,
        label_set: LabelSetId,
        time_ns: i64,
        value: Count,
    ) -> Result<(), ReadError> {
        let key = Key {
            series,
            stack,
            label_set,
            time_ns,
        };
        let sums = &mut self.sums;
        let position = *self.positions.entry(key).or_insert_with(|| {
            sums.push((key, Count::default()));
            sums.len() - 1
        });
        sums[position].1.add(value);
        if sums.len() > self.limits.max_samples {
            return Err(ReadError::TooLarge {
                what: "the number of samples",
                limit: self.limits.max_samples,
            });
        }
        Ok(())
    }

    /// Whether nothing was added.
    pub(crate) fn is_empty(&self) -> bool {
        self.sums.is_empty()
    }

    /// The profile with a series for each type, in this order, and without samples of value 0.
    pub(crate) fn finish(
        mut self,
        types: Vec<ProfileType>,
        options: &ReadOptions,
    ) -> (Profile, Report) {
        for profile_type in types {
            let labels = options.series_labels(Labels::default());
            let mut series = ProfileSeries::new(labels, profile_type);
            series.start_ns = options.now_ns.max(0);
            self.profile.series.push(series);
        }
        for (key, sum) in self.sums {
            let (value, is_rounded) = sum.rounded();
            if is_rounded {
                self.report.note(
                    "fractions_rounded",
                    "fractional counts were rounded, after adding up",
                );
            }
            if value != 0 {
                self.profile.series[key.series].samples.push(Sample {
                    label_set: key.label_set,
                    time_ns: key.time_ns,
                    ..Sample::new(key.stack, value)
                });
            }
        }
        (self.profile, self.report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits {
            max_inflated_bytes: 20,
            max_samples: 2,
            max_stack_depth: 3,
            ..Limits::default()
        }
    }

    #[test]
    fn frames_names_and_samples_are_bounded() {
        let limits = limits();
        let mut stacks = NamedStacks::new(&limits);
        let frame = stacks.frame("eleven byte").expect("eleven bytes");
        assert!(stacks.frame("eleven byte").is_err(), "22 bytes of 20");
        let mut add = |depth| stacks.add(0, &vec![frame; depth], LabelSetId(0), Count::ONE);
        for depth in [1, 2, 1, 2, 1, 2] {
            add(depth).expect("two stacks, nine frames");
        }
        assert!(add(3).expect_err("a third").to_string().contains("samples"));
        for _ in 0..2 {
            let _ = add(3);
        }
        let error = add(3).expect_err("more than 20 frames").to_string();
        assert!(error.contains("the number of frames"), "{error}");
    }

    #[test]
    fn a_stream_pays_for_what_is_kept() {
        let limits = limits();
        let mut stacks = NamedStacks::of_stream(&limits);
        for _ in 0..9 {
            let frame = stacks.frame("eleven byte").expect("eleven bytes");
            let added = stacks.add(0, &[frame; 3], LabelSetId(0), Count::ONE);
            added.expect("three frames of five");
        }
        let frame = stacks.frame("short").expect("sixteen bytes");
        let error = stacks.add(0, &[frame; 3], LabelSetId(0), Count::ONE);
        let error = error.expect_err("six frames").to_string();
        assert!(error.contains("the number of frames"), "{error}");
        assert!(stacks.frame("also short").is_err());
    }

    #[test]
    fn equal_stacks_add_up_and_deep_ones_are_cut_at_the_leaf() {
        let limits = limits();
        let mut stacks = NamedStacks::new(&limits);
        let frames = ["a", "b", "c", "d"].map(|name| stacks.frame(name).expect("short"));
        for depth in [3, 4] {
            let added = stacks.add(0, &frames[..depth], LabelSetId(0), Count::ONE);
            added.expect("seven frames");
        }
        let count_type = ProfileType::new("samples", "samples", "count", "", "");
        let (profile, report) = stacks.finish(vec![count_type], &ReadOptions::default());
        assert_eq!(report.count("stacks_cut"), 1);
        assert_eq!(profile.series[0].samples.len(), 1);
        assert_eq!(profile.series[0].total(), 2);
    }
}
