//! What functions are called in reports.

use candela_model::Profile;
use candela_model::StackId;
use candela_model::StringId;
use hashbrown::HashMap;

/// A function of a report.
pub(super) type FunctionId = usize;

/// A function as a place in a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) function: FunctionId,
    /// Its code stands inside of its caller's.
    pub(super) is_inline: bool,
}

/// The functions of a profile.
pub(super) struct Names<'a> {
    profile: &'a Profile,
    printable: Vec<String>,
    /// Of each location, innermost first.
    places: Vec<Vec<Place>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Function(StringId),
    /// What is not named, by its binary.
    Binary(StringId),
}

impl<'a> Names<'a> {
    pub(super) fn of(profile: &'a Profile) -> Self {
        let symbols = &profile.symbols;
        let mut names = Self {
            profile,
            printable: Vec::new(),
            places: Vec::with_capacity(symbols.locations().len()),
        };
        let mut known: HashMap<Key, FunctionId> = HashMap::new();
        let locations = (0..symbols.locations().len()).map(candela_model::LocationId::from_index);
        for id in locations {
            let binary = Key::Binary(symbols.mapping(symbols.location(id).mapping).file);
            let lines = symbols.lines(id);
            let keys = lines.iter().map(|line| {
                let name = symbols.function(line.function).name;
                match symbols.strings.get(name) {
                    "" => binary,
                    _ => Key::Function(name),
                }
            });
            let keys = keys.chain(lines.is_empty().then_some(binary));
            let outermost = lines.len().saturating_sub(1);
            let mut places = Vec::with_capacity(lines.len().max(1));
            for (position, key) in keys.enumerate() {
                let function = *known.entry(key).or_insert_with(|| {
                    names.printable.push(printable(profile, key));
                    names.printable.len() - 1
                });
                places.push(Place {
                    function,
                    is_inline: position != outermost,
                });
            }
            names.places.push(places);
        }
        names
    }

    /// How many functions there are.
    pub(super) fn len(&self) -> usize {
        self.printable.len()
    }

    pub(super) fn get(&self, function: FunctionId) -> &str {
        &self.printable[function]
    }

    /// A stack, leaf first.
    pub(super) fn stack(&self, stack: StackId) -> impl DoubleEndedIterator<Item = Place> {
        let locations = self.profile.stacks.get(stack).iter();
        locations.flat_map(|location| self.places[location.index()].iter().copied())
    }
}

fn printable(profile: &Profile, key: Key) -> String {
    let strings = &profile.symbols.strings;
    match key {
        Key::Function(name) => crate::printable::printable(strings.get(name)),
        Key::Binary(file) => match strings.get(file) {
            "" => "<unknown>".to_owned(),
            path => format!("[{}]", crate::printable::printable(base_name(path))),
        },
    }
}

/// The last part of a path.
pub(super) fn base_name(path: &str) -> &str {
    let trimmed = path.trim_end_matches('/');
    trimmed.rsplit('/').next().unwrap_or(trimmed)
}
