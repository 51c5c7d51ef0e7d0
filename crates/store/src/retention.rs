//! Which blocks go when there are too many or they are too old.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use candela_model::Labels;
use candela_model::ProfileType;
use candela_model::SERVICE_NAME_LABEL;
use candela_model::Temporality;

use crate::block::Block;
use crate::block::BlockMeta;
use crate::block::ProfileRow;
use crate::block::Tier;
use crate::compact::FirstError;
use crate::compact::KEPT_LABELS;
use crate::compact::Throttle;
use crate::compact::job_of;
use crate::error::StoreError;
use crate::options::RetentionRule;
use crate::options::StoreOptions;
use crate::shared::Shared;
use crate::shared::TenantState;
use crate::sync::lock;
use crate::sync::read;

/// Profiles of this time are the last to go when there are too many bytes: they are what somebody
/// who is woken at night looks at. Before them go the older ones, which are in the sums too, and
/// then the sums.
const RECENT_NS: i64 = 24 * 3600 * 1_000_000_000;

/// Ids of the blocks beyond the limits.
pub(crate) fn expired_blocks(
    tenants: &BTreeMap<String, TenantState>,
    options: &StoreOptions,
    volume_bytes: Option<u64>,
    now_ns: i64,
) -> Vec<String> {
    let states = || tenants.values();
    let readable = states().flat_map(|state| &state.blocks);
    // What cannot be read takes its space like the rest.
    let quarantined = states().flat_map(|state| &state.quarantined);
    let mut blocks: Vec<&BlockMeta> = readable.map(|block| block.meta()).collect();
    blocks.extend(quarantined.map(|(meta, _)| meta));
    let share = options.max_volume_percent.zip(volume_bytes);
    let share = share.map(|(percent, bytes)| bytes / 100 * u64::from(percent));
    let max_bytes = match (options.max_bytes, share) {
        (Some(bytes), Some(share)) => bytes.min(share),
        (bytes, share) => bytes.or(share).unwrap_or(u64::MAX),
    };
    let age_ns = |meta: &BlockMeta| now_ns.saturating_sub(meta.max_time_ns);
    let (old, mut rest): (Vec<&BlockMeta>, Vec<&BlockMeta>) = blocks
        .into_iter()
        .partition(|meta| age_ns(meta) > longest_keep_ns(meta, options));
    rest.sort_by_key(|meta| {
        let is_recent = meta.tier() == Tier::Raw && age_ns(meta) < RECENT_NS;
        (is_recent, meta.tier(), meta.max_time_ns)
    });
    let mut bytes: u64 = rest.iter().map(|meta| meta.bytes).sum();
    let mut expired: Vec<String> = old.iter().map(|meta| meta.block_id.clone()).collect();
    for meta in rest {
        if bytes <= max_bytes {
            break;
        }
        bytes -= meta.bytes;
        expired.push(meta.block_id.clone());
    }
    expired
}

/// How long anything in a block may be kept, nanoseconds.
fn longest_keep_ns(meta: &BlockMeta, options: &StoreOptions) -> i64 {
    let rules = options.retention_rules.iter();
    let longer = rules.filter(|rule| rule.may_govern(meta));
    let longer = longer.map(|rule| nanoseconds(rule.keep)).max();
    let default = default_keep_ns(meta.tier(), options);
    longer.map_or(default, |longer| longer.max(default))
}

fn default_keep_ns(tier: Tier, options: &StoreOptions) -> i64 {
    options.max_age_of(tier).map_or(i64::MAX, nanoseconds)
}

fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// How long a profile of a block is kept, nanoseconds.
fn keep_ns(
    meta: &BlockMeta,
    labels: &Labels,
    profile_type: &ProfileType,
    options: &StoreOptions,
) -> i64 {
    let is_sum = meta.tier() != Tier::Raw && profile_type.temporality() == Temporality::Delta;
    let mut rules = options.retention_rules.iter();
    let rule = rules.find(|rule| rule.governs(&meta.tenant, labels, profile_type, is_sum));
    let default = || default_keep_ns(meta.tier(), options);
    rule.map_or_else(default, |rule| nanoseconds(rule.keep))
}

impl StoreOptions {
    /// How long a profile is kept as it came; `None` for ever.
    #[must_use]
    pub fn keep_of(
        &self,
        tenant: &str,
        labels: &Labels,
        profile_type: &ProfileType,
    ) -> Option<Duration> {
        let mut rules = self.retention_rules.iter();
        let rule = rules.find(|rule| rule.governs(tenant, labels, profile_type, false));
        rule.map_or(self.max_age, |rule| Some(rule.keep))
    }
}

impl RetentionRule {
    fn is_for(&self, tenant: &str) -> bool {
        self.tenant.as_deref().is_none_or(|own| own == tenant)
    }

    /// Whether it can be about anything in a block, as far as the manifest tells.
    fn may_govern(&self, meta: &BlockMeta) -> bool {
        let matchers = self.selector.matchers().iter();
        let of_service: Vec<_> = matchers
            .filter(|matcher| matcher.name() == SERVICE_NAME_LABEL)
            .collect();
        self.is_for(&meta.tenant)
            && meta.services.iter().any(|service| {
                let wanted = self.profile_type.as_deref();
                wanted.is_none_or(|wanted| service.profile_type == wanted)
                    && of_service
                        .iter()
                        .all(|matcher| matcher.matches(&service.service))
            })
    }

    /// `is_sum` says that the labels are those that sums over instances keep. In such a sum is what
    /// a rule with another label is about and what it is not, so it is no rule for it: a short one
    /// would take the sums of everybody.
    fn governs(
        &self,
        tenant: &str,
        labels: &Labels,
        profile_type: &ProfileType,
        is_sum: bool,
    ) -> bool {
        let wanted = self.profile_type.as_deref();
        let mut matchers = self.selector.matchers().iter();
        self.is_for(tenant)
            && wanted.is_none_or(|wanted| profile_type.to_string() == wanted)
            && matchers.all(|matcher| {
                let is_told = !is_sum || KEPT_LABELS.contains(&matcher.name());
                is_told && matcher.matches(labels.get(matcher.name()).unwrap_or(""))
            })
    }
}

impl Shared {
    /// Writes blocks again without the profiles whose rule is shorter than that of others. A block
    /// is looked at when all of what a rule is about has aged, so once for each length.
    pub(crate) fn apply_retention_rules(&self, throttle: &Throttle<'_>) -> Result<(), StoreError> {
        if self.options.retention_rules.is_empty() {
            return Ok(());
        }
        let _only_one = lock(&self.maintenance);
        let blocks: Vec<Arc<Block>> = {
            let tenants = read(&self.tenants);
            let blocks = tenants.values().flat_map(|state| &state.blocks);
            blocks.map(Arc::clone).collect()
        };
        // What fails for one block is no reason not to look at the others.
        let mut first_error = FirstError::default();
        for block in blocks {
            first_error.note(self, self.expire_in(&block, throttle));
            if *lock(&self.is_stopping) {
                break;
            }
        }
        first_error.into_result()
    }

    fn expire_in(&self, block: &Arc<Block>, throttle: &Throttle<'_>) -> Result<(), StoreError> {
        let options = &self.options;
        let meta = block.meta();
        let age_ns = options.clock.now_ns().saturating_sub(meta.max_time_ns);
        let rules = options.retention_rules.iter();
        let rules = rules.filter(|rule| rule.may_govern(meta));
        let lengths = rules.map(|rule| nanoseconds(rule.keep));
        let lengths = lengths.chain([default_keep_ns(meta.tier(), options)]);
        let passed = lengths.filter(|&length| age_ns > length).count();
        let look = (meta.block_id.clone(), passed);
        if passed == 0 || lock(&self.retention_looks).contains(&look) {
            return Ok(());
        }
        let keep = |labels: &Labels, profile_type: &ProfileType, _: &ProfileRow| {
            age_ns <= keep_ns(meta, labels, profile_type, options)
        };
        let profiles = match block.profiles() {
            Ok(profiles) => profiles,
            Err(damage) => {
                self.report(&damage)?;
                return Err(damage.into());
            }
        };
        let is_kept = |row: &ProfileRow| {
            let profile_type = &profiles.types[row.profile_type as usize];
            keep(&profiles.series[row.series as usize], profile_type, row)
        };
        if !profiles.rows.iter().all(is_kept) {
            let job = job_of(&meta.tenant, block);
            let written = self.run_job(&job, &keep, &|_| Ok(Vec::new()), throttle)?;
            if written.is_none() {
                return Ok(());
            }
        }
        // Not before: what failed is looked at again.
        lock(&self.retention_looks).insert(look);
        Ok(())
    }
}

/// Size of the volume that holds a directory; `None` where the system does not say.
pub(crate) fn volume_bytes(directory: &Path) -> Option<u64> {
    let volume = rustix::fs::statvfs(directory).ok()?;
    Some(volume.f_blocks.saturating_mul(volume.f_frsize))
}
