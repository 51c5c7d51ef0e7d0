//! What Go's `profile.Profile.String()` prints, taken apart, and profiles in the same words. Places
//! with a mapping are told by address alone: the text of Go has no names there, and ours may.

use std::collections::BTreeMap;

use candela_model::LabelValue;
use candela_model::Profile;

/// Values by stack and labels, in the order of the sample types.
pub type Samples = BTreeMap<String, Vec<i64>>;

/// The text of a profile.
#[derive(Debug, Default)]
pub struct Printed {
    /// `TYPE/UNIT`.
    pub types: Vec<String>,
    pub period: i64,
    pub samples: Samples,
    /// Start, limit, offset and file. The one that Go makes up for all addresses is left out.
    pub mappings: Vec<(u64, u64, u64, String)>,
}

/// Takes the text apart. Samples of value 0 in all columns are left out, as readers do.
pub fn parse(text: &str) -> Printed {
    let mut printed = Printed::default();
    let (head, rest) = text.split_once("\nSamples:\n").expect("samples");
    let (samples, rest) = rest.split_once("Locations\n").expect("locations");
    let (locations, mappings) = rest.split_once("Mappings\n").expect("mappings");
    for line in head.lines() {
        if let Some(period) = line.strip_prefix("Period: ") {
            printed.period = period.parse().expect("a number");
        }
    }
    let mut made_up = None;
    for line in mappings.lines() {
        let (id, rest) = line.split_once(": ").expect("an id");
        let (range, file) = rest.split_once(' ').expect("a range");
        let numbers: Vec<u64> = range.split('/').map(hex).collect();
        let file = file.trim().to_owned();
        if numbers == [0, u64::MAX, 0] {
            made_up = Some(id.to_owned());
            continue;
        }
        printed
            .mappings
            .push((numbers[0], numbers[1], numbers[2], file));
    }
    let mut places: BTreeMap<&str, String> = BTreeMap::new();
    for line in locations.lines() {
        let (id, place) = line.trim().split_once(": ").expect("an id");
        let (address, rest) = place.split_once(' ').unwrap_or((place, ""));
        let rest = rest.trim();
        let place = match rest.strip_prefix("M=") {
            Some(mapping) if Some(mapping.to_owned()) == made_up => format!("{address} in ?"),
            Some(mapping) => {
                let (start, ..) = printed.mappings[mapping.parse::<usize>().expect("an id") - 1];
                format!("{address} in {start:#x}")
            }
            None => {
                let lines = rest.strip_suffix(":0 s=0").unwrap_or(rest);
                format!("{address} in ? {lines}")
            }
        };
        places.insert(id, place);
    }
    let mut lines = samples.lines();
    let types = lines.next().expect("types");
    printed.types = types.split(' ').map(str::to_owned).collect();
    let mut lines = lines.peekable();
    while let Some(line) = lines.next() {
        let (values, ids) = line.split_once(':').expect("values");
        let values: Vec<i64> = values
            .split_whitespace()
            .map(|value| value.parse().expect("a number"))
            .collect();
        let stack: Vec<&str> = ids
            .split_whitespace()
            .map(|id| places[id].as_str())
            .collect();
        let label = lines.next_if(|next| next.contains(":["));
        let label = label.map_or(String::new(), |label| label.trim().to_owned());
        if values.iter().any(|value| *value != 0) {
            let sums = printed.samples.entry(format!("{stack:?} {label}"));
            let sums = sums.or_insert_with(|| vec![0; values.len()]);
            sums.iter_mut()
                .zip(values)
                .for_each(|(sum, value)| *sum += value);
        }
    }
    printed
}

/// The samples of a profile in the same words. Of the labels only numbers are told.
pub fn samples_of(profile: &Profile) -> Samples {
    let symbols = &profile.symbols;
    let text = |id| symbols.strings.get(id);
    let mut samples = Samples::new();
    for (column, series) in profile.series.iter().enumerate() {
        for sample in &series.samples {
            let stack = profile.stacks.get(sample.stack).iter().map(|&id| {
                let location = symbols.location(id);
                let mapping = symbols.mapping(location.mapping);
                let address = location.address;
                let lines: Vec<String> = symbols
                    .lines(id)
                    .iter()
                    .map(|line| {
                        let function = symbols.function(line.function);
                        let (name, file) = (text(function.name), text(function.file));
                        format!(" {name} {file}:{}", line.line)
                    })
                    .collect();
                if location.mapping.index() == 0 {
                    format!("{address:#x} in ?{}", lines.concat())
                } else {
                    format!("{address:#x} in {:#x}", mapping.memory_start)
                }
            });
            let stack: Vec<String> = stack.collect();
            let labels = profile.label_sets.get(sample.label_set).iter();
            let labels = labels.filter_map(|label| match label.value {
                LabelValue::Number { value, .. } if text(label.key) == "bytes" => {
                    Some(format!("bytes:[{value}]"))
                }
                _ => None,
            });
            let key = format!("{stack:?} {}", labels.collect::<String>());
            let sums = samples.entry(key);
            let sums = sums.or_insert_with(|| vec![0; profile.series.len()]);
            sums[column] += sample.value;
        }
    }
    samples
}

/// The mappings of a profile.
pub fn mappings_of(profile: &Profile) -> Vec<(u64, u64, u64, String)> {
    let symbols = &profile.symbols;
    let mappings = symbols.mappings().iter().skip(1).map(|mapping| {
        let file = symbols.strings.get(mapping.file).to_owned();
        (
            mapping.memory_start,
            mapping.memory_limit,
            mapping.file_offset,
            file,
        )
    });
    mappings.collect()
}

fn hex(number: &str) -> u64 {
    u64::from_str_radix(number.strip_prefix("0x").expect("0x"), 16).expect("a number")
}
