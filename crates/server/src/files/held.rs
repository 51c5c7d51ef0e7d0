//! Files that were read a moment ago: who zooms or filters asks about the same one again.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use candela_store::Clock;
use tokio::sync::Semaphore;

use super::opened::FileId;
use super::opened::OpenedFile;
use crate::auth::TenantName;
use crate::options::Limits;
use crate::options::ServerOptions;

/// Files in memory, each for its tenant alone.
pub(crate) struct HeldFiles {
    files: Mutex<HashMap<Key, Held>>,
    /// Whether somebody looks after what is not used.
    is_swept: AtomicBool,
    clock: Arc<dyn Clock>,
    limits: Limits,
    /// Requests that have read a file and are not answered: as many profiles are in memory besides
    /// those that are held.
    pub(super) slots: Arc<Semaphore>,
}

type Key = (TenantName, FileId);

struct Held {
    file: Arc<OpenedFile>,
    used_ns: i64,
}

impl HeldFiles {
    pub(crate) fn new(options: &ServerOptions) -> Self {
        Self {
            files: Mutex::default(),
            is_swept: AtomicBool::new(false),
            clock: Arc::clone(&options.clock),
            limits: options.limits,
            slots: Arc::new(Semaphore::new(options.limits.concurrent_decodes.max(1))),
        }
    }

    /// A file that is held; it stays for a while again.
    pub(super) fn get(&self, tenant: &TenantName, id: FileId) -> Option<Arc<OpenedFile>> {
        let now_ns = self.clock.monotonic_ns();
        let mut files = self.lock();
        self.forget_idle(&mut files, now_ns);
        let held = files.get_mut(&(tenant.clone(), id))?;
        held.used_ns = now_ns;
        Some(Arc::clone(&held.file))
    }

    /// Holds a file. One that is larger than what a tenant may hold is not; others go for it, those
    /// first that were not used for longest.
    pub(super) fn hold(&self, tenant: &TenantName, file: &Arc<OpenedFile>) {
        let now_ns = self.clock.monotonic_ns();
        let of_all = self.limits.held_files_bytes;
        let of_tenant = of_all / 2;
        let mut files = self.lock();
        self.forget_idle(&mut files, now_ns);
        if size(file) > of_tenant {
            return;
        }
        let held = Held {
            file: Arc::clone(file),
            used_ns: now_ns,
        };
        files.insert((tenant.clone(), file.id), held);
        make_room(&mut files, of_tenant, |(owner, _)| owner == tenant);
        make_room(&mut files, of_all, |_| true);
    }

    /// Whether the caller has to look after what is not used, with [`HeldFiles::forget_unused`]: nobody does.
    pub(super) fn takes_sweeper(&self) -> bool {
        let files = self.lock();
        !files.is_empty() && !self.is_swept.swap(true, Ordering::Relaxed)
    }

    /// Lets go of what was not used for a while. Whether anything is left to look after.
    pub(super) fn forget_unused(&self) -> bool {
        let mut files = self.lock();
        self.forget_idle(&mut files, self.clock.monotonic_ns());
        let has_files = !files.is_empty();
        // Under the lock, or a file that comes now would be looked after by nobody.
        self.is_swept.store(has_files, Ordering::Relaxed);
        has_files
    }

    fn forget_idle(&self, files: &mut HashMap<Key, Held>, now_ns: i64) {
        let idle_ns = i64::try_from(self.limits.held_files_idle.as_nanos()).unwrap_or(i64::MAX);
        files.retain(|_, held| now_ns.saturating_sub(held.used_ns) < idle_ns);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Held>> {
        // A file is in it or is not, so that whoever panicked has left nothing half done.
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets go of files until those that count take no more than so many bytes.
fn make_room(files: &mut HashMap<Key, Held>, most_bytes: u64, counts: impl Fn(&Key) -> bool) {
    loop {
        let counted = || files.iter().filter(|(key, _)| counts(key));
        let bytes: u64 = counted().map(|(_, held)| size(&held.file)).sum();
        if bytes <= most_bytes {
            return;
        }
        let oldest = counted().min_by_key(|(_, held)| held.used_ns);
        let Some(key) = oldest.map(|(key, _)| key.clone()) else {
            return;
        };
        files.remove(&key);
    }
}

/// Never nothing, so that small files are bounded in number as well.
fn size(file: &OpenedFile) -> u64 {
    const OF_ITSELF: u64 = 4096;
    let comments = file
        .report
        .comments
        .iter()
        .map(|comment| comment.len() as u64);
    file.profiles.bytes() + comments.sum::<u64>() + OF_ITSELF
}

impl fmt::Debug for HeldFiles {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HeldFiles")
            .field("files", &self.lock().len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use candela_formats::Format;
    use candela_formats::Report;
    use candela_model::Labels;
    use candela_model::Profile;
    use candela_model::ProfileSeries;
    use candela_model::ProfileType;
    use candela_model::Sample;
    use candela_model::StackId;
    use candela_store::LooseProfiles;
    use candela_store::ManualClock;
    use candela_store::TimeRange;

    use super::*;

    fn file(name: &str, samples: usize) -> Arc<OpenedFile> {
        let mut profile = Profile::default();
        let mut series = ProfileSeries::new(Labels::default(), ProfileType::on_cpu());
        for number in 0..samples {
            let location =
                candela_model::Location::new(candela_model::FrameKind::Native, number as u64);
            let location = profile.symbols.intern_location(&location, &[]);
            let stack = profile.stacks.intern(&[location]);
            series.samples.push(Sample::new(stack, 1));
        }
        series.samples.push(Sample::new(StackId(0), 1));
        profile.series.push(series);
        Arc::new(OpenedFile {
            id: FileId::of(name.as_bytes()),
            bytes: 1,
            format: Format::Folded,
            profiles: LooseProfiles::of(&profile).expect("a valid profile"),
            profile_count: 1,
            samples: samples as u64,
            range: TimeRange::ALL,
            default_type: None,
            report: Report::default(),
        })
    }

    fn held(clock: &Arc<ManualClock>, bytes: u64) -> HeldFiles {
        let clock: Arc<dyn Clock> = Arc::clone(clock) as Arc<dyn Clock>;
        HeldFiles::new(&ServerOptions {
            clock,
            limits: Limits {
                held_files_bytes: bytes,
                held_files_idle: Duration::from_secs(600),
                ..Limits::default()
            },
            ..ServerOptions::new("127.0.0.1:0".parse().expect("an address"))
        })
    }

    #[test]
    fn what_is_not_used_goes() {
        let clock = Arc::new(ManualClock::at(0));
        let files = held(&clock, 1 << 20);
        let (tenant, file) = (TenantName::anonymous(), file("a", 1));
        files.hold(&tenant, &file);
        clock.advance(599_000_000_000);
        assert!(files.get(&tenant, file.id).is_some(), "a use counts anew");
        clock.advance(599_000_000_000);
        assert!(files.takes_sweeper());
        assert!(!files.takes_sweeper(), "one is enough");
        assert!(files.forget_unused());
        clock.advance(1_000_000_000);
        assert!(!files.forget_unused());
        assert!(files.get(&tenant, file.id).is_none());
    }

    #[test]
    fn a_tenant_has_its_own_files_and_no_more_than_its_share() {
        let clock = Arc::new(ManualClock::at(0));
        let one = file("a", 10);
        let files = held(&clock, 4 * size(&one) + 1);
        let (tenant, other) = (
            TenantName::anonymous(),
            TenantName::new("other").expect("a name"),
        );
        let named = ["a", "b", "c"].map(|name| file(name, 10));
        for file in &named {
            files.hold(&tenant, file);
            clock.advance(1);
        }
        let has = |tenant: &TenantName| {
            [0, 1, 2].map(|number: usize| files.get(tenant, named[number].id).is_some())
        };
        assert_eq!(has(&tenant), [false, true, true], "two are its half");
        assert_eq!(
            has(&other),
            [false; 3],
            "what another one opened is not there"
        );
        files.hold(&tenant, &file("large", 10_000));
        assert_eq!(has(&tenant), [false, true, true], "too large for all of it");
    }
}
