//! Series by what their values are, where the input chooses that.

use candela_model::ProfileType;
use hashbrown::HashMap;

use crate::error::ReadError;
use crate::options::Limits;

/// Positions of series by their types.
#[derive(Debug)]
pub(crate) struct SeriesIndex {
    positions: HashMap<ProfileType, usize>,
    most: usize,
}

/// A recording counts dozens of things. A series takes about a kilobyte, which a few bytes of input
/// can ask for.
const MOST_SERIES: usize = 4096;

impl SeriesIndex {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            positions: HashMap::new(),
            most: MOST_SERIES.min(limits.max_samples),
        }
    }

    /// The position of the series of a type.
    pub(crate) fn get(&self, profile_type: &ProfileType) -> Option<usize> {
        self.positions.get(profile_type).copied()
    }

    /// The position that a type gets which has none: behind all others.
    ///
    /// # Errors
    /// When there are as many series as there may be.
    pub(crate) fn add(&mut self, profile_type: &ProfileType) -> Result<usize, ReadError> {
        let position = self.positions.len();
        if position >= self.most {
            return Err(ReadError::TooLarge {
                what: "the number of series",
                limit: self.most,
            });
        }
        self.positions.insert(profile_type.clone(), position);
        Ok(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_found_and_their_number_is_bounded() {
        let limits = Limits {
            max_samples: 2,
            ..Limits::default()
        };
        let mut index = SeriesIndex::new(&limits);
        let named = |name| ProfileType::new(name, name, "count", "", "");
        for (position, name) in ["one", "other"].into_iter().enumerate() {
            assert_eq!(index.get(&named(name)), None);
            assert_eq!(index.add(&named(name)).ok(), Some(position));
            assert_eq!(index.get(&named(name)), Some(position));
        }
        let error = index.add(&named("third")).expect_err("two at most");
        let expected = "the number of series exceeds the limit of 2";
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}
