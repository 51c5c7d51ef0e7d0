//! Names of kernel functions, where the recording was made since this machine started.

use candela_formats::KernelIdentity;
use candela_symbols::KernelSymbols;
use candela_symbols::SourceFrame;
use candela_symbols::build_id::kernel_build_id;

/// The symbols of the running kernel, or none where the recorded one is another.
pub(super) struct Kernel {
    symbols: KernelSymbols,
}

impl Kernel {
    pub(super) fn running(recorded: &KernelIdentity<'_>) -> Self {
        let symbols = KernelSymbols::load().unwrap_or_default();
        let is_same = is_running_build(recorded.build_id) && is_at_same_address(&symbols, recorded);
        Self {
            symbols: if is_same {
                symbols
            } else {
                KernelSymbols::default()
            },
        }
    }

    pub(super) fn find(&self, address: u64) -> Option<SourceFrame> {
        Some(self.symbols.find(address)?.to_frame())
    }
}

fn is_running_build(build_id: &str) -> bool {
    let running = kernel_build_id().ok().flatten();
    let running = running.and_then(|id| id.gnu_hex()).unwrap_or_default();
    build_id.is_empty() || running.is_empty() || running == build_id
}

/// A kernel lies somewhere else after each start. Where its reference symbol was, a symbol has to begin
/// now; several share that address, so its name does not count.
fn is_at_same_address(symbols: &KernelSymbols, recorded: &KernelIdentity<'_>) -> bool {
    let reference = recorded.reference.map(|(_, address)| address);
    reference.is_some_and(|address| {
        let found = symbols.find(address);
        found.is_some_and(|symbol| symbol.address == address)
    })
}
