//! Label sets as rows of texts, and back.

use candela_model::LabelSetId;
use candela_model::LabelValue;
use candela_model::SampleLabel;

use super::tables::LabelTable;

/// A label as columns `labels` and `number_units` have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextLabel {
    pub(super) name: String,
    pub(super) value: String,
    /// The unit, when the value is a number.
    pub(super) unit: Option<String>,
}

/// A set with unique names: pprof allows a name twice, maps of other engines do not, so the second
/// one is `name#2`.
pub(super) fn text_labels(table: &LabelTable, set: LabelSetId) -> Vec<TextLabel> {
    let mut row: Vec<TextLabel> = Vec::new();
    let mut previous = None;
    let mut occurrence = 1;
    for label in table.sets.get(set) {
        occurrence = if previous == Some(label.key) {
            occurrence + 1
        } else {
            1
        };
        previous = Some(label.key);
        let key = table.strings.get(label.key);
        let name = if occurrence == 1 {
            key.to_owned()
        } else {
            format!("{key}#{occurrence}")
        };
        let (value, unit) = match label.value {
            LabelValue::Text(text) => (table.strings.get(text).to_owned(), None),
            LabelValue::Number { value, unit } => {
                (value.to_string(), Some(table.strings.get(unit).to_owned()))
            }
        };
        row.push(TextLabel { name, value, unit });
    }
    row
}

/// The set that a row stands for.
pub(super) fn intern_text_labels(table: &mut LabelTable, row: &[TextLabel]) -> LabelSetId {
    let labels = row.iter().map(|label| {
        let key = table.strings.intern(original_name(row, &label.name));
        let number = label
            .unit
            .as_ref()
            .and_then(|unit| Some((label.value.parse::<i64>().ok()?, unit)));
        let value = match number {
            Some((value, unit)) => LabelValue::Number {
                value,
                unit: table.strings.intern(unit),
            },
            None => LabelValue::Text(table.strings.intern(&label.value)),
        };
        SampleLabel { key, value }
    });
    let labels = labels.collect();
    table.sets.intern(labels)
}

/// The name without `#2`, if it was appended.
fn original_name<'a>(row: &[TextLabel], name: &'a str) -> &'a str {
    let Some((base, occurrence)) = name.rsplit_once('#') else {
        return name;
    };
    let is_repeated = occurrence.parse::<u32>().is_ok_and(|number| number >= 2)
        && row.iter().any(|label| label.name == base);
    if is_repeated { base } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_names_and_numbers_round_trip() {
        let mut table = LabelTable::default();
        let (key, first, second) = (
            table.strings.intern("tag"),
            table.strings.intern("a"),
            table.strings.intern("b"),
        );
        let size = table.strings.intern("size");
        let unit = table.strings.intern("bytes");
        let set = table.sets.intern(vec![
            SampleLabel::text(key, first),
            SampleLabel::text(key, second),
            SampleLabel {
                key: size,
                value: LabelValue::Number { value: -3, unit },
            },
        ]);
        let row = text_labels(&table, set);
        let mut names: Vec<&str> = row.iter().map(|label| label.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["size", "tag", "tag#2"]);
        assert_eq!(intern_text_labels(&mut table, &row), set);
    }
}
