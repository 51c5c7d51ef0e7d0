//! What the tests of callgrind look at in a profile.

use std::collections::BTreeMap;

use candela_formats::Format;
use candela_formats::WriteOptions;
use candela_formats::write;
use candela_model::FlameTree;
use candela_model::FlameTreeBuilder;
use candela_model::Profile;

pub(crate) fn tree(profile: &Profile, position: usize) -> FlameTree {
    let mut builder = FlameTreeBuilder::new();
    builder.add_series(profile, position);
    builder.finish()
}

pub(crate) fn written(profile: &Profile) -> String {
    let mut bytes = Vec::new();
    write(
        Format::Callgrind,
        profile,
        &mut bytes,
        &WriteOptions::default(),
    )
    .unwrap();
    String::from_utf8(bytes).unwrap()
}

/// The same of a profile.
pub(crate) fn own_costs(profile: &Profile) -> BTreeMap<String, Vec<i64>> {
    let mut functions: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    let symbols = &profile.symbols;
    for (position, series) in profile.series.iter().enumerate() {
        for sample in &series.samples {
            let leaf = profile.stacks.get(sample.stack)[0];
            let function = symbols.function(symbols.lines(leaf)[0].function);
            let file = match symbols.strings.get(function.file) {
                "" => "???",
                file => file,
            };
            let name = format!("{file}:{}", symbols.strings.get(function.name));
            let values = functions.entry(name).or_default();
            values.resize(profile.series.len(), 0);
            values[position] += sample.value;
        }
    }
    functions
}
