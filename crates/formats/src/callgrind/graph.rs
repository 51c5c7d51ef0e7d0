//! What the lines of a file add up to: costs of places and of calls.

use candela_model::StringId;
use hashbrown::HashMap;
use hashbrown::HashSet;

use crate::callgrind::NAME;
use crate::error::ReadError;
use crate::options::Limits;

/// What tells functions apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Function {
    pub(crate) object: StringId,
    pub(crate) file: StringId,
    pub(crate) name: StringId,
}

/// A place inside of a function. Its file is another one than the function's where code is inlined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) file: StringId,
    pub(crate) line: u32,
    pub(crate) address: u64,
}

/// Whose cost it is: of the function's own code, or of what it calls from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CostKey {
    pub(crate) function: u32,
    /// `None` for own code.
    pub(crate) callee: Option<u32>,
    pub(crate) place: Place,
    /// [`CALLS`] for the number of calls.
    pub(crate) event: u32,
}

/// Stands for an event that every file has.
pub(crate) const CALLS: u32 = u32::MAX;

/// The functions of a file and the costs of each thread.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub(crate) functions: Vec<Function>,
    index: HashMap<Function, u32>,
    /// By thread; most files have one without a number.
    pub(crate) threads: Vec<(Option<i64>, HashMap<CostKey, i64>)>,
    thread_index: HashMap<Option<i64>, usize>,
    costs: usize,
}

impl Graph {
    pub(crate) fn function(&mut self, function: Function) -> u32 {
        let functions = &mut self.functions;
        *self.index.entry(function).or_insert_with(|| {
            functions.push(function);
            functions.len() as u32 - 1
        })
    }

    /// The position of a thread, which comes into being.
    pub(crate) fn thread(&mut self, number: Option<i64>) -> usize {
        let threads = &mut self.threads;
        *self.thread_index.entry(number).or_insert_with(|| {
            threads.push((number, HashMap::new()));
            threads.len() - 1
        })
    }

    /// Adds to a cost.
    pub(crate) fn add(
        &mut self,
        thread: usize,
        key: CostKey,
        value: i64,
        limits: &Limits,
    ) -> Result<(), ReadError> {
        if value == 0 {
            return Ok(());
        }
        let Some((_, costs)) = self.threads.get_mut(thread) else {
            return Ok(());
        };
        let known = costs.len();
        let cost = costs.entry(key).or_default();
        *cost = cost.saturating_add(value);
        self.costs += costs.len() - known;
        // Each becomes a sample at least, or is a call.
        if self.costs > limits.max_samples {
            return Err(ReadError::TooLarge {
                what: "the number of samples",
                limit: limits.max_samples,
            });
        }
        Ok(())
    }

    /// The sums of so many events over all own code.
    pub(crate) fn totals(&self, events: usize) -> Vec<i64> {
        let mut totals = vec![0_i64; events];
        let costs = self.threads.iter().flat_map(|thread| &thread.1);
        for (key, value) in costs.filter(|(key, _)| key.callee.is_none()) {
            if let Some(total) = totals.get_mut(key.event as usize) {
                *total = total.saturating_add(*value);
            }
        }
        totals
    }

    /// How many functions have no lines, though calls of them cost something. Where the same name has
    /// lines elsewhere the function may be inlined there, or its file be told otherwise.
    pub(crate) fn unknown_callees(&self) -> u64 {
        let keys = || self.threads.iter().flat_map(|thread| thread.1.keys());
        let name = |function: u32| self.functions[function as usize].name;
        let known: HashSet<StringId> = keys().map(|key| name(key.function)).collect();
        let unknown: HashSet<u32> = keys()
            .filter(|key| key.event != CALLS)
            .filter_map(|key| key.callee)
            .filter(|&callee| !known.contains(&name(callee)))
            .collect();
        unknown.len() as u64
    }

    /// Adds an event that is calculated from others, each with its factor; those behind have none.
    pub(crate) fn derive(
        &mut self,
        event: u32,
        factors: &[i64],
        limits: &Limits,
    ) -> Result<(), ReadError> {
        for thread in 0..self.threads.len() {
            let costs = self.threads[thread].1.iter();
            let parts = costs.filter_map(|(key, value)| {
                let factor = factors.get(key.event as usize).copied().unwrap_or(0);
                let key = CostKey { event, ..*key };
                (factor != 0).then(|| (key, value.saturating_mul(factor)))
            });
            let parts: Vec<(CostKey, i64)> = parts.collect();
            for (key, value) in parts {
                self.add(thread, key, value, limits)?;
            }
        }
        Ok(())
    }

    /// In call trees pprof numbers the names of what is called, `work [2/3]`, but not the functions
    /// themselves. What is only called and so numbered is the function of the plain name.
    pub(crate) fn join_numbered(
        &mut self,
        plain_name: impl Fn(StringId) -> Option<StringId>,
        limits: &Limits,
    ) -> Result<(), ReadError> {
        let mut aliases: HashMap<u32, u32> = HashMap::new();
        for (id, function) in self.functions.iter().enumerate() {
            let Some(name) = plain_name(function.name) else {
                continue;
            };
            if let Some(&plain) = self.index.get(&Function { name, ..*function }) {
                aliases.insert(id as u32, plain);
            }
        }
        for (_, costs) in &self.threads {
            for key in costs.keys() {
                aliases.remove(&key.function);
            }
        }
        if aliases.is_empty() {
            return Ok(());
        }
        for thread in 0..self.threads.len() {
            let costs = std::mem::take(&mut self.threads[thread].1);
            self.costs -= costs.len();
            for (mut key, value) in costs {
                key.callee = key
                    .callee
                    .map(|callee| aliases.get(&callee).copied().unwrap_or(callee));
                self.add(thread, key, value, limits)?;
            }
        }
        Ok(())
    }
}

/// `work` of `work [2/3]`.
pub(crate) fn without_number(name: &str) -> Option<&str> {
    let (plain, number) = name.strip_suffix(']')?.rsplit_once(" [")?;
    let (position, count) = number.split_once('/')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(position) && is_number(count)).then_some(plain)
}

pub(crate) fn invalid(problem: String) -> ReadError {
    ReadError::Invalid {
        format: NAME,
        problem,
    }
}
