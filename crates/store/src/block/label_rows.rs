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
/// one is `name#2`. A name that itself ends like that has `#1` behind it, so that each row of texts
/// stands for one set.
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
        let name = if occurrence == 1 && numbered(key).is_none() {
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

/// The name without the number, if one was appended. In blocks from before there was `#1` a number
/// may be the name's own, so it is one of ours only where it must be.
fn original_name<'a>(row: &[TextLabel], name: &'a str) -> &'a str {
    let Some((base, number)) = numbered(name) else {
        return name;
    };
    let is_there = |name: &str| row.iter().any(|label| label.name == name);
    let is_appended = match (number, numbered(base)) {
        ("1", own) => own.is_some(),
        (_, None) => is_there(base),
        (_, Some(_)) => is_there(&format!("{base}#1")),
    };
    if is_appended { base } else { name }
}

/// The parts of a name that ends in `#` and digits.
fn numbered(name: &str) -> Option<(&str, &str)> {
    let (base, number) = name.rsplit_once('#')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some((base, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_repeated_stay_apart() {
        let mut table = LabelTable::default();
        let mut rows = Vec::new();
        for names in [
            &["k", "k#2"][..],
            &["k", "k"],
            &["k#2", "k#2"],
            &["k", "k", "k#2", "k#2"],
            &["k#1"],
            &["k#1", "k#1", "k#1#1"],
            &["k#", "k#x", "#1"],
        ] {
            let labels = names.iter().enumerate().map(|(number, name)| {
                let value = table.strings.intern(&number.to_string());
                SampleLabel::text(table.strings.intern(name), value)
            });
            let labels = labels.collect();
            let set = table.sets.intern(labels);
            let row = text_labels(&table, set);
            assert!(!rows.contains(&row), "{row:?}");
            assert_eq!(intern_text_labels(&mut table, &row), set, "{row:?}");
            rows.push(row);
        }
    }

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
