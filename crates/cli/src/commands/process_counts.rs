//! What each process did, of kinds that people count as well as look at: requests to block devices, memory, and
//! counters with the ratios that are read of them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use candela_agent::ExplicitEvent;
use candela_agent::event_type;
use candela_formats::format_share;
use candela_formats::format_value;
use candela_model::LabelSetId;
use candela_model::LabelValue;
use candela_model::Profile;
use candela_model::ProfileType;
use candela_model::SERVICE_NAME_LABEL;

use super::record_kinds::Kind;
use crate::table::Table;

const EXECUTABLE_LABEL: &str = "process_executable_name";

/// Counters whose quotient says more than either: title, part, whole.
const SHARES: [(&str, &str, &str); 5] = [
    ("cache misses", "cache-misses", "cache-references"),
    ("branch misses", "branch-misses", "branches"),
    ("LLC misses", "LLC-load-misses", "LLC-loads"),
    ("L1 misses", "L1-dcache-load-misses", "L1-dcache-loads"),
    ("TLB misses", "dTLB-load-misses", "dTLB-loads"),
];

/// A process, or all of them.
struct Row {
    name: String,
    pid: String,
    /// One for each type that is asked for.
    sums: Vec<i64>,
}

/// The tables of those kinds among these that have any, with up to `limit` processes (0: all) each; empty
/// without such kinds.
pub(crate) fn text(profile: &Profile, kinds: &[Kind], limit: usize) -> String {
    let counter = |kind: &Kind| match kind {
        Kind::Event(event @ ExplicitEvent::Counter(_)) => Some(event.clone()),
        _ => None,
    };
    let counters: Vec<ExplicitEvent> = kinds.iter().filter_map(counter).collect();
    let mut tables = Vec::new();
    if kinds.contains(&Kind::Sampled(candela_agent::Kind::BlockIo)) {
        tables.push(requests_table(profile, limit));
    }
    if kinds.contains(&Kind::ALLOC) {
        tables.push(memory_table(profile, limit));
    }
    if !counters.is_empty() {
        tables.push(counters_table(profile, &counters, limit));
    }
    let tables = tables.iter().filter(|table| table.len() > 0);
    let texts: Vec<String> = tables.map(Table::to_text).collect();
    texts.join("\n")
}

/// The process of each set of sample labels.
pub(crate) fn pids_of(profile: &Profile) -> Vec<Option<i64>> {
    let strings = &profile.symbols.strings;
    let pid_of = |set: usize| {
        let labels = profile.label_sets.get(LabelSetId::from_index(set));
        let label = labels
            .iter()
            .find(|label| strings.get(label.key) == "pid")?;
        match label.value {
            LabelValue::Number { value, .. } => Some(value),
            LabelValue::Text(_) => None,
        }
    };
    (0..profile.label_sets.len()).map(pid_of).collect()
}

fn requests_table(profile: &Profile, limit: usize) -> Table {
    let io =
        |sample_type, unit| ProfileType::new("block_io", sample_type, unit, "requests", "count");
    let types = [io("requests", "count"), io("delay", "nanoseconds")];
    let headings = ["PROCESS", "PID", "REQUESTS", "DELAY", "MEAN"];
    let mut table = Table::with_names(headings.map(str::to_owned).to_vec());
    for row in rows(profile, &types, limit) {
        let time = |value_ns| format_value(value_ns, "nanoseconds");
        let (requests, delay_ns) = (row.sums[0], row.sums[1]);
        // Some have not ended yet.
        let mean = delay_ns.checked_div(requests).map_or_else(none, time);
        table.push(vec![
            row.name,
            row.pid,
            requests.to_string(),
            time(delay_ns),
            mean,
        ]);
    }
    table
}

/// How much is allocated beside how much is in use. The time in which a program allocates as much again is what a
/// garbage collector has at most to make room.
fn memory_table(profile: &Profile, limit: usize) -> Table {
    let bytes = |sample_type| ProfileType::new("memory", sample_type, "bytes", "space", "bytes");
    let types = [bytes("alloc_space"), bytes("inuse_space")];
    let of_memory = profile.series.iter();
    let of_memory = of_memory.filter(|series| types.contains(&series.profile_type));
    let duration_ns = of_memory.map(|series| series.duration_ns).max();
    let seconds = duration_ns.unwrap_or_default() as f64 / 1e9;
    let headings = [
        "PROCESS",
        "PID",
        "ALLOCATED",
        "PER SECOND",
        "IN USE",
        "AS MUCH AGAIN IN",
    ];
    let mut table = Table::with_names(headings.map(str::to_owned).to_vec());
    for row in rows(profile, &types, limit) {
        let (allocated, in_use) = (row.sums[0], row.sums[1]);
        let are_known = allocated > 0 && in_use > 0 && seconds > 0.0;
        let per_second = allocated as f64 / seconds;
        let size = |bytes| format_value(bytes, "bytes");
        table.push(vec![
            row.name,
            row.pid,
            size(allocated),
            match seconds > 0.0 {
                true => size(per_second as i64),
                false => none(),
            },
            size(in_use),
            match are_known {
                true => format_value((in_use as f64 / per_second * 1e9) as i64, "nanoseconds"),
                false => none(),
            },
        ]);
    }
    table
}

fn counters_table(profile: &Profile, counters: &[ExplicitEvent], limit: usize) -> Table {
    let names: Vec<String> = counters.iter().map(ExplicitEvent::short_name).collect();
    let types: Vec<ProfileType> = counters.iter().map(event_type).collect();
    let place = |name: &str| names.iter().position(|it| it == name);
    let per_cycle = place("instructions").zip(place("cycles"));
    let shares: Vec<(&str, usize, usize)> = SHARES
        .iter()
        .filter_map(|(title, part, whole)| Some((*title, place(part)?, place(whole)?)))
        .collect();
    let mut headings = vec!["PROCESS".to_owned(), "PID".to_owned()];
    headings.extend(names.iter().cloned());
    headings.extend(per_cycle.map(|_| "IPC".to_owned()));
    headings.extend(shares.iter().map(|(title, ..)| (*title).to_owned()));
    let mut table = Table::with_names(headings);
    for row in rows(profile, &types, limit) {
        let mut cells = vec![row.name, row.pid];
        cells.extend(row.sums.iter().map(ToString::to_string));
        cells.extend(
            per_cycle.map(|(instructions, cycles)| match row.sums[cycles] {
                0 => none(),
                cycles => format!("{:.2}", row.sums[instructions] as f64 / cycles as f64),
            }),
        );
        cells.extend(
            shares
                .iter()
                .map(|(_, part, whole)| match row.sums[*whole] {
                    0 => none(),
                    whole => format_share(row.sums[*part], whole),
                }),
        );
        table.push(cells);
    }
    table
}

fn none() -> String {
    "-".to_owned()
}

/// The processes by what they have of the first type, and all together where there are several.
fn rows(profile: &Profile, types: &[ProfileType], limit: usize) -> Vec<Row> {
    let pids = pids_of(profile);
    let mut sums: BTreeMap<(String, Option<i64>), Vec<i64>> = BTreeMap::new();
    let mut all = vec![0_i64; types.len()];
    for series in &profile.series {
        let Some(place) = types.iter().position(|it| *it == series.profile_type) else {
            continue;
        };
        let label = |name| series.labels.get(name);
        let name = label(EXECUTABLE_LABEL).or_else(|| label(SERVICE_NAME_LABEL));
        for sample in &series.samples {
            let process = (
                name.unwrap_or_default().to_owned(),
                pids[sample.label_set.index()],
            );
            let row = sums.entry(process).or_insert_with(|| vec![0; types.len()]);
            row[place] = row[place].saturating_add(sample.value);
            all[place] = all[place].saturating_add(sample.value);
        }
    }
    let is_several = sums.len() > 1;
    let mut rows: Vec<Row> = sums
        .into_iter()
        .map(|((name, pid), sums)| Row {
            name,
            pid: pid.map_or_else(none, |pid| pid.to_string()),
            sums,
        })
        .collect();
    rows.sort_by_key(|row| Reverse(row.sums[0]));
    let rest = if limit == 0 {
        0
    } else {
        rows.len().saturating_sub(limit)
    };
    rows.truncate(rows.len() - rest);
    let name = match rest {
        0 => "all".to_owned(),
        rest => format!("all, with {rest} more"),
    };
    rows.extend(is_several.then(|| Row {
        name,
        pid: none(),
        sums: all,
    }));
    rows
}

#[cfg(test)]
mod tests {
    use candela_model::Labels;
    use candela_model::ProfileSeries;
    use candela_model::Sample;
    use candela_model::SampleLabel;
    use candela_model::StackId;
    use candela_model::StringId;

    use super::*;

    fn kinds(names: &[&str]) -> Vec<Kind> {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        super::super::record_kinds::parse(&names).expect("kinds")
    }

    /// Two processes of one program and one of another; a value of each type for each of them.
    fn profile(values: &[(ProfileType, [i64; 3])]) -> Profile {
        let mut profile = Profile::default();
        let key = profile.symbols.strings.intern("pid");
        for (profile_type, values) in values {
            for (name, pid, value) in [
                ("db", 7, values[0]),
                ("db", 8, values[1]),
                ("web", 9, values[2]),
            ] {
                let labels = Labels::from_pairs([(EXECUTABLE_LABEL, name)]);
                let unit = StringId::default();
                let label = SampleLabel {
                    key,
                    value: LabelValue::Number { value: pid, unit },
                };
                let label_set = profile.label_sets.intern(vec![label]);
                let mut series = ProfileSeries::new(labels, profile_type.clone());
                // In two samples, as stacks differ.
                for value in [value / 2, value - value / 2] {
                    let sample = Sample::new(StackId::default(), value);
                    series.samples.push(Sample {
                        label_set,
                        ..sample
                    });
                }
                profile.series.push(series);
            }
        }
        profile
    }

    /// Lines with one space between words.
    fn lines(text: &str) -> Vec<String> {
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        text.lines().map(words).collect()
    }

    #[test]
    fn counters_have_their_ratios_by_process() {
        let names = ["cycles", "instructions", "branches", "branch-misses"];
        let kinds = kinds(&names);
        let values = [
            [1_000, 3_000, 0],
            [2_000, 1_500, 100],
            [400, 100, 0],
            [4, 25, 0],
        ];
        let types = kinds.iter().map(|kind| match kind {
            Kind::Event(event) => event_type(event),
            other => panic!("{other:?} is no event"),
        });
        let profile = profile(&types.zip(values).collect::<Vec<_>>());
        assert_eq!(
            lines(&text(&profile, &kinds, 0)),
            [
                "PROCESS PID cycles instructions branches branch-misses IPC branch misses",
                "db 8 3000 1500 100 25 0.50 25.00%",
                "db 7 1000 2000 400 4 2.00 1.00%",
                "web 9 0 100 0 0 - -",
                "all - 4000 3600 500 29 0.90 5.80%",
            ]
        );
        let short = lines(&text(&profile, &kinds, 1));
        assert_eq!(short.len(), 3);
        assert!(
            short[2].starts_with("all, with 2 more - 4000 "),
            "{short:?}"
        );
        // Without cycles there is nothing to divide by.
        let alone = lines(&text(&profile, &kinds[1..2], 0));
        assert_eq!(alone[0], "PROCESS PID instructions");
    }

    #[test]
    fn requests_are_told_with_their_mean_delay() {
        let kinds = kinds(&["io", "cpu"]);
        let io = |sample_type, unit| {
            ProfileType::new("block_io", sample_type, unit, "requests", "count")
        };
        let profile = profile(&[
            (io("requests", "count"), [4, 10, 0]),
            (io("delay", "nanoseconds"), [8_000_000, 5_000, 1_000]),
        ]);
        assert_eq!(
            lines(&text(&profile, &kinds, 0)),
            [
                "PROCESS PID REQUESTS DELAY MEAN",
                "db 8 10 5.00µs 500ns",
                "db 7 4 8.00ms 2.00ms",
                "web 9 0 1.00µs -",
                "all - 14 8.01ms 571.86µs",
            ]
        );
    }

    #[test]
    fn memory_is_told_with_the_time_in_which_it_turns_over() {
        let kinds = kinds(&["alloc"]);
        let bytes =
            |sample_type| ProfileType::new("memory", sample_type, "bytes", "space", "bytes");
        let mut profile = profile(&[
            (bytes("alloc_space"), [8 << 20, 4 << 20, 1 << 20]),
            (bytes("inuse_space"), [1 << 20, 4 << 20, 0]),
        ]);
        for series in &mut profile.series {
            series.duration_ns = 2_000_000_000;
        }
        let told = lines(&text(&profile, &kinds, 0));
        assert_eq!(
            told[0],
            "PROCESS PID ALLOCATED PER SECOND IN USE AS MUCH AGAIN IN"
        );
        assert!(
            told[1].starts_with("db 7 ") && told[1].ends_with("250.00ms"),
            "{told:?}"
        );
        assert!(
            told[2].starts_with("db 8 ") && told[2].ends_with("2.00s"),
            "{told:?}"
        );
        assert!(
            told[3].starts_with("web 9 ") && told[3].ends_with(" -"),
            "{told:?}"
        );
        assert_eq!(told.len(), 5, "{told:?}");
    }

    #[test]
    fn other_kinds_have_no_table() {
        let profile = profile(&[(Kind::CPU.profile_type(), [1, 2, 3])]);
        assert_eq!(text(&profile, &kinds(&["cpu", "off-cpu"]), 0), "");
        assert_eq!(
            text(&profile, &kinds(&["io", "cycles"]), 0),
            "",
            "nothing came"
        );
    }
}
