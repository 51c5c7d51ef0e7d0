use super::{Found, ROOT_USER, Refusal, our_user};
use rustix::thread::CapabilitySet;
use std::sync::OnceLock;

/// For whom a file is opened, and who must therefore be able to read it without us.
///
/// Only owners and everybody count. That the reader belongs to a group which may read the file is not looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// The user of a process.
    User(u32),
    /// Whoever asks us. Where we have no more rights than our user, that is whatever we may read.
    Everybody,
}

/// Permissions to read a file and to look for names in a folder: the owner's, and everybody's.
const READ: (u32, u32) = (0o400, 0o004);
const SEARCH: (u32, u32) = (0o100, 0o001);

impl Reader {
    pub(super) fn is_user(self, user: u32) -> bool {
        self == Self::User(user)
    }

    pub(super) fn check_reads(self, found: &Found) -> Result<(), Refusal> {
        self.check(found, READ)
    }

    pub(super) fn check_searches(self, folder: &Found) -> Result<(), Refusal> {
        self.check(folder, SEARCH)
    }

    fn check(self, found: &Found, (owners, everybodys): (u32, u32)) -> Result<(), Refusal> {
        let mode = found.stat.st_mode;
        let is_owner = self.is_user(found.owner());
        let may = mode & everybodys != 0 || (is_owner && mode & owners != 0);
        if may || self.is_user(ROOT_USER) || self.is_up_to_the_kernel() {
            return Ok(());
        }
        Err(Refusal::Private)
    }

    /// Whether the reader can do no less than we: then it is enough that the kernel lets us.
    fn is_up_to_the_kernel(self) -> bool {
        !is_privileged() && (self == Self::Everybody || self.is_user(our_user()))
    }
}

/// Whether we may read what our user may not.
fn is_privileged() -> bool {
    static IS_PRIVILEGED: OnceLock<bool> = OnceLock::new();
    *IS_PRIVILEGED.get_or_init(|| {
        let reads_all = CapabilitySet::DAC_READ_SEARCH | CapabilitySet::DAC_OVERRIDE;
        // Unknown is as good as privileged.
        rustix::thread::capabilities(None).map_or(true, |sets| sets.effective.intersects(reads_all))
    })
}
