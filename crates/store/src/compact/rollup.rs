//! Sums over ten minutes and over an hour, made from profiles as they pass by.
//!
//! What can be summed is summed over the instances of a service: only the labels that name it and
//! its version stay. Gauges keep all labels, since their mean is over each series' profiles; for
//! that a rolled up profile says how many it has in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use candela_model::Labels;
use candela_model::ProfileType;
use candela_model::Temporality;
use hashbrown::HashMap;

use super::tail::CutSample;
use super::tail::cut_tail;
use crate::block::ProfileFacts;
use crate::block::ProfileList;
use crate::block::SampleSource;
use crate::block::SourceSample;
use crate::block::Tier;
use crate::head::HeadProfile;
use crate::head::HeadTables;

/// The labels that rollups keep of series whose values can be summed; of gauges they keep all.
pub const KEPT_LABELS: [&str; 3] = ["service_name", "namespace", "version"];

/// A sample source that adds up what it hands on.
#[derive(Debug)]
pub(super) struct Tap<'a, S> {
    inner: S,
    list: &'a ProfileList,
    next_profile: usize,
    rollups: Vec<Rollup<'a>>,
}

/// The sums of one tier.
#[derive(Debug)]
struct Rollup<'a> {
    tier: Tier,
    tables: &'a HeadTables,
    types: &'a [Arc<ProfileType>],
    /// For each series and whether it is of a gauge the labels in the rollup.
    groups: HashMap<(u32, bool), u32>,
    labels: Vec<Arc<Labels>>,
    numbers: HashMap<Arc<Labels>, u32>,
    /// The bucket that is being filled: service as one of its series, type, start.
    bucket: Option<(u32, i64)>,
    /// By labels and period: a count that is derived from a time needs the period.
    sums: BTreeMap<(u32, i64), Sums>,
    done: Vec<RolledUp>,
}

/// The sums of one series and bucket.
#[derive(Debug, Default)]
struct Sums {
    by_node: HashMap<u32, i64>,
    profiles: u32,
}

/// A profile of a rollup.
#[derive(Debug)]
pub(super) struct RolledUp {
    labels: Arc<Labels>,
    profile_type: Arc<ProfileType>,
    start_ns: i64,
    period: i64,
    profiles: u32,
    samples: Vec<CutSample>,
}

/// The rolled up profiles of a tier.
#[derive(Debug)]
pub(super) struct TierProfiles {
    pub(super) tier: Tier,
    pub(super) profiles: Vec<RolledUp>,
}

impl<'a, S: SampleSource> Tap<'a, S> {
    pub(super) fn new(
        inner: S,
        list: &'a ProfileList,
        tables: &'a HeadTables,
        tiers: &[Tier],
    ) -> Self {
        let rollup = |&tier: &Tier| Rollup {
            tier,
            tables,
            types: &list.types,
            groups: HashMap::new(),
            labels: Vec::new(),
            numbers: HashMap::new(),
            bucket: None,
            sums: BTreeMap::new(),
            done: Vec::new(),
        };
        Self {
            inner,
            list,
            next_profile: 0,
            rollups: tiers.iter().map(rollup).collect(),
        }
    }

    /// The sums, after the last profile.
    pub(super) fn finish(self) -> Vec<TierProfiles> {
        let rollups = self.rollups.into_iter();
        let finished = rollups.map(|mut rollup| {
            rollup.close_bucket();
            TierProfiles {
                tier: rollup.tier,
                profiles: rollup.done,
            }
        });
        finished.collect()
    }
}

impl<S: SampleSource> SampleSource for Tap<'_, S> {
    fn has_traces(&self) -> bool {
        self.inner.has_traces()
    }

    fn next_profile(&mut self, samples: &mut Vec<SourceSample>) -> Result<(), String> {
        self.inner.next_profile(samples)?;
        let facts = &self.list.rows[self.next_profile];
        let labels = &self.list.series[facts.series as usize];
        for rollup in &mut self.rollups {
            rollup.add(facts, labels, samples);
        }
        self.next_profile += 1;
        Ok(())
    }
}

impl Rollup<'_> {
    fn add(&mut self, facts: &ProfileFacts, labels: &Arc<Labels>, samples: &[SourceSample]) {
        let start_ns = bucket_start(facts.start_ns, self.tier.bucket_ns());
        // Profiles come by service, type and time, so what is in another bucket ends this one. Of
        // two services the types may be the same, but then the time goes back or the labels differ.
        let bucket = (facts.profile_type, start_ns);
        if self.bucket != Some(bucket) {
            self.close_bucket();
            self.bucket = Some(bucket);
        }
        let group = self.group(facts, labels);
        let sums = self.sums.entry((group, facts.period)).or_default();
        sums.profiles = sums.profiles.saturating_add(facts.merged_profiles);
        for sample in samples {
            let sum = sums.by_node.entry(sample.node).or_default();
            *sum = sum.saturating_add(sample.value);
        }
    }

    fn group(&mut self, facts: &ProfileFacts, labels: &Arc<Labels>) -> u32 {
        let profile_type = &self.types[facts.profile_type as usize];
        let is_gauge = profile_type.temporality() == Temporality::Gauge;
        let (known, numbers) = (&mut self.labels, &mut self.numbers);
        *self
            .groups
            .entry((facts.series, is_gauge))
            .or_insert_with(|| {
                let kept = if is_gauge {
                    Arc::clone(labels)
                } else {
                    Arc::new(kept_labels(labels))
                };
                *numbers.entry(kept).or_insert_with_key(|kept| {
                    known.push(Arc::clone(kept));
                    known.len() as u32 - 1
                })
            })
    }

    fn close_bucket(&mut self) {
        let Some((profile_type, start_ns)) = self.bucket.take() else {
            return;
        };
        for ((group, period), sums) in std::mem::take(&mut self.sums) {
            let nonzero = sums.by_node.into_iter().filter(|(_, value)| *value != 0);
            let mut samples: Vec<(u32, i64)> = nonzero.collect();
            samples.sort_unstable_by_key(|(node, _)| *node);
            let samples = match self.tier {
                Tier::Hourly => cut_tail(self.tables.parents(), &samples),
                _ => samples.into_iter().map(CutSample::kept).collect(),
            };
            self.done.push(RolledUp {
                labels: Arc::clone(&self.labels[group as usize]),
                profile_type: Arc::clone(&self.types[profile_type as usize]),
                start_ns,
                period,
                profiles: sums.profiles,
                samples,
            });
        }
    }
}

impl TierProfiles {
    /// The profiles as those of a head with these tables.
    pub(super) fn into_head(self, tables: &mut HeadTables) -> Vec<HeadProfile> {
        let bucket_ns = self.tier.bucket_ns();
        let profiles = self.profiles.into_iter();
        profiles
            .map(|profile| profile.into_head(bucket_ns, tables))
            .collect()
    }
}

impl RolledUp {
    fn into_head(self, duration_ns: i64, tables: &mut HeadTables) -> HeadProfile {
        let mut samples: Vec<(u32, i64)> = self
            .samples
            .iter()
            .map(|sample| (sample.node(tables), sample.value))
            .collect();
        samples.sort_unstable_by_key(|(node, _)| *node);
        HeadProfile {
            labels: self.labels,
            profile_type: self.profile_type,
            start_ns: self.start_ns,
            duration_ns,
            period: self.period,
            merged_profiles: self.profiles,
            total: samples
                .iter()
                .fold(0, |total: i64, (_, value)| total.saturating_add(*value)),
            nodes: samples.iter().map(|(node, _)| *node).collect(),
            values: samples.iter().map(|(_, value)| *value).collect(),
            details: None,
        }
    }
}

/// The labels that a rollup keeps of a series.
pub(crate) fn kept_labels(labels: &Labels) -> Labels {
    let kept = KEPT_LABELS
        .into_iter()
        .filter_map(|name| Some((name, labels.get(name)?)));
    Labels::from_pairs(kept)
}

pub(super) fn bucket_start(time_ns: i64, bucket_ns: i64) -> i64 {
    // The very first bucket of 64-bit time begins before it.
    time_ns
        .checked_sub(time_ns.rem_euclid(bucket_ns))
        .unwrap_or(i64::MIN)
}
