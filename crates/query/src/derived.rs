//! Types that nobody stores and that are made of others: the count of cpu samples, of their time; and
//! wall time, of the time on CPUs and off them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::LazyLock;

use candela_model::Labels;
use candela_model::ProfileType;
use candela_model::SERVICE_NAME_LABEL;
use candela_model::WallCover;
use candela_model::WallParts;
use candela_model::resolve_profile_type;
use candela_store::ProfileRow;
use candela_store::Snapshot;
use candela_store::TimeRange;
use hashbrown::HashMap;
use hashbrown::HashSet;

use crate::budget::Held;
use crate::budget::Meter;
use crate::error::Failure;
use crate::error::QueryError;
use crate::plan::series_matches;
use crate::profile_key::ChosenProfiles;
use crate::query::Query;
use crate::sources::Source;
use crate::wall_rows::rows_in_answer;

/// The count that is derived from cpu time.
static CPU_SAMPLES: LazyLock<ProfileType> = LazyLock::new(|| {
    let id = "process_cpu:samples:count:cpu:nanoseconds";
    id.parse().expect("five parts")
});
// Compared with the types of every block.
static ON_CPU: LazyLock<ProfileType> = LazyLock::new(ProfileType::on_cpu);
static OFF_CPU: LazyLock<ProfileType> = LazyLock::new(ProfileType::off_cpu);
static WALL: LazyLock<ProfileType> = LazyLock::new(ProfileType::wall);
/// What a window in a list of those that stored wall time covers is estimated at, with its share of
/// the labels of its series.
pub(crate) const WINDOW_BYTES: usize = 64;

/// How values of a stored type become those of the wanted one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// They are of that type.
    Itself,
    /// They are divided by the period of their profile.
    Period,
    /// They are a part of it.
    Part(WallPart),
}

/// Of what wall time is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WallPart {
    OnCpu,
    OffCpu,
}

/// What is stored of the wanted type where it could also be derived: that would count twice.
#[derive(Debug, Default)]
pub(crate) struct StoredItself {
    /// Series, by their tenants, whose samples are counted.
    counts: HashSet<(u32, Arc<Labels>)>,
    /// By tenant.
    walls: BTreeMap<u32, WallCover>,
    windows: usize,
    /// Where the last of them end that sums have, and the last day of these sums.
    sums_until: Option<(i64, String)>,
}

/// Types that may be asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct AvailableTypes {
    /// Those that are stored and those that can be derived of them, sorted.
    pub(crate) types: Vec<ProfileType>,
    /// Whether wall time is among those that are stored.
    pub(crate) has_stored_wall: bool,
}

/// Ascending windows that do not touch.
pub(crate) type Windows = Arc<Vec<Range<i64>>>;

/// When series are covered, worked out once for all sources that have them.
#[derive(Debug)]
pub(crate) struct CoveredWindows<'a> {
    stored: &'a StoredItself,
    /// By tenant and labels.
    known: HashMap<(u32, Arc<Labels>), Windows>,
}

// === impl Origin ===

impl Origin {
    /// There are fewer [numbers](Self::number) than this.
    pub(crate) const NUMBERS: usize = 3;

    /// What a stored type is to the wanted one; `None` when it has nothing to do with it.
    pub(crate) fn of(stored: &ProfileType, wanted: &ProfileType) -> Option<Self> {
        if stored == wanted {
            return Some(Self::Itself);
        }
        if *wanted == *CPU_SAMPLES {
            return (*stored == *ON_CPU).then_some(Self::Period);
        }
        if *wanted != *WALL {
            return None;
        }
        if *stored == *ON_CPU {
            return Some(Self::Part(WallPart::OnCpu));
        }
        (*stored == *OFF_CPU).then_some(Self::Part(WallPart::OffCpu))
    }

    /// What tells the profiles of a series apart that are not of one kind: means and latest profiles
    /// are those of each part, so that wall time is what its parts are together, however it is asked
    /// for.
    pub(crate) fn number(self) -> usize {
        match self {
            Self::Itself | Self::Period => 0,
            Self::Part(WallPart::OnCpu) => 1,
            Self::Part(WallPart::OffCpu) => 2,
        }
    }
}

// === impl StoredItself ===

impl StoredItself {
    /// What of the query's answer is stored as the wanted type, and the memory that it takes.
    pub(crate) fn of<'a>(
        sources: &[Source],
        query: &Query,
        wanted: &ProfileType,
        range: TimeRange,
        meter: &'a Meter,
    ) -> Result<(Self, Held<'a>), Failure> {
        let mut stored = Self::default();
        let mut memory = meter.hold(0)?;
        let is_wall = *wanted == *WALL;
        if !is_wall && *wanted != *CPU_SAMPLES {
            return Ok((stored, memory));
        }
        let chosen = ChosenProfiles::of(query);
        for source in sources {
            meter.check_time()?;
            let table = &source.profiles;
            let types = table.types.iter();
            let types: Vec<bool> = types.map(|it| **it == *wanted).collect();
            if !types.contains(&true) {
                continue;
            }
            let rows = table.rows.iter();
            let rows =
                rows.filter(|row| types[row.profile_type as usize] && range.contains(row.start_ns));
            let labels_of = |row: &ProfileRow| &table.series[row.series as usize];
            if !is_wall {
                let counts = rows.map(|row| (source.owner, Arc::clone(labels_of(row))));
                stored.counts.extend(counts);
                continue;
            }
            let rows = rows
                .filter(|row| chosen.have(source.owner, labels_of(row), wanted, row.start_ns))
                .copied()
                .collect();
            let matches = series_matches(source, query);
            // Of what is not in the answer nothing is left out.
            let rows = match rows_in_answer(source, query, &matches, rows, meter) {
                Ok(rows) => rows,
                // Whoever reads what the answer has of the block fails alike and says so.
                Err(Failure::Block(_)) => continue,
                Err(error) => return Err(error),
            };
            stored.windows += rows.len();
            memory.resize(stored.bytes())?;
            for row in &rows {
                let cover = stored.walls.entry(source.owner).or_default();
                cover.add(labels_of(row), row.start_ns, row.duration_ns);
            }
            let end_ns = |row: &ProfileRow| row.start_ns.saturating_add(row.duration_ns.max(1));
            let last_ns = rows.iter().map(end_ns).max();
            if let (Some(day), Some(last_ns)) = (source.day_of_sums(), last_ns) {
                let until = Some((last_ns, day.to_owned()));
                stored.sums_until = stored.sums_until.take().max(until);
            }
        }
        stored.walls.values_mut().for_each(WallCover::merge_windows);
        Ok((stored, memory))
    }

    /// Estimated bytes in memory.
    fn bytes(&self) -> usize {
        self.windows * WINDOW_BYTES
    }

    /// The last day of which sums have stored wall time, whose windows are whole buckets, where these may
    /// be what covers a profile.
    pub(crate) fn day_of_sums_at(&self, start_ns: i64) -> Option<&str> {
        let (until_ns, day) = self.sums_until.as_ref()?;
        (start_ns < *until_ns).then_some(day.as_str())
    }

    /// Whether the samples of a series are counted.
    pub(crate) fn counts(&self, owner: u32, labels: &Arc<Labels>) -> bool {
        !self.counts.is_empty() && self.counts.contains(&(owner, Arc::clone(labels)))
    }
}

// === impl CoveredWindows ===

impl<'a> CoveredWindows<'a> {
    pub(crate) fn by(stored: &'a StoredItself) -> Self {
        Self {
            stored,
            known: HashMap::new(),
        }
    }

    /// When a series is covered by stored wall time.
    pub(crate) fn of_series(
        &mut self,
        owner: u32,
        labels: &Arc<Labels>,
        meter: &Meter,
    ) -> Result<Windows, QueryError> {
        let Some(cover) = self.stored.walls.get(&owner) else {
            return Ok(Arc::default());
        };
        let key = (owner, Arc::clone(labels));
        if let Some(windows) = self.known.get(&key) {
            return Ok(Arc::clone(windows));
        }
        meter.check_time()?;
        let windows = Arc::new(cover.windows_of(labels));
        meter.allocate(WINDOW_BYTES + windows.len() * size_of::<Range<i64>>())?;
        self.known.insert(key, Arc::clone(&windows));
        Ok(windows)
    }
}

/// Stored types and those that can be derived of them.
pub(crate) fn with_derived(mut found: HashSet<ProfileType>) -> AvailableTypes {
    let has_stored_wall = found.contains(&*WALL);
    if found.contains(&*ON_CPU) {
        found.insert(CPU_SAMPLES.clone());
    }
    if WallParts::of(&found).are_whole() {
        found.insert(WALL.clone());
    }
    let mut types: Vec<ProfileType> = found.into_iter().collect();
    types.sort();
    AvailableTypes {
        types,
        has_stored_wall,
    }
}

/// Whether values of a stored type are, or become, those of the wanted one.
pub(crate) fn is_source_of(stored: &ProfileType, wanted: &ProfileType) -> bool {
    Origin::of(stored, wanted).is_some()
}

/// Whether a pattern asks for the count that may be derived: it is rounded sample by sample.
pub(crate) fn is_derived_count(pattern: &str) -> bool {
    let found = resolve_profile_type(pattern, [&*ON_CPU, &*CPU_SAMPLES]);
    found.is_ok_and(|found| *found == *CPU_SAMPLES)
}

/// Whether a query is about wall time of which a service has stored profiles beside the parts. What a
/// stored profile covers is told by the times of profiles, and sums have coarser ones.
pub(crate) fn has_covered_wall(query: &Query, snapshot: &Snapshot) -> bool {
    if !ProfileType::may_be_wall(&query.profile_type) {
        return false;
    }
    let (mut walls, mut parts): (HashSet<&str>, HashSet<&str>) = Default::default();
    let blocks = snapshot.blocks.iter().chain(&snapshot.rollups);
    for service in blocks.flat_map(|block| &block.meta().services) {
        let Ok(profile_type) = service.profile_type.parse::<ProfileType>() else {
            continue;
        };
        if profile_type == *WALL {
            walls.insert(&service.service);
        }
        if is_part(&profile_type) {
            parts.insert(&service.service);
        }
    }
    for profile in snapshot.heads.iter().flat_map(|head| &head.profiles) {
        let service = profile.labels.get(SERVICE_NAME_LABEL).unwrap_or("");
        if *profile.profile_type == *WALL {
            walls.insert(service);
        } else if is_part(&profile.profile_type) {
            parts.insert(service);
        }
    }
    // Without a service they may be of any.
    let may_be_walls_of_parts = walls.contains("") && !parts.is_empty();
    let may_be_parts_of_walls = parts.contains("") && !walls.is_empty();
    may_be_walls_of_parts || may_be_parts_of_walls || parts.intersection(&walls).next().is_some()
}

fn is_part(profile_type: &ProfileType) -> bool {
    *profile_type == *ON_CPU || *profile_type == *OFF_CPU
}
