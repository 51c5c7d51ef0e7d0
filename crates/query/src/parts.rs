//! Single profiles and spans: what lines have of each.

use std::cmp::Ordering;
use std::sync::Arc;

use candela_model::Labels;
use candela_model::Link;
use candela_model::ProfileType;
use candela_store::Tier;
use hashbrown::HashMap;

use crate::budget::Meter;
use crate::engine::Engine;
use crate::engine::Loaded;
use crate::error::Failure;
use crate::error::QueryError;
use crate::line_values::Groups;
use crate::line_values::LineReader;
use crate::plan::Plan;
use crate::profile_key::ProfileKey;
use crate::run::Run;
use crate::sources::Source;
use crate::span_sums::Linked;
use crate::span_sums::sums_of_spans;
use crate::steps::Steps;
use crate::taken::Taken;

/// Bytes of a part with its place in the table and in the sorted list.
const PART_BYTES: usize = size_of::<(PartKey, PartSum)>() + 1 + size_of::<Part<'_>>();
/// What is said of sums.
const NO_SINGLE_PROFILES: &str = "in which no single profile and no span is: they are left out";

/// What single values are of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExemplarKind {
    /// A profile: one series and window.
    #[default]
    Profile,
    /// A span: what a step has of it in profiles of one series.
    Span,
}

/// A single profile or span that stands for many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exemplar {
    /// Start of the profile's window, of a span the first one; nanoseconds since the Unix epoch.
    pub start_ns: i64,
    /// What the line has of it, in the unit of the type.
    pub value: i64,
    /// The labels of its series.
    pub labels: Labels,
    /// Which it is.
    pub of: ExemplarOf,
}

/// What names a single profile or span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExemplarOf {
    /// A profile; [`Query::profiles`](crate::Query::profiles) takes its key.
    Profile(ProfileKey),
    /// A span and its trace; [`Query::links`](crate::Query::links) takes both. The trace is all zeros when it is not
    /// known: then the span alone is asked for.
    Span(Link),
}

/// All parts of a query.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    pub(crate) groups: Groups,
    pub(crate) taken: Taken,
    sums: HashMap<PartKey, PartSum>,
}

/// What is a part of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct PartKey {
    line: u32,
    point_ns: i64,
    series: u32,
    /// What there is of a span in a step is one part, whenever its profiles start.
    start_ns: Option<i64>,
    trace_id: [u8; 16],
    span_id: [u8; 8],
}

#[derive(Clone, Debug)]
struct PartSum {
    value: i64,
    start_ns: i64,
    /// The type as it is stored, which keys are made with.
    profile_type: Arc<ProfileType>,
}

/// What of a source is read, and into which lines and steps.
#[derive(Clone, Copy)]
struct Reading<'a> {
    lines: &'a LineReader<'a>,
    source: &'a Source,
    runs: &'a [Run],
    steps: Steps,
    meter: &'a Meter,
}

/// A part of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'a> {
    key: &'a PartKey,
    sum: &'a PartSum,
}

impl Engine {
    /// The profiles or spans of a plan by line and step. What is only in sums is left out and told.
    pub(crate) fn parts(
        &self,
        plan: &Plan,
        loaded: &mut Loaded,
        steps: Steps,
        group_by: &[String],
        kind: ExemplarKind,
    ) -> Result<Parts, QueryError> {
        loaded.tell_of_sums(plan, Tier::TenMinutes, NO_SINGLE_PROFILES);
        let lines = LineReader {
            engine: self,
            plan,
            group_by,
        };
        let mut parts = Parts::default();
        self.for_each_source(plan, loaded, |source, part, meter| {
            if source.day_of_sums().is_some() {
                return Ok(());
            }
            let before = parts.sums.capacity();
            let reading = Reading {
                lines: &lines,
                source,
                runs: &part.runs,
                steps,
                meter,
            };
            let taken = match kind {
                ExemplarKind::Profile => parts.add_profiles(&reading)?,
                ExemplarKind::Span => parts.add_spans(&reading)?,
            };
            parts.taken.add_all(taken);
            meter.allocate((parts.sums.capacity() - before) * PART_BYTES)?;
            Ok(())
        })?;
        Ok(parts)
    }
}

impl Parts {
    /// All parts, by line and step.
    pub(crate) fn sorted(&self) -> Vec<Part<'_>> {
        let parts = self.sums.iter().map(|(key, sum)| Part { key, sum });
        let mut parts: Vec<Part<'_>> = parts.collect();
        parts.sort_unstable_by_key(|part| part.key);
        parts
    }

    fn add_profiles(&mut self, reading: &Reading<'_>) -> Result<Taken, Failure> {
        let Reading { source, runs, .. } = *reading;
        let Self { groups, sums, .. } = self;
        let each = |line, run: &Run, value| {
            // Whether samples are looked at or the total is enough, a profile without any is none.
            if run.row.sample_count == 0 {
                return;
            }
            let key = PartKey {
                line,
                point_ns: reading.steps.point_of(run.row.start_ns),
                series: run.series,
                start_ns: Some(run.row.start_ns),
                trace_id: [0; 16],
                span_id: [0; 8],
            };
            add(sums, key, source, run, value);
        };
        reading
            .lines
            .read(source, runs, reading.meter, groups, each)
    }

    fn add_spans(&mut self, reading: &Reading<'_>) -> Result<Taken, Failure> {
        let Reading { source, runs, .. } = *reading;
        let Self { groups, sums, .. } = self;
        let has_sets = |run: &Run| reading.lines.groups_by_sample(source, run);
        let spans = sums_of_spans(source, runs, Linked::OfSpans, has_sets, reading.meter)?;
        source.with_sample_labels(|labels| {
            for (&(position, set, link), &value) in &spans.sums {
                let run = &runs[position as usize];
                let key = PartKey {
                    line: reading.lines.line_of(groups, run, set, &link, labels),
                    point_ns: reading.steps.point_of(run.row.start_ns),
                    series: run.series,
                    start_ns: None,
                    trace_id: link.trace_id,
                    span_id: link.span_id,
                };
                add(sums, key, source, run, value);
            }
        })?;
        Ok(spans.taken)
    }
}

fn add(sums: &mut HashMap<PartKey, PartSum>, key: PartKey, source: &Source, run: &Run, value: i64) {
    let start_ns = run.row.start_ns;
    let sum = sums.entry(key).or_insert_with(|| PartSum {
        value: 0,
        start_ns,
        profile_type: Arc::clone(&source.profiles.types[run.row.profile_type as usize]),
    });
    sum.value = sum.value.saturating_add(value);
    sum.start_ns = start_ns.min(sum.start_ns);
}

impl<'a> Part<'a> {
    pub(crate) fn line(self) -> u32 {
        self.key.line
    }

    pub(crate) fn point_ns(self) -> i64 {
        self.key.point_ns
    }

    pub(crate) fn value(self) -> i64 {
        self.sum.value
    }

    /// The one of the highest value; of equal ones the first, so that answers are always the same.
    pub(crate) fn better(self, other: Part<'a>, plan: &Plan) -> Part<'a> {
        let labels = |part: Part<'_>| &*plan.series[part.key.series as usize];
        let by_value = self.sum.value.cmp(&other.sum.value);
        let by_place = || {
            let by_start = other.sum.start_ns.cmp(&self.sum.start_ns);
            let by_labels = || labels(other).cmp(labels(self));
            let tenant = |part: Part<'_>| plan.tenant_of(part.key.series);
            let by_tenant = || tenant(other).cmp(tenant(self));
            let ids = |part: Part<'a>| (part.key.trace_id, part.key.span_id);
            let by_ids = || ids(other).cmp(&ids(self));
            by_start
                .then_with(by_labels)
                .then_with(by_tenant)
                .then_with(by_ids)
        };
        match by_value.then_with(by_place) {
            Ordering::Less => other,
            Ordering::Equal | Ordering::Greater => self,
        }
    }

    /// It as an exemplar.
    pub(crate) fn exemplar(self, plan: &Plan) -> Exemplar {
        let labels = &plan.series[self.key.series as usize];
        let of = match self.key.start_ns {
            Some(start_ns) => {
                let profile_type = &self.sum.profile_type;
                let tenant = plan.tenant_of(self.key.series);
                let key = ProfileKey::new(tenant, labels, profile_type, start_ns);
                ExemplarOf::Profile(key)
            }
            None => ExemplarOf::Span(Link {
                trace_id: self.key.trace_id,
                span_id: self.key.span_id,
            }),
        };
        Exemplar {
            start_ns: self.sum.start_ns,
            value: self.sum.value,
            labels: Labels::clone(labels),
            of,
        }
    }
}
