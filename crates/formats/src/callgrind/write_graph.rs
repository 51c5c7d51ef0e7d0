//! What the stacks of a profile add up to as a call graph.

use std::collections::BTreeMap;

use candela_model::LocationId;
use candela_model::Profile;
use candela_model::ProfileType;
use candela_model::StringId;
use hashbrown::HashMap;
use hashbrown::HashSet;

/// Functions are numbers into the lists of their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Written {
    pub(crate) object: usize,
    pub(crate) file: usize,
    pub(crate) name: usize,
}

/// Instruction address and line.
pub(crate) type Place = (u64, u32);

/// The costs of one function.
#[derive(Debug, Default)]
pub(crate) struct Costs {
    /// Own cost by event.
    pub(crate) own: BTreeMap<Place, Vec<i64>>,
    /// Number of calls and inclusive cost by event, for each place and what is called there.
    pub(crate) calls: BTreeMap<(Place, usize), (u64, Vec<i64>)>,
}

/// Texts, each once.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    pub(crate) texts: Vec<String>,
    index: HashMap<String, usize>,
}

/// A call graph with the costs of all profile types.
#[derive(Debug, Default)]
pub(crate) struct WriteGraph {
    pub(crate) types: Vec<ProfileType>,
    pub(crate) objects: Texts,
    pub(crate) files: Texts,
    pub(crate) names: Texts,
    pub(crate) functions: Vec<Written>,
    pub(crate) costs: Vec<Costs>,
    pub(crate) totals: Vec<i64>,
    pub(crate) has_addresses: bool,
    index: HashMap<Written, usize>,
    /// The frames of each location, outermost first.
    frames: HashMap<LocationId, Vec<(usize, Place)>>,
}

/// What stands for an empty name: a number alone would refer to another one.
const UNKNOWN_NAME: &str = "[unknown]";

/// As callgrind writes a file or an object that it does not know.
const UNKNOWN_FILE: &str = "???";

impl Texts {
    fn number(&mut self, text: &str, unknown: &str) -> usize {
        let text = text.trim();
        let text = if text.is_empty() { unknown } else { text };
        let text = text.replace(|character: char| character.is_control(), " ");
        if let Some(&known) = self.index.get(&text) {
            return known;
        }
        self.texts.push(text.clone());
        self.index.insert(text, self.texts.len() - 1);
        self.texts.len() - 1
    }
}

impl WriteGraph {
    /// Adds up all samples. The name of a function with a negative sum is the error.
    pub(crate) fn of(profile: &Profile) -> Result<Self, String> {
        let mut graph = Self::default();
        for series in &profile.series {
            if !graph.types.contains(&series.profile_type) {
                graph.types.push(series.profile_type.clone());
            }
        }
        graph.totals = vec![0; graph.types.len()];
        let mut path: Vec<(usize, Place)> = Vec::new();
        let mut called: HashSet<(usize, usize)> = HashSet::new();
        for series in &profile.series {
            let mut types = graph.types.iter();
            let event = types.position(|known| *known == series.profile_type);
            let event = event.expect("the types of all series were collected");
            for sample in &series.samples {
                path.clear();
                for &location in profile.stacks.get(sample.stack).iter().rev() {
                    path.extend_from_slice(graph.frames_of(profile, location));
                }
                if path.is_empty() {
                    path.push((graph.function("", "", ""), (0, 0)));
                }
                called.clear();
                graph.add(event, sample.value, &path, &mut called);
            }
        }
        for (function, costs) in graph.functions.iter().zip(&graph.costs) {
            let own = costs.own.values().flatten();
            let called = costs.calls.values().flat_map(|(_, values)| values);
            if own.chain(called).any(|value| *value < 0) {
                return Err(graph.names.texts[function.name].clone());
            }
        }
        Ok(graph)
    }

    fn add(
        &mut self,
        event: usize,
        value: i64,
        path: &[(usize, Place)],
        called: &mut HashSet<(usize, usize)>,
    ) {
        let count = self.types.len();
        let add = |values: &mut Vec<i64>| {
            values.resize(count, 0);
            values[event] = values[event].saturating_add(value);
        };
        for pair in path.windows(2) {
            let [(caller, place), (callee, _)] = *pair else {
                continue;
            };
            // Recursion is inclusive once.
            if called.insert((caller, callee)) {
                let call = self.costs[caller].calls.entry((place, callee)).or_default();
                call.0 += 1;
                add(&mut call.1);
            }
        }
        if let Some(&(function, place)) = path.last() {
            add(self.costs[function].own.entry(place).or_default());
        }
        self.totals[event] = self.totals[event].saturating_add(value);
    }

    fn frames_of(&mut self, profile: &Profile, id: LocationId) -> &[(usize, Place)] {
        if !self.frames.contains_key(&id) {
            let frames = self.make_frames(profile, id);
            self.frames.insert(id, frames);
        }
        &self.frames[&id]
    }

    fn make_frames(&mut self, profile: &Profile, id: LocationId) -> Vec<(usize, Place)> {
        let symbols = &profile.symbols;
        let text = |id: StringId| symbols.strings.get(id);
        let location = symbols.location(id);
        let object = text(symbols.mapping(location.mapping).file);
        self.has_addresses |= location.address != 0;
        let lines = symbols.lines(id).iter().rev();
        let mut frames: Vec<(usize, Place)> = lines
            .map(|line| {
                let function = symbols.function(line.function);
                let number = self.function(object, text(function.file), text(function.name));
                (number, (location.address, line.line))
            })
            .collect();
        if frames.is_empty() {
            let number = self.function(object, "", &symbols.address_name(id));
            frames.push((number, (location.address, 0)));
        }
        frames
    }

    fn function(&mut self, object: &str, file: &str, name: &str) -> usize {
        let function = Written {
            object: self.objects.number(object, UNKNOWN_FILE),
            file: self.files.number(file, UNKNOWN_FILE),
            name: self.names.number(name, UNKNOWN_NAME),
        };
        if let Some(&known) = self.index.get(&function) {
            return known;
        }
        self.functions.push(function);
        self.costs.push(Costs::default());
        self.index.insert(function, self.functions.len() - 1);
        self.functions.len() - 1
    }
}
