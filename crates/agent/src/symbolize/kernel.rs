//! Names of kernel addresses.

use std::time::Duration;
use std::time::Instant;

use candela_symbols::build_id::kernel_build_id;
use candela_symbols::kallsyms::KernelSymbol;
use candela_symbols::kallsyms::KernelSymbols;

/// How often the symbols are read again because an address is in none of them: a module or a BPF
/// program may have been loaded since.
const RELOAD_AFTER: Duration = Duration::from_secs(60);

/// Kernel symbols, read when the first kernel frame needs them.
#[derive(Debug, Default)]
pub(crate) struct KernelNames {
    symbols: KernelSymbols,
    loaded_at: Option<Instant>,
    build_id: Option<String>,
}

impl KernelNames {
    /// The function that covers `address`.
    pub(crate) fn find(&mut self, address: u64) -> Option<KernelSymbol<'_>> {
        if self.symbols.find(address).is_none() {
            self.reload();
        }
        self.symbols.find(address)
    }

    /// The kernel's build id; empty when it has none that we can see.
    pub(crate) fn build_id(&mut self) -> &str {
        self.build_id.get_or_insert_with(|| {
            let id = kernel_build_id().ok().flatten();
            id.map(|id| id.to_string()).unwrap_or_default()
        })
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.symbols.heap_bytes()
    }

    fn reload(&mut self) {
        let is_recent = self.loaded_at.is_some_and(|at| at.elapsed() < RELOAD_AFTER);
        if is_recent {
            return;
        }
        self.loaded_at = Some(Instant::now());
        match KernelSymbols::load() {
            Ok(symbols) => self.symbols = symbols,
            Err(error) => tracing::warn!(%error, "kernel frames have no names"),
        }
    }
}
