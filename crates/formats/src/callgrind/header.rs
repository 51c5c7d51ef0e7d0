//! Header lines, `key: value`.

use hashbrown::HashMap;

use crate::callgrind::graph::invalid;
use crate::callgrind::units::Meaning;
use crate::callgrind::units::meaning;
use crate::callgrind::units::xdebug_name;
use crate::error::ReadError;

/// More than any simulator counts; each is a series.
const MAX_EVENTS: usize = 64;

/// What the headers of all parts say together.
#[derive(Debug)]
pub(crate) struct Header {
    /// The events of all parts, those that are calculated last.
    pub(crate) events: Vec<(String, Meaning)>,
    /// For the columns of the current part: positions in `events`.
    pub(crate) columns: Vec<usize>,
    pub(crate) has_line: bool,
    pub(crate) has_address: bool,
    pub(crate) creator: String,
    pub(crate) command: String,
    pub(crate) pid: Option<i64>,
    pub(crate) thread: Option<i64>,
    /// Sums of the `summary:` lines of all parts, by event.
    pub(crate) summary: Vec<i64>,
    /// Sums of the `totals:` lines of all parts, by event.
    pub(crate) totals: Vec<i64>,
    long_names: HashMap<String, String>,
    formulas: Vec<(String, String)>,
    given_name: Option<String>,
}

impl Header {
    pub(crate) fn new(given_name: Option<String>) -> Self {
        Self {
            events: Vec::new(),
            columns: Vec::new(),
            has_line: true,
            has_address: false,
            creator: String::new(),
            command: String::new(),
            pid: None,
            thread: None,
            summary: Vec::new(),
            totals: Vec::new(),
            long_names: HashMap::new(),
            formulas: Vec::new(),
            given_name,
        }
    }

    /// Takes a line apart; `false` when it is none of a header.
    pub(crate) fn take(&mut self, line: &str, line_number: usize) -> Result<bool, ReadError> {
        let Some((key, value)) = line.split_once(':') else {
            return Ok(false);
        };
        let value = value.trim();
        match key {
            "version" => {
                let major = value.split('.').next().unwrap_or(value);
                if major.parse::<u32>().is_ok_and(|version| version > 1) {
                    return Err(invalid(format!(
                        "line {line_number}: version {value} is newer than version 1"
                    )));
                }
            }
            "creator" => value.clone_into(&mut self.creator),
            "cmd" if self.command.is_empty() => value.clone_into(&mut self.command),
            "pid" if self.pid.is_none() => self.pid = value.parse().ok(),
            "thread" => self.thread = value.parse().ok(),
            "part" => self.thread = None,
            "positions" => {
                self.has_line = value.split_ascii_whitespace().any(|word| word == "line");
                self.has_address = value
                    .split_ascii_whitespace()
                    .any(|word| matches!(word, "instr" | "addr" | "bb"));
            }
            "event" => self.describe_event(value),
            "events" => self.take_events(value)?,
            "summary" => add_columns(&mut self.summary, &self.columns, value),
            "totals" => add_columns(&mut self.totals, &self.columns, value),
            "cmd" | "pid" | "desc" => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Whether numbers with a minus are such, and no distance to the line before.
    pub(crate) fn has_negative_costs(&self) -> bool {
        self.creator.starts_with("xdebug")
    }

    /// Position, and the factor of each event before, of each event that is calculated. It becomes
    /// an event of its own. Terms of one event are added up: formulas of thousands of terms would be
    /// gone through again for each cost.
    pub(crate) fn derived(&mut self) -> Vec<(u32, Vec<i64>)> {
        let mut derived = Vec::new();
        for (name, formula) in std::mem::take(&mut self.formulas) {
            let is_known = self.events.iter().any(|event| event.0 == name);
            let (Some(factors), false) = (
                self.factors(&formula),
                is_known || self.events.len() >= MAX_EVENTS,
            ) else {
                continue;
            };
            derived.push((self.events.len() as u32, factors));
            let long_name = self.long_names.get(&name).map(String::as_str);
            let meaning = meaning(&name, long_name, self.given_name.as_deref());
            self.events.push((name, meaning));
        }
        derived
    }

    /// The factor of each event in `Ir + 10 Bm`; `None` where one of them is unknown.
    fn factors(&self, formula: &str) -> Option<Vec<i64>> {
        let mut factors = vec![0_i64; self.events.len()];
        for term in formula.split('+') {
            let (factor, event) = self.term(term)?;
            factors[event] = factors[event].saturating_add(factor);
        }
        Some(factors)
    }

    /// `10 Ir`, `10 * Ir` or `Ir`: the factor and the position of the event.
    fn term(&self, text: &str) -> Option<(i64, usize)> {
        let text = text.trim();
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (factor, name) = text.split_at(digits);
        let factor = if factor.is_empty() {
            1
        } else {
            factor.parse().ok()?
        };
        let name = name.trim_start().trim_start_matches('*').trim_start();
        let position = self.events.iter().position(|event| event.0 == name)?;
        Some((factor, position))
    }

    /// `Ir : Instruction Fetches`, `Sum = Ir + Dr` or both.
    fn describe_event(&mut self, value: &str) {
        let (definition, long_name) = value.split_once(':').unwrap_or((value, ""));
        let (name, formula) = definition.split_once('=').unwrap_or((definition, ""));
        let name = name.trim();
        if self.long_names.len() >= MAX_EVENTS || self.formulas.len() >= MAX_EVENTS {
            return;
        }
        self.long_names
            .insert(name.to_owned(), long_name.trim().to_owned());
        if !formula.is_empty() {
            self.formulas.push((name.to_owned(), formula.to_owned()));
        }
    }

    fn take_events(&mut self, value: &str) -> Result<(), ReadError> {
        self.columns.clear();
        for name in value.split_ascii_whitespace() {
            let known = self.events.iter().position(|event| event.0 == name);
            let position = known.unwrap_or(self.events.len());
            if position >= MAX_EVENTS || self.columns.len() >= MAX_EVENTS {
                return Err(ReadError::TooLarge {
                    what: "the number of events",
                    limit: MAX_EVENTS,
                });
            }
            if known.is_none() {
                let long_name = self.long_names.get(name).map(String::as_str);
                let full_name = xdebug_name(&self.creator, name).unwrap_or(name);
                let meaning = meaning(full_name, long_name, self.given_name.as_deref());
                self.events.push((name.to_owned(), meaning));
            }
            self.columns.push(position);
        }
        Ok(())
    }
}

fn add_columns(sums: &mut Vec<i64>, columns: &[usize], value: &str) {
    for (text, &column) in value.split_ascii_whitespace().zip(columns) {
        if sums.len() <= column {
            sums.resize(column + 1, 0);
        }
        let number = text.parse().unwrap_or(0);
        sums[column] = sums[column].saturating_add(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_have_one_factor_for_each_event_however_long_they_are() {
        let mut header = Header::new(None);
        let lines = [
            "events: Ir Bm".to_owned(),
            format!("event: Sum = {}Bm", "2 Ir + ".repeat(1000)),
            "event: Twice = 2 Sum + Ir".to_owned(),
            "event: Odd = 2 Nothing".to_owned(),
        ];
        for line in lines {
            assert!(header.take(&line, 1).expect("sound"), "{line}");
        }
        let derived = header.derived();
        assert_eq!(derived, [(2, vec![2000, 1]), (3, vec![1, 0, 2])]);
    }
}
