//! All matching samples as one profile.

use candela_model::FunctionId;
use candela_model::LabelSetId;
use candela_model::LabelValue;
use candela_model::Labels;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::Mapping;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use candela_model::SampleLabel;
use candela_model::StackId;
use candela_model::StackTable;
use candela_store::LocationTable;
use candela_store::Tier;
use hashbrown::HashMap;

use crate::budget::Meter;
use crate::engine::Engine;
use crate::engine::Loaded;
use crate::error::Failure;
use crate::error::QueryError;
use crate::flame::NO_STACK_PASSES;
use crate::flame::Rounded;
use crate::flame::weights;
use crate::left_sums::WITHOUT_RARE_STACKS;
use crate::left_sums::WITHOUT_SAMPLE_LABELS;
use crate::matching::SampleLabels;
use crate::plan::Plan;
use crate::query::Answer;
use crate::query::Query;
use crate::sources::Source;
use crate::sources::SourceData;
use crate::sums::StackSums;
use crate::taken::Taken;
use crate::tiers::coarsest_tier;

/// Stacks of a head that are translated while its tables are held.
const STACKS_AT_ONCE: usize = 256;
/// Bytes of a location with its lines and functions.
const LOCATION_BYTES: usize = 200;
/// Bytes of a stack: a list of twenty locations or so, and its place in a table.
const STACK_BYTES: usize = 120;
/// Bytes of a sum with its key, and of the sample that it becomes.
const SUM_BYTES: usize = 64;

/// The profile in the making, with fractions until all is added up.
#[derive(Default)]
struct Merge {
    profile: Profile,
    sums: HashMap<(StackId, LabelSetId), f64>,
    exact: HashMap<(StackId, LabelSetId), i64>,
}

/// The stacks of a source.
#[derive(Clone, Copy)]
struct SourceStacks<'a> {
    parents: &'a [u32],
    locations: &'a [u32],
    table: &'a LocationTable,
}

/// What the locations of a source are in the profile, by their rows, root side first.
#[derive(Default)]
struct Translation {
    known: HashMap<Vec<u32>, LocationId>,
}

impl Engine {
    /// One profile with one series of everything that matches: mappings, build ids, lines and the
    /// samples' labels are kept, times and trace links are not. Its labels are those that all
    /// series share.
    ///
    /// # Errors
    /// As [`Engine::flame_tree`].
    pub fn profile(&self, query: &Query) -> Result<Answer<Profile>, QueryError> {
        // Sums have lost the labels of samples, which belong to a merged profile.
        let mut loaded = self.load(query, query.range, Tier::Raw)?;
        let plan = self.plan_of_stacks(query, &mut loaded)?;
        loaded.tell_of_sums(&plan, Tier::TenMinutes, WITHOUT_SAMPLE_LABELS);
        self.merge(query, &plan, true, loaded)
    }

    /// The same without the labels of samples, for questions about code. Sums over ten minutes answer
    /// as profiles do; those over an hour, in which rare stacks are cut, do not stand for what is finer.
    ///
    /// # Errors
    /// As [`Engine::flame_tree`].
    pub fn profile_of_code(&self, query: &Query) -> Result<Answer<Profile>, QueryError> {
        let tier = coarsest_tier(query, &[]).min(Tier::TenMinutes);
        let mut loaded = self.load(query, query.range, tier)?;
        let plan = self.plan_of_stacks(query, &mut loaded)?;
        loaded.tell_of_sums(&plan, Tier::Hourly, WITHOUT_RARE_STACKS);
        self.merge(query, &plan, false, loaded)
    }

    fn merge(
        &self,
        query: &Query,
        plan: &Plan,
        by_labels: bool,
        mut loaded: Loaded,
    ) -> Result<Answer<Profile>, QueryError> {
        let weights = weights(plan, plan.aggregation(query));
        let mut merge = Merge::default();
        let mut taken = Taken::default();
        self.for_each_source(plan, &mut loaded, |source, part, meter| {
            let before = merge.bytes();
            if let Some(weights) = &weights {
                let summed =
                    self.sums_by_stack::<f64>(source, &part.runs, by_labels, weights, meter)?;
                taken.add_all(summed.taken());
                merge.add(source, summed.sums(), meter, |merge, key, sum| {
                    *merge.sums.entry(key).or_default() += sum;
                })?;
            } else {
                let summed =
                    self.sums_by_stack::<i64>(source, &part.runs, by_labels, &[], meter)?;
                taken.add_all(summed.taken());
                merge.add(source, summed.sums(), meter, |merge, key, sum| {
                    let total = merge.exact.entry(key).or_default();
                    *total = total.saturating_add(sum);
                })?;
            }
            meter.allocate(merge.bytes().saturating_sub(before))?;
            Ok(())
        })?;
        let mut profile = merge.finish(plan);
        query.filters.apply_frames_to_profile(&mut profile);
        let is_empty = profile.sample_count() == 0;
        let answer = self.answer(query, &loaded, plan, taken, profile)?;
        Ok(answer.with_hint_if(is_empty, NO_STACK_PASSES))
    }
}

impl Merge {
    /// Estimated bytes in memory.
    fn bytes(&self) -> usize {
        let symbols = &self.profile.symbols;
        let sums = self.sums.len() + self.exact.len();
        symbols.locations().len() * LOCATION_BYTES
            + symbols.strings.text_bytes()
            + self.profile.stacks.len() * STACK_BYTES
            + sums * SUM_BYTES
    }

    fn add<A: crate::sums::Amount>(
        &mut self,
        source: &Source,
        sums: &StackSums<A>,
        meter: &Meter,
        mut add: impl FnMut(&mut Self, (StackId, LabelSetId), A),
    ) -> Result<(), Failure> {
        let mut entries = Vec::new();
        sums.for_each(|stack, set, sum| entries.push((stack, set, sum)));
        // Hashing gives them in any order, and what is made of them should always be the same.
        entries.sort_unstable_by_key(|&(stack, set, _)| (stack, set));
        let entry_bytes = size_of::<(u32, u32, A)>() + size_of::<StackId>();
        let _memory = meter.hold(entries.len() * entry_bytes)?;
        let sets = source.with_sample_labels(|labels| self.label_sets(&entries, labels))?;
        let mut translation = Translation::default();
        let mut stacks: Vec<StackId> = Vec::with_capacity(entries.len());
        match &source.data {
            SourceData::Block(block) => {
                let (tree, table) = (block.stacks()?, block.locations()?);
                let from = SourceStacks {
                    parents: &tree.parents,
                    locations: &tree.locations,
                    table: &table,
                };
                for &(stack, ..) in &entries {
                    let node = tree.node_of_stack.get(stack as usize);
                    let node = node.copied().unwrap_or(0);
                    stacks.push(translation.stack(&mut self.profile, from, node));
                }
            }
            // The tables only grow. Appends wait while they are held, so they are given back now
            // and then.
            SourceData::Head(view) => {
                for some in entries.chunks(STACKS_AT_ONCE) {
                    meter.check_time()?;
                    let tables = view.tables();
                    let from = SourceStacks {
                        parents: tables.parents(),
                        locations: tables.node_locations(),
                        table: tables.locations(),
                    };
                    for &(node, ..) in some {
                        stacks.push(translation.stack(&mut self.profile, from, node));
                    }
                }
            }
        }
        for (&(_, set, sum), stack) in entries.iter().zip(stacks) {
            add(self, (stack, sets[&set]), sum);
        }
        Ok(())
    }

    fn label_sets<A>(
        &mut self,
        entries: &[(u32, u32, A)],
        labels: &SampleLabels<'_>,
    ) -> HashMap<u32, LabelSetId> {
        let mut sets = HashMap::new();
        for &(_, set, _) in entries {
            sets.entry(set).or_insert_with(|| {
                let strings = &mut self.profile.symbols.strings;
                let mut text = |id| strings.intern(labels.strings.get(id));
                let translated = labels.sets.get(LabelSetId(set)).iter().map(|label| {
                    let value = match label.value {
                        LabelValue::Text(value) => LabelValue::Text(text(value)),
                        LabelValue::Number { value, unit } => LabelValue::Number {
                            value,
                            unit: text(unit),
                        },
                    };
                    SampleLabel {
                        key: text(label.key),
                        value,
                    }
                });
                let translated = translated.collect();
                self.profile.label_sets.intern(translated)
            });
        }
        sets
    }

    fn finish(mut self, plan: &Plan) -> Profile {
        let Some(profile_type) = plan.profile_type.clone() else {
            return self.profile;
        };
        let means = rounded_in_tree_order(self.sums, &self.profile.stacks);
        let mut samples: Vec<Sample> = means
            .into_iter()
            .chain(self.exact)
            .filter(|&(_, value)| value != 0)
            .map(|((stack, label_set), value)| Sample {
                label_set,
                ..Sample::new(stack, value)
            })
            .collect();
        samples.sort_by_key(|sample| (sample.stack, sample.label_set));
        let rows = || {
            plan.sources
                .iter()
                .flat_map(|part| &part.runs)
                .map(|run| run.row)
        };
        let start_ns = rows().map(|row| row.start_ns).min().unwrap_or(0);
        let end_ns = rows()
            .map(|row| row.start_ns.saturating_add(row.duration_ns))
            .max();
        let period = rows().map(|row| row.period).next().unwrap_or(0);
        let mut series = ProfileSeries::new(shared_labels(plan), profile_type);
        series.start_ns = start_ns;
        series.duration_ns = end_ns.unwrap_or(start_ns).saturating_sub(start_ns);
        series.period = if rows().all(|row| row.period == period) {
            period
        } else {
            0
        };
        series.samples = samples;
        self.profile.series.push(series);
        self.profile
    }
}

/// Means as whole numbers, so that those of all stacks below a frame are off by less than one.
fn rounded_in_tree_order(
    sums: HashMap<(StackId, LabelSetId), f64>,
    stacks: &StackTable,
) -> Vec<((StackId, LabelSetId), i64)> {
    let mut sums: Vec<((StackId, LabelSetId), f64)> = sums.into_iter().collect();
    // Stacks are leaf first: by their root side they stand as in a tree.
    sums.sort_unstable_by(|((left, left_set), _), ((right, right_set), _)| {
        let root_first = |stack: StackId| stacks.get(stack).iter().rev();
        let by_stack = root_first(*left).cmp(root_first(*right));
        by_stack.then_with(|| left_set.cmp(right_set))
    });
    let values = f64::rounded(sums.iter().map(|&(_, sum)| sum).collect());
    let keys = sums.into_iter().map(|(key, _)| key);
    keys.zip(values).collect()
}

/// The labels that all series share that have profiles in it.
fn shared_labels(plan: &Plan) -> Labels {
    let mut is_used = vec![false; plan.series.len()];
    for run in plan.sources.iter().flat_map(|part| &part.runs) {
        is_used[run.series as usize] = true;
    }
    let used = plan.series.iter().zip(is_used);
    let mut used = used
        .filter(|&(_, is_used)| is_used)
        .map(|(labels, _)| labels);
    let Some(first) = used.next() else {
        return Labels::default();
    };
    let rest: Vec<_> = used.collect();
    let shared = first
        .iter()
        .filter(|&(name, value)| rest.iter().all(|labels| labels.get(name) == Some(value)));
    Labels::from_pairs(shared)
}

impl Translation {
    fn stack(&mut self, profile: &mut Profile, from: SourceStacks<'_>, end: u32) -> StackId {
        let mut leaf_first = Vec::new();
        let mut rows: Vec<u32> = Vec::new();
        let mut node = end;
        while from.parents[node as usize] != node {
            let row = from.locations[node as usize];
            rows.push(row);
            // What is inlined stands below the function that it is inlined into.
            if !from.table.get(row).is_inlined {
                let rows = std::mem::take(&mut rows);
                leaf_first.push(self.location(profile, from.table, rows));
            }
            node = from.parents[node as usize];
        }
        if !rows.is_empty() {
            leaf_first.push(self.location(profile, from.table, rows));
        }
        profile.stacks.intern(&leaf_first)
    }

    /// The location of these rows, innermost first.
    fn location(
        &mut self,
        profile: &mut Profile,
        table: &LocationTable,
        rows: Vec<u32>,
    ) -> LocationId {
        if let Some(&known) = self.known.get(&rows) {
            return known;
        }
        let symbols = &mut profile.symbols;
        let place = table.get(rows[rows.len() - 1]);
        let mapping = Mapping {
            memory_start: place.mapping_start,
            memory_limit: place.mapping_limit,
            file_offset: place.mapping_offset,
            file: symbols.strings.intern(table.text(place.mapping_file)),
            build_id: symbols.strings.intern(table.text(place.build_id)),
        };
        let mapping = symbols.intern_mapping(mapping);
        let lines: Vec<(FunctionId, u32, u32)> = rows
            .iter()
            .map(|&row| table.get(row))
            .filter(|row| row.is_symbolized)
            .map(|row| {
                let function = symbols.intern_function(
                    table.text(row.function_name),
                    table.text(row.system_name),
                    table.text(row.file_name),
                    row.start_line,
                );
                (function, row.line, row.column)
            })
            .collect();
        let location = Location::new(place.kind, place.address).in_mapping(mapping);
        let id = symbols.intern_location(&location, &lines);
        self.known.insert(rows, id);
        id
    }
}
