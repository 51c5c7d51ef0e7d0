//! Labels as they may be stored. Their names come from programs and pushes that nobody checked.

use std::borrow::Cow;

use candela_model::LabelSetId;
use candela_model::LabelSetTable;
use candela_model::LabelValue;
use candela_model::Labels;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::SampleLabel;
use candela_model::StringId;
use candela_model::StringTable;

use crate::report::Report;

/// Leaves out the labels without a name and those whose names are reserved (`__…__`), which selectors give another meaning, and
/// escapes the control characters and line ends in the others: `a⏎b` becomes `a\nb`.
pub(crate) fn clean_labels(profile: &mut Profile, report: &mut Report) {
    for series in &mut profile.series {
        clean_series(series, report);
    }
    clean_label_sets(profile, report);
}

/// Whether no label can have this name: it is empty, or one of those that selectors use for what is not a label
/// (`__profile_type__`).
#[must_use]
pub fn is_reserved_label(name: &str) -> bool {
    let is_framed = name.starts_with("__") && name.ends_with("__");
    name.is_empty() || is_framed && name.len() >= "____".len()
}

fn clean_series(series: &mut ProfileSeries, report: &mut Report) {
    let is_clean = |(name, value): (&str, &str)| {
        let texts = [name, value];
        !is_reserved_label(name)
            && texts
                .iter()
                .all(|text| matches!(escaped(text), Cow::Borrowed(_)))
    };
    if series.labels.iter().all(is_clean) {
        return;
    }
    let kept = series.labels.iter().filter(|(name, _)| {
        let is_reserved = is_reserved_label(name);
        note_reserved(report, u64::from(is_reserved));
        !is_reserved
    });
    let kept: Vec<(&str, &str)> = kept.collect();
    let mut cleaned = Vec::with_capacity(kept.len());
    for (name, value) in kept {
        let texts = [escaped(name), escaped(value)];
        let changed = texts.iter().filter(|text| matches!(text, Cow::Owned(_)));
        note_escaped(report, changed.count());
        cleaned.push(texts.map(Cow::into_owned).into());
    }
    series.labels = Labels::from_pairs::<String, String>(cleaned);
}

fn clean_label_sets(profile: &mut Profile, report: &mut Report) {
    let mut texts = CleanTexts::new(&mut profile.symbols.strings);
    let is_clean = profile
        .label_sets
        .iter()
        .flatten()
        .all(|label| texts.is_clean(label));
    if is_clean {
        return;
    }
    let mut cleaned = LabelSetTable::default();
    let sets = profile.label_sets.iter().map(|labels| {
        let labels = labels.iter().filter_map(|label| texts.cleaned(label));
        cleaned.intern(labels.collect())
    });
    let ids: Vec<LabelSetId> = sets.collect();
    note_reserved(report, texts.reserved);
    note_escaped(report, texts.escaped);
    profile.label_sets = cleaned;
    for sample in profile.series.iter_mut().flat_map(|it| &mut it.samples) {
        sample.label_set = ids[sample.label_set.index()];
    }
}

/// The texts of sample labels. Each is looked at once, as thousands of sets share them.
struct CleanTexts<'a> {
    strings: &'a mut StringTable,
    /// What is known of each string of the table.
    known: Vec<Option<Known>>,
    reserved: u64,
    escaped: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    Clean,
    Escaped(StringId),
}

impl<'a> CleanTexts<'a> {
    fn new(strings: &'a mut StringTable) -> Self {
        Self {
            known: vec![None; strings.len()],
            strings,
            reserved: 0,
            escaped: 0,
        }
    }

    fn is_clean(&mut self, label: &SampleLabel) -> bool {
        !is_reserved_label(self.strings.get(label.key))
            && self.text(label.key) == label.key
            && match label.value {
                LabelValue::Text(text) => self.text(text) == text,
                LabelValue::Number { unit, .. } => self.text(unit) == unit,
            }
    }

    fn cleaned(&mut self, label: &SampleLabel) -> Option<SampleLabel> {
        if is_reserved_label(self.strings.get(label.key)) {
            self.reserved += 1;
            return None;
        }
        let value = match label.value {
            LabelValue::Text(text) => LabelValue::Text(self.text(text)),
            LabelValue::Number { value, unit } => LabelValue::Number {
                value,
                unit: self.text(unit),
            },
        };
        Some(SampleLabel {
            key: self.text(label.key),
            value,
        })
    }

    /// The text that stands for this one; itself when it is clean.
    fn text(&mut self, id: StringId) -> StringId {
        let known = self.known[id.index()].unwrap_or_else(|| {
            let escaped = match escaped(self.strings.get(id)) {
                Cow::Borrowed(_) => None,
                Cow::Owned(text) => Some(text),
            };
            escaped.map_or(Known::Clean, |text| {
                self.escaped += 1;
                Known::Escaped(self.strings.intern(&text))
            })
        });
        self.known[id.index()] = Some(known);
        match known {
            Known::Clean => id,
            Known::Escaped(other) => other,
        }
    }
}

/// A text in which nothing ends a line or drives a terminal; borrowed when it is as it was. It takes three times the bytes at
/// the most, as text that is not UTF-8 does when it is repaired.
fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(breaks_line) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            '\0' => escaped.push_str("\\0"),
            odd if breaks_line(odd) => escaped.push(char::REPLACEMENT_CHARACTER),
            other => escaped.push(other),
        }
    }
    Cow::Owned(escaped)
}

/// Whether a character ends a line or drives a terminal.
#[must_use]
pub fn breaks_line(character: char) -> bool {
    character.is_control() || matches!(character, '\u{2028}' | '\u{2029}')
}

fn note_reserved(report: &mut Report, labels: u64) {
    let text = "labels without a name or with a reserved one (__…__) were left out";
    report.note_many("labels_reserved", text, labels);
}

fn note_escaped(report: &mut Report, texts: usize) {
    let text = "control characters and line ends in labels were escaped";
    report.note_many("labels_escaped", text, texts as u64);
}

#[cfg(test)]
mod tests {
    use candela_model::Sample;
    use candela_model::StackId;

    use super::*;

    #[test]
    fn texts_stay_on_their_line() {
        for (text, wanted) in [
            ("größe 100 %", "größe 100 %"),
            ("a\nb\r\n", "a\\nb\\r\\n"),
            ("nul\0", "nul\\0"),
            ("\u{9b}2J\u{2028}", "\u{fffd}2J\u{fffd}"),
        ] {
            assert_eq!(escaped(text), wanted);
        }
    }

    fn profile(series_label: (&str, &str), sample_label: (&str, &str)) -> Profile {
        let mut profile = Profile::default();
        let labels = Labels::from_pairs([("service_name", "api"), series_label]);
        let profile_type = "a:b:c:d:e".parse().expect("an id");
        let mut series = ProfileSeries::new(labels, profile_type);
        let strings = &mut profile.symbols.strings;
        let (key, value) = (
            strings.intern(sample_label.0),
            strings.intern(sample_label.1),
        );
        let label = SampleLabel::text(key, value);
        let label_set = profile.label_sets.intern(vec![label]);
        series.samples.push(Sample {
            label_set,
            ..Sample::new(StackId(0), 1)
        });
        profile.series.push(series);
        profile
    }

    fn labels_of(profile: &Profile) -> (String, Vec<(String, String)>) {
        let series = &profile.series[0];
        let strings = &profile.symbols.strings;
        let set = profile.label_sets.get(series.samples[0].label_set);
        let set = set.iter().map(|label| {
            let LabelValue::Text(value) = label.value else {
                panic!("a text");
            };
            (
                strings.get(label.key).to_owned(),
                strings.get(value).to_owned(),
            )
        });
        (series.labels.to_string(), set.collect())
    }

    #[test]
    fn reserved_names_are_left_out() {
        let mut reserved = profile(("__name__", "x"), ("__profile_type__", "x"));
        let mut report = Report::default();
        clean_labels(&mut reserved, &mut report);
        assert_eq!(reserved.validate(), Ok(()));
        let (series, sample) = labels_of(&reserved);
        assert_eq!(series, "{service_name=\"api\"}");
        assert_eq!(sample, []);
        assert_eq!(report.count("labels_reserved"), 2);
        let mut nameless = profile(("a", "x"), ("", "x"));
        clean_labels(&mut nameless, &mut report);
        assert_eq!(labels_of(&nameless).1, []);
        for name in ["__half", "half__", "_", "__"] {
            let mut other = profile((name, "x"), (name, "x"));
            let before = labels_of(&other);
            let mut report = Report::default();
            clean_labels(&mut other, &mut report);
            assert_eq!(labels_of(&other), before);
            assert_eq!(report.notes, []);
        }
    }

    #[test]
    fn names_and_values_are_escaped_in_both_kinds_of_labels() {
        let mut odd = profile(("a\0", "one\ntwo"), ("b\0", "three\nfour"));
        let mut report = Report::default();
        clean_labels(&mut odd, &mut report);
        assert_eq!(odd.validate(), Ok(()));
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut wanted = Labels::from_pairs([("service_name", "api")]);
        wanted.set("a\\0", "one\\ntwo");
        assert_eq!(odd.series[0].labels, wanted);
        assert_eq!(labels_of(&odd).1, [pair("b\\0", "three\\nfour")]);
        assert_eq!(report.count("labels_escaped"), 4);
    }
}
