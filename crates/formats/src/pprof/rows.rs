//! Series as the columns of one table, joined on stack, labels, link and time.

use candela_model::LabelSetId;
use candela_model::Labels;
use candela_model::LinkId;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::ProfileType;
use candela_model::StackId;
use hashbrown::HashMap;

use crate::pprof::metadata::Metadata;
use crate::report::Report;

/// The columns of a file, and what its head says.
#[derive(Debug)]
pub(crate) struct Columns {
    /// What the file calls the columns.
    pub(crate) types: Vec<ProfileType>,
    /// The column of each series.
    column_of: Vec<usize>,
    /// Position in `distinct_labels` of each series.
    labels_of: Vec<u32>,
    /// Labels that tell series apart; empty ones when all series share theirs.
    pub(crate) distinct_labels: Vec<Labels>,
    pub(crate) metadata: Metadata,
    pub(crate) start_ns: i64,
    pub(crate) duration_ns: i64,
    pub(crate) period: i64,
}

/// What rows are joined on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RowKey {
    pub(crate) stack: StackId,
    pub(crate) label_set: LabelSetId,
    pub(crate) link: LinkId,
    pub(crate) time_ns: i64,
    pub(crate) labels: u32,
}

/// A pprof sample.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) key: RowKey,
    pub(crate) values: Vec<i64>,
}

impl Columns {
    /// The columns for all series of a profile, which has at least one.
    pub(crate) fn of(profile: &Profile, report: &mut Report) -> Self {
        let series = &profile.series;
        let mut ids: Vec<ProfileType> = Vec::new();
        let mut column_of = Vec::with_capacity(series.len());
        for one in series {
            let known = ids.iter().position(|id| *id == one.profile_type);
            column_of.push(known.unwrap_or_else(|| {
                ids.push(one.profile_type.clone());
                ids.len() - 1
            }));
        }
        let common = common_labels(series);
        let mut distinct_labels: Vec<Labels> = Vec::new();
        let mut labels_of = Vec::with_capacity(series.len());
        for one in series {
            let own = one
                .labels
                .iter()
                .filter(|&(name, _)| common.get(name).is_none());
            let own = Labels::from_pairs(own);
            let known = distinct_labels.iter().position(|labels| *labels == own);
            labels_of.push(known.unwrap_or_else(|| {
                distinct_labels.push(own);
                distinct_labels.len() - 1
            }) as u32);
        }
        let (start_ns, duration_ns) = common_window(series, report);
        let has_one_period = series.iter().all(|one| one.period == series[0].period);
        if !has_one_period {
            report.note(
                "periods_differ",
                "pprof has one period; the first one was written",
            );
        }
        Self {
            types: column_names(&ids),
            column_of,
            labels_of,
            distinct_labels,
            metadata: Metadata {
                types: ids,
                labels: common,
            },
            start_ns,
            duration_ns,
            period: series[0].period,
        }
    }

    /// The rows in the order in which their keys first appear.
    pub(crate) fn rows(&self, profile: &Profile, keep_times: bool) -> Vec<Row> {
        let mut rows: Vec<Row> = Vec::new();
        let mut positions: HashMap<RowKey, usize> = HashMap::new();
        for (position, series) in profile.series.iter().enumerate() {
            let column = self.column_of[position];
            for sample in &series.samples {
                let key = RowKey {
                    stack: sample.stack,
                    label_set: sample.label_set,
                    link: sample.link,
                    time_ns: if keep_times { sample.time_ns } else { 0 },
                    labels: self.labels_of[position],
                };
                let row = *positions.entry(key).or_insert_with(|| {
                    rows.push(Row {
                        key,
                        values: vec![0; self.types.len()],
                    });
                    rows.len() - 1
                });
                let value = &mut rows[row].values[column];
                *value = value.saturating_add(sample.value);
            }
        }
        rows
    }
}

/// The labels that all series have with the same value.
fn common_labels(series: &[ProfileSeries]) -> Labels {
    let first = series[0].labels.iter();
    let shared =
        first.filter(|&(name, value)| series.iter().all(|one| one.labels.get(name) == Some(value)));
    Labels::from_pairs(shared)
}

/// The window from the first start to the last end.
fn common_window(series: &[ProfileSeries], report: &mut Report) -> (i64, i64) {
    let starts = series.iter().map(|one| one.start_ns);
    let ends = series
        .iter()
        .map(|one| one.start_ns.saturating_add(one.duration_ns));
    let start = starts.min().unwrap_or(0);
    let end = ends.max().unwrap_or(0);
    let window = (start, end - start);
    let is_one = series
        .iter()
        .all(|one| (one.start_ns, one.duration_ns) == window);
    if !is_one {
        report.note(
            "windows_joined",
            "windows of several series were joined into one",
        );
    }
    window
}

/// Column names: pprof tells columns apart by sample type alone, so where two profiles have the
/// same (`delay` of mutexes and of disks) the later ones get their profile's name in front.
fn column_names(ids: &[ProfileType]) -> Vec<ProfileType> {
    let mut named: Vec<ProfileType> = Vec::with_capacity(ids.len());
    for id in ids {
        let mut column = id.clone();
        if named
            .iter()
            .any(|other| other.sample_type == column.sample_type)
        {
            column.sample_type = format!("{}_{}", id.name, id.sample_type);
        }
        named.push(column);
    }
    named
}
