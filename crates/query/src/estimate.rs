//! What a question would read, and what there is at all: answered without a sample.

use candela_store::Block;
use candela_store::ProfileRow;
use candela_store::Table;
use candela_store::TimeRange;
use hashbrown::HashSet;

use crate::derived::is_source_of;
use crate::engine::Engine;
use crate::error::QueryError;
use crate::plan::available_types;
use crate::plan::resolve_type;
use crate::plan::series_matches;
use crate::query::Answer;
use crate::query::Query;
use crate::sources::Source;
use crate::sources::SourceData;
use crate::tiers::coarsest_tier;

/// What a tree of a query would touch. What the selector says about labels of samples does not
/// count: nobody knows how many samples pass before they are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Blocks with profiles that match.
    pub blocks: u64,
    /// Heads with profiles that match: what is not in blocks yet.
    pub heads: u64,
    /// Series of them, each once for each tenant that has it.
    pub series: u64,
    /// Their profiles; of sums their buckets.
    pub profiles: u64,
    /// Their samples.
    pub samples: u64,
    /// Bytes of the lists of profiles and of the labels of those blocks and heads.
    pub index_bytes: u64,
    /// Bytes of the samples: their share of the files of blocks, and what heads hold in memory.
    pub sample_bytes: u64,
    /// Bytes of the stacks and locations of those blocks and heads.
    pub symbol_bytes: u64,
    /// Bytes of everything in the range that is read in the place of profiles, whether it matches
    /// or not.
    pub range_bytes: u64,
}

/// From when to when a tenant has profiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TenantStats {
    /// The earliest start of a profile, nanoseconds since the Unix epoch; where only sums are left
    /// that of their first bucket. `None` without profiles.
    pub oldest_ns: Option<i64>,
    /// The latest start of a profile.
    pub newest_ns: Option<i64>,
}

impl Engine {
    /// What [`Engine::flame_tree`] would read for this query. An empty profile type stands for all
    /// of them. Manifests and lists of profiles are read, and no samples, stacks and symbols.
    ///
    /// # Errors
    /// When the type is ambiguous, the range is none, or the budget is spent.
    pub fn estimate(&self, query: &Query) -> Result<Answer<Estimate>, QueryError> {
        let mut loaded = self.load(query, query.range, coarsest_tier(query, &[]))?;
        let mut answer: Answer<Estimate> = Answer::default();
        if query.profile_type.is_empty() {
            loaded.tell_all_undecided();
        } else {
            let available = available_types(&loaded.sources, query, query.range, &loaded.meter)?;
            answer.profile_type = resolve_type(&query.profile_type, &available)?;
            loaded.tell_undecided(query, answer.profile_type.as_ref());
            if answer.profile_type.is_none() {
                answer.partial = loaded.partial();
                return Ok(answer);
            }
        }
        let mut series = HashSet::new();
        for source in &loaded.sources {
            loaded.meter.check_time()?;
            let table = &source.profiles;
            let matches = series_matches(source, query);
            let wanted = answer.profile_type.as_ref();
            let types = table.types.iter();
            let types = types.map(|it| wanted.is_none_or(|wanted| is_source_of(it, wanted)));
            let types: Vec<bool> = types.collect();
            let is_matching = |row: &&ProfileRow| {
                query.range.contains(row.start_ns)
                    && types[row.profile_type as usize]
                    && matches[row.series as usize].is_possible()
            };
            let rows: Vec<&ProfileRow> = table.rows.iter().filter(is_matching).collect();
            answer.value.add(source, &rows);
            let labels = rows.iter().map(|row| &table.series[row.series as usize]);
            series.extend(labels.map(|labels| (source.owner, labels)));
        }
        answer.value.series = series.len() as u64;
        answer.matched_series = series.len();
        answer.partial = loaded.partial();
        Ok(answer)
    }

    /// From when to when a tenant has profiles, in blocks, sums and heads. No file is read.
    ///
    /// # Errors
    /// Those of the store.
    pub fn stats(&self, tenant: &str) -> Result<TenantStats, QueryError> {
        let snapshot = self.shelf.snapshot(tenant, TimeRange::ALL)?;
        let blocks = snapshot.blocks.iter().chain(&snapshot.rollups);
        let spans = blocks.map(|block| (block.meta().min_time_ns, block.meta().max_time_ns));
        let heads = snapshot.heads.iter().flat_map(|head| &head.profiles);
        let starts = heads.map(|profile| (profile.start_ns, profile.start_ns));
        let whole = spans
            .chain(starts)
            .reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
        Ok(TenantStats {
            oldest_ns: whole.map(|(oldest_ns, _)| oldest_ns),
            newest_ns: whole.map(|(_, newest_ns)| newest_ns),
        })
    }
}

impl Estimate {
    fn add(&mut self, source: &Source, rows: &[&ProfileRow]) {
        let samples: u64 = rows.iter().map(|row| u64::from(row.sample_count)).sum();
        if let SourceData::Block(block) = &source.data {
            self.range_bytes += block.meta().bytes;
        }
        if let SourceData::Head(view) = &source.data {
            let profiles = view.profiles.iter();
            self.range_bytes += profiles.map(|profile| profile.bytes() as u64).sum::<u64>();
        }
        if rows.is_empty() {
            return;
        }
        self.profiles += rows.len() as u64;
        self.samples += samples;
        match &source.data {
            SourceData::Block(block) => {
                self.blocks += 1;
                self.index_bytes += bytes_of(block, &[Table::Profiles, Table::LabelSets]);
                self.symbol_bytes += bytes_of(block, &[Table::StackNodes, Table::Locations]);
                let all = u128::from(block.meta().rows.max(1));
                let bytes = u128::from(bytes_of(block, &[Table::Samples]));
                let share = bytes * u128::from(samples) / all;
                self.sample_bytes += u64::try_from(share).unwrap_or(u64::MAX);
            }
            SourceData::Head(view) => {
                self.heads += 1;
                self.index_bytes += size_of_val(rows) as u64;
                self.symbol_bytes += view.tables().bytes() as u64;
                let profiles = rows
                    .iter()
                    .map(|row| &view.profiles[row.first_row as usize]);
                self.sample_bytes += profiles.map(|profile| profile.bytes() as u64).sum::<u64>();
            }
        }
    }
}

/// Bytes on disk of these tables.
fn bytes_of(block: &Block, tables: &[Table]) -> u64 {
    let is_wanted = |name: &str| tables.iter().any(|table| table.name() == name);
    let files = block.meta().files.iter();
    let files = files.filter(|file| is_wanted(&file.table));
    files.map(|file| file.bytes).sum()
}
