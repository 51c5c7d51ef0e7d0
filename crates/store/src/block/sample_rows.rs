//! Rows of table `samples`.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::Int64Array;
use arrow_array::RecordBatch;
use arrow_array::TimestampNanosecondArray;
use arrow_array::UInt32Array;
use arrow_schema::ArrowError;
use candela_model::LabelSetId;
use candela_model::LabelValue;
use candela_model::Link;
use candela_model::SampleLabel;
use hashbrown::HashMap;

use super::arrays;
use super::layout::BlockLayout;
use super::layout::PlacedProfile;
use super::sample_source::SampleSource;
use super::sample_source::SourceSample;
use super::schema::PAGE_ROWS;
use super::schema::Table;
use super::service_tree::NO_STACK;
use super::tables::LabelTable;
use crate::head::HeadTables;

/// The label sets that samples refer to, put behind those of the series as they come.
#[derive(Debug)]
pub(super) struct SampleLabels<'a> {
    tables: &'a HeadTables,
    pub(super) table: LabelTable,
    /// The block's set for each of the head.
    of_set: HashMap<u32, u32>,
    /// Names of the labels that samples have.
    pub(super) names: BTreeSet<String>,
}

/// The rows of a piece of the table, a page at most.
#[derive(Default)]
struct Piece {
    services: Vec<i32>,
    types: Vec<i32>,
    starts: Vec<i64>,
    profile_ids: Vec<u32>,
    stack_ids: Vec<u32>,
    values: Vec<i64>,
    label_sets: Vec<Option<u32>>,
    times: Vec<Option<i64>>,
    links: Vec<Link>,
}

/// The block's stack for each node of the head, of one service at a time.
struct StackNumbers {
    service: Option<usize>,
    of_node: Vec<u32>,
}

/// Writes all rows, a page at a time.
pub(super) fn write(
    block_id: &str,
    layout: &BlockLayout<'_>,
    source: &mut dyn SampleSource,
    labels: &mut SampleLabels<'_>,
    write: &mut dyn FnMut(Result<RecordBatch, ArrowError>) -> Result<(), String>,
) -> Result<(), String> {
    let mut stacks = StackNumbers {
        service: None,
        of_node: vec![NO_STACK; layout.tables.parents().len()],
    };
    let mut piece = Piece::default();
    let mut samples: Vec<SourceSample> = Vec::new();
    for (profile_id, placed) in layout.profiles.iter().enumerate() {
        stacks.enter(layout, placed.service);
        samples.clear();
        source.next_profile(&mut samples)?;
        if samples.len() != placed.facts.sample_count as usize {
            let (found, expected) = (samples.len(), placed.facts.sample_count);
            return Err(format!(
                "profile {profile_id} has {found} samples, not {expected}"
            ));
        }
        samples.sort_by_key(|sample| {
            let stack = stacks.of_node[sample.node as usize];
            (stack, labels.number(sample.label_set), sample.time_ns)
        });
        for sample in &samples {
            let stack = stacks.of_node[sample.node as usize];
            if stack == NO_STACK {
                return Err(format!(
                    "a stack of profile {profile_id} is not in the tree"
                ));
            }
            let label_set = labels.number(sample.label_set);
            piece.push(profile_id, placed, stack, sample, label_set);
            if piece.values.len() == PAGE_ROWS {
                write(std::mem::take(&mut piece).batch(block_id, layout))?;
            }
        }
    }
    if piece.values.is_empty() && layout.rows() > 0 {
        return Ok(());
    }
    write(piece.batch(block_id, layout))
}

impl Piece {
    fn push(
        &mut self,
        profile_id: usize,
        placed: &PlacedProfile,
        stack: u32,
        sample: &SourceSample,
        label_set: u32,
    ) {
        self.services.push(placed.service as i32);
        self.types.push(placed.type_key as i32);
        self.starts.push(placed.facts.start_ns);
        self.profile_ids.push(profile_id as u32);
        self.stack_ids.push(stack);
        self.values.push(sample.value);
        self.label_sets
            .push(Some(label_set).filter(|&set| set != 0));
        self.times
            .push(Some(sample.time_ns).filter(|&time| time != 0));
        self.links.push(sample.link);
    }

    fn batch(self, block_id: &str, layout: &BlockLayout<'_>) -> Result<RecordBatch, ArrowError> {
        let rows = self.values.len();
        let links = || self.links.iter();
        let trace_ids = links().map(|it| Some(it.trace_id).filter(|id| *id != [0; 16]));
        let span_ids = links().map(|it| Some(it.span_id).filter(|id| *id != [0; 8]));
        let columns: Vec<(ArrayRef, bool)> = vec![
            (arrays::constant(block_id, rows)?, false),
            (
                arrays::repeated(layout.service_names(), self.services)?,
                false,
            ),
            (arrays::repeated(layout.type_names(), self.types)?, false),
            (
                arrays::times(TimestampNanosecondArray::from(self.starts)),
                false,
            ),
            (Arc::new(UInt32Array::from(self.profile_ids)), false),
            (Arc::new(UInt32Array::from(self.stack_ids)), false),
            (Arc::new(Int64Array::from(self.values)), false),
            (Arc::new(UInt32Array::from(self.label_sets)), true),
            (
                arrays::times(TimestampNanosecondArray::from(self.times)),
                true,
            ),
            (arrays::fixed_bytes(trace_ids)?, true),
            (arrays::fixed_bytes(span_ids)?, true),
        ];
        arrays::batch(Table::Samples, columns)
    }
}

impl StackNumbers {
    /// Makes the numbers those of a service.
    fn enter(&mut self, layout: &BlockLayout<'_>, service: usize) {
        if self.service == Some(service) {
            return;
        }
        if let Some(before) = self.service {
            for &node in &layout.services[before].stack_ends {
                self.of_node[node as usize] = NO_STACK;
            }
        }
        let placed = &layout.services[service];
        for (stack, &node) in placed.stack_ends.iter().enumerate() {
            self.of_node[node as usize] = placed.first_stack + stack as u32;
        }
        self.service = Some(service);
    }
}

impl<'a> SampleLabels<'a> {
    /// `series` has the sets of the series.
    pub(super) fn new(tables: &'a HeadTables, series: LabelTable) -> Self {
        Self {
            tables,
            table: series,
            of_set: HashMap::new(),
            names: BTreeSet::new(),
        }
    }

    /// The block's number of one of the head's sets.
    fn number(&mut self, set: u32) -> u32 {
        if set == 0 {
            return 0;
        }
        if let Some(&known) = self.of_set.get(&set) {
            return known;
        }
        let from = &self.tables.locations().strings;
        let strings = &mut self.table.strings;
        let labels = self.tables.label_sets().get(LabelSetId(set)).iter();
        let labels = labels.map(|label| {
            self.names.insert(from.get(label.key).to_owned());
            let key = strings.intern(from.get(label.key));
            let value = match label.value {
                LabelValue::Text(text) => LabelValue::Text(strings.intern(from.get(text))),
                LabelValue::Number { value, unit } => LabelValue::Number {
                    value,
                    unit: strings.intern(from.get(unit)),
                },
            };
            SampleLabel { key, value }
        });
        let labels = labels.collect();
        let number = self.table.sets.intern(labels).0;
        self.of_set.insert(set, number);
        number
    }
}
