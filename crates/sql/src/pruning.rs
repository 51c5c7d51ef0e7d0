//! Which blocks a query need not open, by what the catalog says of them.

use std::collections::HashSet;
use std::sync::Arc;

use candela_store::Block;
use candela_store::BlockMeta;
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::array::BooleanArray;
use datafusion::arrow::array::StringViewArray;
use datafusion::arrow::array::TimestampNanosecondArray;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::Column;
use datafusion::common::DFSchema;
use datafusion::common::Result;
use datafusion::common::ScalarValue;
use datafusion::common::pruning::PruningStatistics;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::utils::conjunction;
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;

/// Blocks by what their metadata says.
struct BlockFacts<'a> {
    blocks: &'a [&'a BlockMeta],
}

/// The blocks in which a row may pass all filters.
///
/// # Errors
/// When a filter cannot be planned, which the plan of the query would find as well.
pub(crate) fn blocks_that_may_match<'a>(
    blocks: Vec<&'a Arc<Block>>,
    filters: &[Expr],
    schema: &SchemaRef,
    session: &dyn Session,
) -> Result<Vec<&'a Arc<Block>>> {
    let Some(filter) = conjunction(filters.iter().cloned()) else {
        return Ok(blocks);
    };
    let columns = DFSchema::try_from(Arc::clone(schema))?;
    let filter = session.create_physical_expr(filter, &columns)?;
    let predicate = PruningPredicateBuilder::new()
        .with_file_schema(Arc::clone(schema))
        .try_build(filter)?;
    let metas: Vec<&BlockMeta> = blocks.iter().map(|block| block.meta()).collect();
    let may_match = predicate.prune(&BlockFacts { blocks: &metas })?;
    let kept = blocks.into_iter().zip(may_match);
    Ok(kept
        .filter_map(|(block, may)| may.then_some(block))
        .collect())
}

impl BlockFacts<'_> {
    /// For each block the first or last of its values in one of the columns.
    fn bounds(&self, column: &Column, bound: Bound) -> Option<ArrayRef> {
        let texts = |text: fn(&BlockMeta, Bound) -> Option<&str>| -> ArrayRef {
            let texts = self.blocks.iter().map(|meta| text(meta, bound));
            Arc::new(texts.collect::<StringViewArray>())
        };
        match column.name() {
            "block_id" => Some(texts(|meta, _| Some(&meta.block_id))),
            "service_name" => Some(texts(|meta, bound| bound.of(services(meta)))),
            "profile_type" => Some(texts(|meta, bound| bound.of(types(meta)))),
            "time" => {
                let times = self.blocks.iter().map(|meta| match bound {
                    Bound::First => meta.min_time_ns,
                    Bound::Last => meta.max_time_ns,
                });
                let times = TimestampNanosecondArray::from_iter_values(times);
                Some(Arc::new(times.with_timezone("UTC")))
            }
            _ => None,
        }
    }
}

/// Which end of the values of a column.
#[derive(Clone, Copy)]
enum Bound {
    First,
    Last,
}

impl Bound {
    fn of<'a>(self, values: impl Iterator<Item = &'a str>) -> Option<&'a str> {
        match self {
            Self::First => values.min(),
            Self::Last => values.max(),
        }
    }
}

fn services(meta: &BlockMeta) -> impl Iterator<Item = &str> {
    meta.services.iter().map(|entry| entry.service.as_str())
}

fn types(meta: &BlockMeta) -> impl Iterator<Item = &str> {
    let types = meta.services.iter();
    types.map(|entry| entry.profile_type.as_str())
}

impl PruningStatistics for BlockFacts<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.bounds(column, Bound::First)
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.bounds(column, Bound::Last)
    }

    fn num_containers(&self) -> usize {
        self.blocks.len()
    }

    fn null_counts(&self, _: &Column) -> Option<ArrayRef> {
        None
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        None
    }

    /// A block has few services and types, so that it is known which are in it.
    fn contained(&self, column: &Column, values: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        let texts: HashSet<&str> = values
            .iter()
            .map(|value| value.try_as_str().flatten())
            .collect::<Option<_>>()?;
        let among = |found: &mut dyn Iterator<Item = &str>| {
            let (mut some, mut all) = (false, true);
            for text in found {
                let is_wanted = texts.contains(text);
                some |= is_wanted;
                all &= is_wanted;
            }
            match (some, all) {
                (true, true) => Some(true),
                (true, false) => None,
                (false, _) => Some(false),
            }
        };
        let answers = match column.name() {
            "service_name" => self
                .blocks
                .iter()
                .map(|meta| among(&mut services(meta)))
                .collect(),
            "profile_type" => self
                .blocks
                .iter()
                .map(|meta| among(&mut types(meta)))
                .collect(),
            _ => return None,
        };
        Some(answers)
    }
}
