//! Where the data of a demo is, and what is already there.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::path::PathBuf;

use serde::Deserialize;
use serde::Serialize;
use tempfile::TempDir;

use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;
use crate::output::write_file;

/// What says that a folder was made by a demo.
const MARK: &str = "demo.json";
const SCHEMA: &str = "candela/demo/v1";
/// A day that ended this long ago still looks like now.
const FRESH_NS: i64 = 3_600_000_000_000;

/// A folder for a store.
#[derive(Debug)]
pub(crate) struct DemoFolder {
    path: PathBuf,
    /// What removes it at the end.
    temporary: Option<TempDir>,
}

/// What a folder holds that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing.
    Empty,
    /// A day that ended a short while ago.
    Whole { end_ns: i64 },
}

#[derive(Debug, Deserialize, Serialize)]
struct Mark {
    schema: String,
    seed: u64,
    end_ns: i64,
    /// Whether all of the day is there.
    is_whole: bool,
}

impl DemoFolder {
    /// The folder that was asked for, else one that goes away with the command.
    pub(crate) fn new(asked: Option<&Path>) -> Result<Self, CliError> {
        if let Some(path) = asked {
            return Ok(Self {
                path: path.to_owned(),
                temporary: None,
            });
        }
        let temporary = tempfile::Builder::new().prefix("candela-demo-").tempdir();
        let temporary = temporary.or_exit(ExitStatus::Failed, "folder for the data")?;
        Ok(Self {
            path: temporary.path().to_owned(),
            temporary: Some(temporary),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What is there, or why it cannot be used. It is never removed: somebody may want it.
    pub(crate) fn look(&self, seed: u64, now_ns: i64) -> Result<Found, CliError> {
        let place = self.path.display();
        let entries = match fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::Empty),
            Err(error) => {
                return Err(CliError::failed(format!(
                    "cannot read {place}: {error}; choose another --data-dir"
                )));
            }
        };
        if entries.count() == 0 {
            return Ok(Found::Empty);
        }
        let mark = fs::read(self.path.join(MARK)).ok();
        let mark = mark.and_then(|bytes| serde_json::from_slice::<Mark>(&bytes).ok());
        let Some(mark) = mark.filter(|mark| mark.schema == SCHEMA) else {
            return Err(refused(&format!(
                "{place} holds something else than a demo"
            )));
        };
        if !mark.is_whole {
            return Err(refused(&format!(
                "{place} holds a part of a demo that was interrupted"
            )));
        }
        if mark.seed != seed {
            return Err(refused(&format!(
                "{place} holds a demo of seed {}, not of seed {seed}",
                mark.seed
            )));
        }
        let age_ns = now_ns.saturating_sub(mark.end_ns);
        if !(0..FRESH_NS).contains(&age_ns) {
            let minutes = age_ns / 60_000_000_000;
            return Err(refused(&format!(
                "{place} holds a demo that ended {minutes} minutes ago, more than 60"
            )));
        }
        Ok(Found::Whole {
            end_ns: mark.end_ns,
        })
    }

    /// Says whose folder it is before anything else is in it.
    pub(crate) fn mark_begun(&self, seed: u64, end_ns: i64) -> Result<(), CliError> {
        self.mark(seed, end_ns, false)
    }

    /// Says that the whole day is there.
    pub(crate) fn mark_whole(&self, seed: u64, end_ns: i64) -> Result<(), CliError> {
        self.mark(seed, end_ns, true)
    }

    fn mark(&self, seed: u64, end_ns: i64, is_whole: bool) -> Result<(), CliError> {
        let mark = Mark {
            schema: SCHEMA.to_owned(),
            seed,
            end_ns,
            is_whole,
        };
        let text = serde_json::to_vec(&mark).expect("numbers and texts are always JSON");
        write_file(&self.path.join(MARK), &text)
    }

    /// Removes what was for this command only.
    pub(crate) fn close(self) -> Result<(), CliError> {
        let Some(temporary) = self.temporary else {
            return Ok(());
        };
        let what = format!("cannot remove {}", self.path.display());
        temporary.close().or_exit(ExitStatus::Failed, &what)
    }
}

fn refused(what: &str) -> CliError {
    CliError::failed(format!("{what}; remove it, or choose another --data-dir"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_NS: i64 = 1_700_000_000_000_000_000;
    const MINUTE_NS: i64 = 60_000_000_000;

    fn folder() -> DemoFolder {
        DemoFolder::new(None).expect("a temporary folder")
    }

    #[test]
    fn only_a_fresh_day_of_the_same_seed_is_shown_again() {
        let folder = folder();
        assert_eq!(folder.look(1, NOW_NS).expect("is empty"), Found::Empty);
        folder.mark_begun(1, NOW_NS).expect("is written");
        let error = folder.look(1, NOW_NS).expect_err("a part").to_string();
        assert!(error.contains("interrupted"), "{error}");
        folder.mark_whole(1, NOW_NS).expect("is written");
        let found = folder.look(1, NOW_NS + 59 * MINUTE_NS).expect("is fresh");
        assert_eq!(found, Found::Whole { end_ns: NOW_NS });
        let error = folder
            .look(2, NOW_NS)
            .expect_err("another seed")
            .to_string();
        assert!(error.contains("of seed 1, not of seed 2"), "{error}");
        let old = folder.look(1, NOW_NS + 61 * MINUTE_NS);
        let error = old.expect_err("too old").to_string();
        assert!(error.contains("61 minutes ago"), "{error}");
    }

    #[test]
    fn what_is_no_demo_is_left_alone() {
        let folder = folder();
        fs::write(folder.path().join("catalog.sqlite"), "mine").expect("is written");
        let error = folder.look(1, NOW_NS).expect_err("not ours").to_string();
        assert!(error.contains("something else"), "{error}");
        assert!(error.contains("choose another --data-dir"), "{error}");
    }
}
