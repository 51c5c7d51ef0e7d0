//! Which series of a profile a one-column format shows.

use candela_model::FlameTree;
use candela_model::FlameTreeBuilder;
use candela_model::Profile;
use candela_model::ProfileType;
use candela_model::resolve_profile_type;

use crate::error::WriteError;

/// The series of one profile type.
#[derive(Debug)]
pub(crate) struct Selection<'a> {
    profile: &'a Profile,
    pub(crate) profile_type: &'a ProfileType,
}

impl<'a> Selection<'a> {
    /// The series that `wanted` means: an identifier, short name, prefix or sample type. Without
    /// it the most telling one.
    pub(crate) fn of(profile: &'a Profile, wanted: Option<&str>) -> Result<Self, WriteError> {
        let types = || profile.series.iter().map(|series| &series.profile_type);
        let Some(wanted) = wanted else {
            let profile_type = most_telling_type(types()).ok_or(WriteError::Empty)?;
            return Ok(Self {
                profile,
                profile_type,
            });
        };
        let profile_type = resolve_profile_type(wanted, types())
            .ok()
            .or_else(|| types().find(|profile_type| profile_type.sample_type == wanted));
        let profile_type = profile_type.ok_or_else(|| {
            let mut available: Vec<String> = types().map(ToString::to_string).collect();
            available.sort();
            available.dedup();
            WriteError::NoSuchType {
                wanted: wanted.to_owned(),
                available: available.join(", "),
            }
        })?;
        Ok(Self {
            profile,
            profile_type,
        })
    }

    /// All of its stacks merged.
    pub(crate) fn tree(&self) -> FlameTree {
        tree_of(self.profile, self.profile_type)
    }

    /// How many series of other types are not shown.
    pub(crate) fn left_out(&self) -> u64 {
        let others = self
            .profile
            .series
            .iter()
            .filter(|series| series.profile_type != *self.profile_type);
        others.count() as u64
    }
}

/// Time rather than bytes, and bytes rather than counts: the first of these. What is in use rather than what was
/// ever allocated, as pprof shows a heap.
pub fn most_telling_type<'a>(
    types: impl IntoIterator<Item = &'a ProfileType>,
) -> Option<&'a ProfileType> {
    let types = types.into_iter();
    types.min_by_key(|profile_type| {
        let is_allocated = profile_type.sample_type.starts_with("alloc_");
        (unit_rank(&profile_type.sample_unit), is_allocated)
    })
}

/// What is shown where nobody asks: what the writer of the profile wants, else cpu, else the most telling of
/// those that have samples.
#[must_use]
pub fn unasked_type(profile: &Profile, writers: Option<&str>) -> Option<ProfileType> {
    let types = || profile.series.iter().map(|series| &series.profile_type);
    let writers = writers.and_then(|wanted| types().find(|it| it.sample_type == wanted));
    let found = writers.cloned().or_else(|| named_type(profile, "cpu"));
    // A program that gave everything back has nothing in use: an empty table would hide what it allocated.
    let sampled = profile.series.iter().filter(|it| !it.samples.is_empty());
    found
        .or_else(|| most_telling_type(sampled.map(|it| &it.profile_type)).cloned())
        .or_else(|| most_telling_type(types()).cloned())
}

/// The type with this identifier, short name, prefix or name of its samples.
#[must_use]
pub fn named_type(profile: &Profile, wanted: &str) -> Option<ProfileType> {
    let mut types = profile.series.iter().map(|series| &series.profile_type);
    let found = resolve_profile_type(wanted, types.clone()).ok();
    let found = found.or_else(|| types.find(|profile_type| profile_type.sample_type == wanted));
    found.cloned()
}

/// The stacks of all series of a type, merged.
pub(crate) fn tree_of(profile: &Profile, profile_type: &ProfileType) -> FlameTree {
    let mut builder = FlameTreeBuilder::new();
    for (position, series) in profile.series.iter().enumerate() {
        if series.profile_type == *profile_type {
            builder.add_series(profile, position);
        }
    }
    builder.finish()
}

fn unit_rank(unit: &str) -> usize {
    const ORDER: [&str; 3] = ["nanoseconds", "bytes", "count"];
    ORDER
        .iter()
        .position(|known| *known == unit)
        .unwrap_or(ORDER.len())
}
