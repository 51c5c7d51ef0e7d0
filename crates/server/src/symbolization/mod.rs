//! Names that come after the profiles: from symbol files that people send, and from debuginfod
//! servers, in the background.

mod names;
mod worker;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use candela_store::Store;
use candela_symbols::Debuginfod;
use candela_symbols::SymbolArchive;
use serde_json::Value;
use serde_json::json;
use tokio::sync::Semaphore;

/// Files that are received at the same time; each is written to disk as it comes.
const CONCURRENT_UPLOADS: usize = 4;

/// Where names of stored addresses come from.
#[derive(Clone, Debug)]
pub struct SymbolSources {
    /// Files that people send.
    pub archive: Arc<SymbolArchive>,
    /// The client that is asked for the rest; `None` never asks the network.
    pub debuginfod: Option<Arc<Debuginfod>>,
}

/// The background work of putting names into stored profiles.
#[derive(Debug)]
pub(crate) struct Symbolization {
    pub(crate) sources: SymbolSources,
    pub(crate) uploads: Semaphore,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_stopping: bool,
    /// Whether there are new symbols since the last look at the blocks.
    is_wanted: bool,
    /// Build ids whose names are on their way.
    pending: BTreeSet<String>,
    renamed_blocks: u64,
    named_locations: u64,
    last_error: Option<String>,
}

impl Symbolization {
    pub(crate) fn new(sources: SymbolSources) -> Self {
        Self {
            sources,
            uploads: Semaphore::new(CONCURRENT_UPLOADS),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// New symbols are there: old profiles get their names now and not at the next look.
    pub(crate) fn wake(&self, build_id: &str) {
        let mut state = self.lock();
        state.pending.insert(build_id.to_owned());
        state.is_wanted = true;
        drop(state);
        self.changed.notify_all();
    }

    /// Ends the work soon.
    pub(crate) fn stop(&self) {
        self.lock().is_stopping = true;
        self.changed.notify_all();
    }

    /// `symbolization` of the status answer.
    pub(crate) fn status_json(&self, store: &Store) -> Value {
        let unsymbolized = store.unsymbolized(None);
        let files = self.sources.archive.files();
        let state = self.lock();
        json!({
            "files": files.len(),
            "bytes": self.sources.archive.bytes(),
            "unsymbolized": unsymbolized.len(),
            "pending": state.pending.iter().collect::<Vec<&String>>(),
            "renamed_blocks": state.renamed_blocks,
            "named_locations": state.named_locations,
            "last_error": state.last_error,
        })
    }

    fn is_stopping(&self) -> bool {
        self.lock().is_stopping
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change of the state is one assignment or one insertion.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
