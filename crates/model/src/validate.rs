//! What must hold of a profile before it is stored.

use crate::label_sets::LabelValue;
use crate::profile::Profile;

/// A profile that must not be stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValidationError {
    /// A sample refers to a table entry that does not exist.
    #[error("series {series}, sample {sample}: {table} {id} does not exist, the profile has {len}")]
    DanglingId {
        /// Position of the series.
        series: usize,
        /// Position of the sample in it.
        sample: usize,
        /// Which table.
        table: &'static str,
        /// The id that is out of range.
        id: usize,
        /// Entries of that table.
        len: usize,
    },
    /// A stack refers to a location that does not exist.
    #[error("stack {stack}: location {id} does not exist, the profile has {len}")]
    DanglingLocation {
        /// Position of the stack.
        stack: usize,
        /// The id that is out of range.
        id: usize,
        /// Locations of the profile.
        len: usize,
    },
    /// A sample label refers to a string that does not exist.
    #[error("label set {label_set}: string {id} does not exist, the profile has {len}")]
    DanglingString {
        /// Position of the label set.
        label_set: usize,
        /// The id that is out of range.
        id: usize,
        /// Strings of the profile.
        len: usize,
    },
    /// A window that ends before it starts.
    #[error(
        "series {series}: start {start_ns} ns and duration {duration_ns} ns are no time window"
    )]
    Window {
        /// Position of the series.
        series: usize,
        /// Its start.
        start_ns: i64,
        /// Its duration.
        duration_ns: i64,
    },
    /// A type without a name, or one whose identifier would not read back.
    #[error(
        "series {series}: profile type {profile_type:?} has no name, no sample type or a colon inside a part"
    )]
    Type {
        /// Position of the series.
        series: usize,
        /// The identifier as given.
        profile_type: String,
    },
}

impl Profile {
    /// Checks that all ids are in range, all windows are windows and all types have an identifier.
    ///
    /// # Errors
    /// The first thing that does not hold.
    pub fn validate(&self) -> Result<(), ValidationError> {
        self.validate_stacks()?;
        self.validate_label_sets()?;
        for (position, series) in self.series.iter().enumerate() {
            let profile_type = &series.profile_type;
            if !profile_type.has_identifier() {
                return Err(ValidationError::Type {
                    series: position,
                    profile_type: profile_type.to_string(),
                });
            }
            let has_window = series.start_ns >= 0
                && series.duration_ns >= 0
                && series.start_ns.checked_add(series.duration_ns).is_some();
            if !has_window {
                return Err(ValidationError::Window {
                    series: position,
                    start_ns: series.start_ns,
                    duration_ns: series.duration_ns,
                });
            }
            self.validate_samples(position)?;
        }
        Ok(())
    }

    fn validate_stacks(&self) -> Result<(), ValidationError> {
        let len = self.symbols.locations().len();
        for (stack, locations) in self.stacks.iter().enumerate() {
            let dangling = locations.iter().find(|location| location.index() >= len);
            if let Some(location) = dangling {
                return Err(ValidationError::DanglingLocation {
                    stack,
                    id: location.index(),
                    len,
                });
            }
        }
        Ok(())
    }

    fn validate_label_sets(&self) -> Result<(), ValidationError> {
        let len = self.symbols.strings.len();
        for (label_set, labels) in self.label_sets.iter().enumerate() {
            let strings = labels.iter().flat_map(|label| match label.value {
                LabelValue::Text(text) => [label.key, text],
                LabelValue::Number { unit, .. } => [label.key, unit],
            });
            let dangling = strings.into_iter().find(|string| string.index() >= len);
            if let Some(string) = dangling {
                return Err(ValidationError::DanglingString {
                    label_set,
                    id: string.index(),
                    len,
                });
            }
        }
        Ok(())
    }

    fn validate_samples(&self, series: usize) -> Result<(), ValidationError> {
        for (position, sample) in self.series[series].samples.iter().enumerate() {
            let references = [
                ("stack", sample.stack.index(), self.stacks.len()),
                ("label set", sample.label_set.index(), self.label_sets.len()),
                ("link", sample.link.index(), self.links.len()),
            ];
            for (table, id, len) in references {
                if id >= len {
                    return Err(ValidationError::DanglingId {
                        series,
                        sample: position,
                        table,
                        id,
                        len,
                    });
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::Labels;
    use crate::Profile;
    use crate::ProfileSeries;
    use crate::ProfileType;
    use crate::Sample;
    use crate::SampleLabel;
    use crate::StackId;
    use crate::StringId;

    fn profile_with(sample: Sample) -> Profile {
        let mut profile = Profile::default();
        let profile_type =
            ProfileType::new("process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds");
        let mut series = ProfileSeries::new(Labels::default(), profile_type);
        series.samples.push(sample);
        profile.series.push(series);
        profile
    }

    #[test]
    fn ids_of_other_profiles_are_found() {
        assert_eq!(profile_with(Sample::new(StackId(0), 1)).validate(), Ok(()));
        let error = profile_with(Sample::new(StackId(7), 1))
            .validate()
            .expect_err("stack 7");
        assert_eq!(
            error.to_string(),
            "series 0, sample 0: stack 7 does not exist, the profile has 1"
        );
    }

    #[test]
    fn label_sets_of_other_profiles_are_found() {
        for label in [
            SampleLabel::text(StringId(9), StringId(0)),
            SampleLabel::text(StringId(0), StringId(9)),
        ] {
            let mut profile = profile_with(Sample::new(StackId(0), 1));
            profile.label_sets.intern(vec![label]);
            let error = profile.validate().expect_err("string 9");
            assert_eq!(
                error.to_string(),
                "label set 1: string 9 does not exist, the profile has 1"
            );
        }
    }

    #[test]
    fn types_whose_identifier_has_more_than_five_parts_are_refused() {
        for part in 0..5 {
            let mut profile = profile_with(Sample::new(StackId(0), 1));
            let profile_type = &mut profile.series[0].profile_type;
            let parts = [
                &mut profile_type.name,
                &mut profile_type.sample_type,
                &mut profile_type.sample_unit,
                &mut profile_type.period_type,
                &mut profile_type.period_unit,
            ];
            parts[part].push_str(":x");
            assert!(profile.validate().is_err(), "part {part}");
        }
    }

    #[test]
    fn negative_windows_are_refused() {
        let mut profile = profile_with(Sample::new(StackId(0), 1));
        profile.series[0].duration_ns = -1;
        assert!(profile.validate().is_err());
        profile.series[0].duration_ns = i64::MAX;
        profile.series[0].start_ns = 1;
        assert!(profile.validate().is_err());
    }
}
