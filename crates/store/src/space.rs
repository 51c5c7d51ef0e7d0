//! Space on the volume that new profiles leave alone.
//!
//! What was acknowledged must still get from the log into blocks when the volume fills up, and a
//! catalog that cannot commit helps nobody: appends stop while there is room for both.

use std::path::Path;
use std::path::PathBuf;

/// On a small volume the reserve is this share of it at most, percent: else a volume of a gigabyte
/// would lose a quarter of itself.
const MOST_PERCENT: u64 = 5;

/// How much of a volume stays free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SpaceReserve {
    pub(crate) directory: PathBuf,
    pub(crate) min_free_bytes: u64,
}

/// Too little is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shortage {
    pub(crate) free_bytes: u64,
    /// What would have to be free.
    pub(crate) needed_bytes: u64,
}

/// A volume's size and what of it may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Volume {
    bytes: u64,
    free_bytes: u64,
}

impl SpaceReserve {
    /// Whether the reserve is left when so many bytes more are taken.
    pub(crate) fn check(&self, more_bytes: u64) -> Result<(), Shortage> {
        // Where the system does not say what is free, writing finds out.
        match Volume::of(&self.directory) {
            Some(volume) => self.check_volume(volume, more_bytes),
            None => Ok(()),
        }
    }

    /// What is said of a write that the system refused for lack of room.
    pub(crate) fn shortage(&self, more_bytes: u64) -> Shortage {
        let volume = Volume::of(&self.directory);
        Shortage {
            free_bytes: volume.map_or(0, |volume| volume.free_bytes),
            needed_bytes: volume.map_or(0, |volume| self.reserved(volume)) + more_bytes,
        }
    }

    fn check_volume(&self, volume: Volume, more_bytes: u64) -> Result<(), Shortage> {
        let needed_bytes = self.reserved(volume).saturating_add(more_bytes);
        if volume.free_bytes >= needed_bytes {
            return Ok(());
        }
        Err(Shortage {
            free_bytes: volume.free_bytes,
            needed_bytes,
        })
    }

    fn reserved(&self, volume: Volume) -> u64 {
        self.min_free_bytes.min(volume.bytes / 100 * MOST_PERCENT)
    }
}

impl Volume {
    fn of(directory: &Path) -> Option<Self> {
        let found = rustix::fs::statvfs(directory).ok()?;
        Some(Self {
            bytes: found.f_blocks.saturating_mul(found.f_frsize),
            free_bytes: found.f_bavail.saturating_mul(found.f_frsize),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn reserve(min_free_bytes: u64) -> SpaceReserve {
        SpaceReserve {
            directory: PathBuf::from("/"),
            min_free_bytes,
        }
    }

    #[test]
    fn the_reserve_is_left_alone() {
        let volume = Volume {
            bytes: 100_000 * MIB,
            free_bytes: 300 * MIB,
        };
        assert_eq!(reserve(256 * MIB).check_volume(volume, 44 * MIB), Ok(()));
        let shortage = reserve(256 * MIB).check_volume(volume, 45 * MIB);
        let expected = Shortage {
            free_bytes: 300 * MIB,
            needed_bytes: 301 * MIB,
        };
        assert_eq!(shortage, Err(expected));
    }

    #[test]
    fn a_small_volume_keeps_a_twentieth() {
        let volume = Volume {
            bytes: 1000 * MIB,
            free_bytes: 50 * MIB,
        };
        assert_eq!(reserve(256 * MIB).check_volume(volume, 0), Ok(()));
        assert!(reserve(256 * MIB).check_volume(volume, 1).is_err());
        assert_eq!(reserve(0).check_volume(volume, 50 * MIB), Ok(()));
    }
}
