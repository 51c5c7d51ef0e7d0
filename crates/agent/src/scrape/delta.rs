//! Totals since a program started become what was added between two scrapes.

use candela_model::LabelValue;
use candela_model::LocationId;
use candela_model::Profile;
use candela_model::ProfileType;
use candela_model::Sample;
use candela_model::StringId;
use hashbrown::HashMap;
use twox_hash::XxHash3_128;

/// Different stacks, labels and columns that are remembered of one profile: about 40 bytes each. Go
/// programs have some ten thousand.
const MOST_TOTALS: usize = 400_000;

/// What a cumulative profile of one program had at its last scrape.
///
/// Stacks are compared by what they say (addresses, functions, lines), because tables are made anew
/// for every answer, and by their labels: Go tells allocations of different sizes apart so.
#[derive(Clone, Debug, Default)]
pub struct Cumulative {
    last: Option<Totals>,
}

#[derive(Clone, Debug, Default)]
struct Totals {
    program: u128,
    values: HashMap<u128, i64>,
}

/// What came of a scrape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subtracted {
    /// There was none before: totals are left out, states stay.
    First,
    /// The program started again since: as the first.
    Restarted,
    /// Totals are now what was added since the scrape before.
    Added,
}

/// Totals that nothing can be subtracted from; what was remembered is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeltaError {
    /// A total is below zero.
    #[error("a total of {sample_type} is negative")]
    Negative {
        /// The sample type.
        sample_type: &'static str,
    },
    /// More than is remembered.
    #[error("more than {limit} different stacks and labels; scrape godeltaprof instead")]
    TooMany {
        /// How much that is.
        limit: usize,
    },
}

// === impl Cumulative ===

impl Cumulative {
    /// Turns the totals of a valid profile into what was added since the profile before. Series that
    /// are states, or of which we do not know, stay as they are.
    ///
    /// A total that has gone down, a stack that is no longer there, or another main program at
    /// another place mean that the program started again. What it did since then is left out, too:
    /// by the values alone nobody can tell whether the new ones count from zero.
    ///
    /// # Errors
    /// [`DeltaError`]; nothing of the profile is of use then.
    pub fn subtract(&mut self, profile: &mut Profile) -> Result<Subtracted, DeltaError> {
        let last = self.last.take();
        let keys = Keys::new(profile);
        let now = keys.totals(profile)?;
        let outcome = match &last {
            None => Subtracted::First,
            Some(last) if last.is_continued_by(&now) => Subtracted::Added,
            Some(_) => Subtracted::Restarted,
        };
        let before = match outcome {
            Subtracted::Added => last.unwrap_or_default(),
            Subtracted::First | Subtracted::Restarted => now.clone(),
        };
        keys.leave_added(profile, &before, &now);
        self.last = Some(now);
        Ok(outcome)
    }

    /// How many totals are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.last.as_ref().map_or(0, |last| last.values.len())
    }

    /// Whether nothing is remembered, so that the next scrape is the first.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

// === impl Totals ===

impl Totals {
    fn is_continued_by(&self, now: &Self) -> bool {
        let is_no_less = |(key, before): (&u128, &i64)| {
            let total = now.values.get(key).copied().unwrap_or(0);
            total >= *before
        };
        self.program == now.program && self.values.iter().all(is_no_less)
    }
}

/// Whether values of a type are totals, in a profile that has totals. By the names that Go gives
/// them: what we do not know may as well be a state, as `objects` and `space` of other heaps are,
/// of which differences would be nonsense.
pub(crate) fn is_total(profile_type: &ProfileType) -> bool {
    let sample_type = profile_type.sample_type.as_str();
    sample_type.starts_with("alloc_") || matches!(sample_type, "contentions" | "delay")
}

/// What stacks and label sets of one profile say, as hashes by their ids.
struct Keys {
    stacks: Vec<u128>,
    label_sets: Vec<u128>,
    program: u128,
}

// === impl Keys ===

impl Keys {
    fn new(profile: &Profile) -> Self {
        let strings: Vec<u128> = profile
            .symbols
            .strings
            .iter()
            .map(|text| XxHash3_128::oneshot(text.as_bytes()))
            .collect();
        let text = |id: StringId| strings[id.index()];
        let locations: Vec<u128> = (0..profile.symbols.locations().len())
            .map(|index| location_hash(profile, LocationId::from_index(index), &text))
            .collect();
        let stacks = profile
            .stacks
            .iter()
            .map(|stack| hash_of(stack.iter().map(|location| locations[location.index()])));
        let label_sets = profile.label_sets.iter().map(|set| {
            let words = set.iter().flat_map(|label| match label.value {
                LabelValue::Text(value) => [text(label.key), 0, text(value), 0],
                LabelValue::Number { value, unit } => {
                    [text(label.key), 1, u128::from(value as u64), text(unit)]
                }
            });
            hash_of(words)
        });
        Self {
            stacks: stacks.collect(),
            label_sets: label_sets.collect(),
            program: program_hash(profile, &text),
        }
    }

    fn key(&self, column: usize, sample: &Sample) -> u128 {
        hash_of([
            column as u128,
            self.stacks[sample.stack.index()],
            self.label_sets[sample.label_set.index()],
        ])
    }

    fn totals(&self, profile: &Profile) -> Result<Totals, DeltaError> {
        let mut values: HashMap<u128, i64> = HashMap::new();
        for (column, series) in profile.series.iter().enumerate() {
            if !is_total(&series.profile_type) {
                continue;
            }
            for sample in &series.samples {
                if sample.value < 0 {
                    return Err(DeltaError::Negative {
                        sample_type: known_name(&series.profile_type.sample_type),
                    });
                }
                let total = values.entry(self.key(column, sample)).or_default();
                *total = total.saturating_add(sample.value);
                if values.len() > MOST_TOTALS {
                    return Err(DeltaError::TooMany { limit: MOST_TOTALS });
                }
            }
        }
        Ok(Totals {
            program: self.program,
            values,
        })
    }

    /// Samples that say the same are one afterwards, as their totals are.
    fn leave_added(&self, profile: &mut Profile, before: &Totals, now: &Totals) {
        let mut left = now.values.clone();
        for (column, series) in profile.series.iter_mut().enumerate() {
            if !is_total(&series.profile_type) {
                continue;
            }
            series.samples.retain_mut(|sample| {
                let key = self.key(column, sample);
                let Some(total) = left.remove(&key) else {
                    return false;
                };
                sample.value = total - before.values.get(&key).copied().unwrap_or(0);
                sample.value > 0
            });
        }
    }
}

/// The name of a sample type as it stands in messages, which are the same for all targets.
fn known_name(sample_type: &str) -> &'static str {
    const KNOWN: [&str; 4] = ["alloc_objects", "alloc_space", "contentions", "delay"];
    let mut known = KNOWN.into_iter();
    known
        .find(|name| *name == sample_type)
        .unwrap_or("a column")
}

fn location_hash(profile: &Profile, id: LocationId, text: &impl Fn(StringId) -> u128) -> u128 {
    let symbols = &profile.symbols;
    let lines = symbols.lines(id).iter().flat_map(|line| {
        let function = symbols.function(line.function);
        [
            text(function.name),
            text(function.file),
            u128::from(line.line),
        ]
    });
    let address = u128::from(symbols.location(id).address);
    hash_of(std::iter::once(address).chain(lines))
}

/// What the program is: its file, build and place in memory. Without mappings all are the same.
fn program_hash(profile: &Profile, text: &impl Fn(StringId) -> u128) -> u128 {
    let named = |id: StringId| id != StringId(0);
    let mut mappings = profile.symbols.mappings().iter();
    let main = mappings.find(|mapping| named(mapping.file) || named(mapping.build_id));
    main.map_or(0, |main| {
        let place = u128::from(main.memory_start);
        hash_of([text(main.file), text(main.build_id), place])
    })
}

fn hash_of(words: impl IntoIterator<Item = u128>) -> u128 {
    let mut hasher = XxHash3_128::new();
    for word in words {
        hasher.write(&word.to_le_bytes());
    }
    hasher.finish_128()
}

#[cfg(test)]
mod tests;
