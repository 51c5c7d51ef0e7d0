//! The thread that reads object files: headers, and unwind tables into the kernel.

use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::channel;

use candela_ebpf::KernelTables;
use candela_ebpf::TableId;
use candela_ebpf::monotonic_ns;
use candela_unwind::Rule;
use candela_unwind::RuleSet;
use candela_unwind::Table;

use crate::cost::ThreadClocks;
use crate::error::AgentError;
use crate::ledger::DropReason;
use crate::ledger::Ledger;
use crate::processes::Object;
use crate::tables::requests::Request;
use crate::tables::requests::RequestQueue;
use crate::tables::worth::is_worth_a_table;

/// A table that was used this recently is not taken out of the kernel for another one: with a budget
/// that is too small, tables would only move in and out.
const UNTOUCHABLE_NS: u64 = 5_000_000_000;

/// What it answers.
#[derive(Debug)]
pub(crate) enum LoaderReply {
    /// The objects asked for have their descriptions.
    Described,
    /// A table was built.
    Built {
        slot: u32,
        table: Arc<Table>,
        /// Rules that the table added to the dictionary, in order.
        new_rules: Vec<Rule>,
        is_in_kernel: bool,
    },
    /// The object has no unwind information, or none that can be read: frame pointers are left.
    NoTable {
        slot: u32,
        /// Rules that came into the dictionary all the same.
        new_rules: Vec<Rule>,
    },
    /// The kernel has no table of this slot any more.
    Forgotten { slot: u32 },
}

/// The running thread. When this is dropped it ends after the request that it is at; nobody waits
/// for it, because the largest binaries take a while.
#[derive(Debug)]
pub(crate) struct Loader {
    requests: Arc<RequestQueue>,
    replies: Receiver<LoaderReply>,
}

impl Loader {
    pub(crate) fn start(
        kernel: Option<Arc<KernelTables>>,
        budget_bytes: u64,
        ledger: Arc<Ledger>,
        clocks: Arc<ThreadClocks>,
    ) -> Result<Self, AgentError> {
        let requests = Arc::new(RequestQueue::default());
        let queue = Arc::clone(&requests);
        let (reply_sender, replies) = channel();
        let mut work = Work {
            kernel,
            budget_bytes,
            ledger,
            rules: RuleSet::new(),
            rules_sent: 0,
        };
        let name = "candela-tables";
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                let _counted = clocks.count_this(name);
                while let Some(request) = queue.next() {
                    if reply_sender.send(work.answer(request)).is_err() {
                        return;
                    }
                }
            })
            .map_err(|source| AgentError::Thread { name, source })?;
        Ok(Self { requests, replies })
    }

    pub(crate) fn describe(&self, objects: Vec<Arc<Object>>) {
        self.requests.push(Request::Describe(objects));
    }

    pub(crate) fn build(&self, slot: u32, object: Arc<Object>) {
        self.requests.push(Request::Build { slot, object });
    }

    /// Takes a table out of the kernel whose objects are gone.
    pub(crate) fn forget(&self, slot: u32) {
        self.requests.push(Request::Forget { slot });
    }

    /// An answer, if there is one.
    pub(crate) fn reply(&self) -> Option<LoaderReply> {
        self.replies.try_recv().ok()
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        self.requests.close();
    }
}

/// `None` where there is no unwind information, or too little.
fn build_table(
    file: &[u8],
    AssertUnwindSafe(rules): AssertUnwindSafe<&mut RuleSet>,
) -> Result<Option<Table>, String> {
    if !is_worth_a_table(file) {
        return Ok(None);
    }
    match Table::build(file, rules) {
        Ok(table) => Ok(Some(table)),
        Err(candela_unwind::Error::NoUnwindInformation) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

struct Work {
    /// Where tables go besides; `None` without BPF.
    kernel: Option<Arc<KernelTables>>,
    budget_bytes: u64,
    ledger: Arc<Ledger>,
    rules: RuleSet,
    /// How many rules the answers so far have told of.
    rules_sent: usize,
}

impl Work {
    fn answer(&mut self, request: Request) -> LoaderReply {
        match request {
            Request::Describe(objects) => {
                for object in objects {
                    object.describe();
                }
                LoaderReply::Described
            }
            Request::Build { slot, object } => self.build(slot, &object),
            Request::Forget { slot } => {
                let evicted = self.kernel.as_ref().map(|it| it.evict_table(TableId(slot)));
                if let Some(Err(error)) = evicted {
                    tracing::warn!(%error, "unwind table not evicted");
                }
                LoaderReply::Forgotten { slot }
            }
        }
    }

    fn build(&mut self, slot: u32, object: &Object) -> LoaderReply {
        let built = object
            .open()
            .map_err(|error| error.to_string())
            .and_then(|opened| {
                let rules = AssertUnwindSafe(&mut self.rules);
                // A defect that some file brings out must not leave all later ones without tables.
                catch_unwind(move || build_table(opened.data(), rules))
                    .unwrap_or_else(|_| Err("the reader of unwind information panicked".to_owned()))
            });
        let table = match built {
            Ok(Some(table)) => Arc::new(table),
            Ok(None) => return self.no_table(slot),
            Err(error) => {
                self.ledger.add(DropReason::TableFailed, 1);
                tracing::debug!(%error, path = %object.path, "no unwind table");
                return self.no_table(slot);
            }
        };
        if table.statistics().dictionary_full > 0 {
            self.ledger.add(DropReason::TableRulesFull, 1);
        }
        // Without BPF nothing is missing in the kernel.
        let is_in_kernel = match &self.kernel {
            Some(kernel) => self.upload(kernel, slot, &table),
            None => true,
        };
        LoaderReply::Built {
            slot,
            table,
            new_rules: self.new_rules(),
            is_in_kernel,
        }
    }

    fn no_table(&mut self, slot: u32) -> LoaderReply {
        LoaderReply::NoTable {
            slot,
            new_rules: self.new_rules(),
        }
    }

    /// What the dictionary has gained since the last answer. The other side numbers rules in the
    /// order in which they come, so none may be left out, whatever they were made for.
    fn new_rules(&mut self) -> Vec<Rule> {
        let all = self.rules.rules();
        let new = all[self.rules_sent.min(all.len())..].to_vec();
        self.rules_sent = all.len();
        new
    }

    fn upload(&self, kernel: &KernelTables, slot: u32, table: &Table) -> bool {
        let needed_bytes = table.statistics().bytes as u64;
        if !self.make_room(kernel, needed_bytes) {
            self.ledger.add(DropReason::TableRefused, 1);
            return false;
        }
        kernel.sync_rules(&self.rules);
        match kernel.upload_table(TableId(slot), table) {
            Ok(_) => true,
            Err(error) => {
                self.ledger.add(DropReason::TableFailed, 1);
                tracing::warn!(%error, "unwind table not uploaded");
                false
            }
        }
    }

    /// Takes tables out of the kernel, the longest unused first, until `needed_bytes` fit.
    fn make_room(&self, kernel: &KernelTables, needed_bytes: u64) -> bool {
        let tables = kernel.tables_by_last_use();
        let mut used_bytes: u64 = tables.iter().map(|table| table.bytes).sum();
        let now_ns = monotonic_ns();
        for table in tables {
            if used_bytes + needed_bytes <= self.budget_bytes {
                return true;
            }
            if now_ns.saturating_sub(table.last_used_ns) < UNTOUCHABLE_NS {
                return false;
            }
            match kernel.evict_table(table.id) {
                Ok(bytes) => used_bytes -= bytes.min(used_bytes),
                Err(error) => tracing::warn!(%error, "unwind table not evicted"),
            }
            self.ledger.add(DropReason::TableEvicted, 1);
        }
        used_bytes + needed_bytes <= self.budget_bytes
    }
}
