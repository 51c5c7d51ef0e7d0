//! Everything that names places, kept from window to window.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use candela_symbols::Debuginfod;
use candela_symbols::ObjectFile;
use candela_symbols::SourceFrame;
use candela_symbols::SymbolCache;
use candela_symbols::SymbolCacheOptions;
use candela_symbols::SymbolCacheStats;
use candela_symbols::SymbolizerOptions;

use crate::processes::Object;
use crate::processes::ObjectSource;
use crate::symbolize::jit::JitNames;
use crate::symbolize::kernel::KernelNames;

/// Bounds and places of symbolization.
#[derive(Clone, Debug)]
pub(crate) struct SymbolOptions {
    pub(crate) cache_bytes: usize,
    pub(crate) debuginfod: Option<Arc<Debuginfod>>,
}

/// The symbol sources.
#[derive(Debug)]
pub(crate) struct Symbols {
    cache: SymbolCache,
    debuginfod: Option<Arc<Debuginfod>>,
    vdso: Option<Arc<ObjectFile>>,
    pub(crate) kernel: KernelNames,
    pub(crate) jit: JitNames,
}

impl Symbols {
    pub(crate) fn new(options: SymbolOptions) -> Self {
        let cache = SymbolCache::new(SymbolCacheOptions {
            // Parsed symbols are dear to make, answers cheap to keep.
            max_symbol_bytes: options.cache_bytes / 3 * 2,
            max_answer_bytes: options.cache_bytes / 3,
            symbolizer: SymbolizerOptions {
                debuginfod: options.debuginfod.clone(),
                ..SymbolizerOptions::default()
            },
        });
        Self {
            cache,
            debuginfod: options.debuginfod,
            vdso: None,
            kernel: KernelNames::default(),
            jit: JitNames::default(),
        }
    }

    /// The object file for the addresses of one window; `None` when it cannot be read.
    pub(crate) fn open(&mut self, object: &Object) -> Option<Arc<ObjectFile>> {
        match &object.source {
            ObjectSource::File(file) => {
                let path = PathBuf::from(&object.path);
                let opened = self.cache.open(file, &path, &object.root, object.reader);
                opened
                    .inspect_err(|error| tracing::debug!(%error, "object has no names"))
                    .ok()
            }
            ObjectSource::Vdso => {
                if self.vdso.is_none() {
                    self.vdso = candela_symbols::vdso::own_vdso().ok().map(Arc::new);
                }
                self.vdso.clone()
            }
            ObjectSource::Unreadable => None,
        }
    }

    /// The functions at an address of an object, innermost first; empty when nothing names it.
    pub(crate) fn resolve(&self, object: &Arc<ObjectFile>, elf_address: u64) -> Arc<[SourceFrame]> {
        let frames = self.cache.resolve(object, elf_address).frames;
        if !frames.is_empty() {
            return frames;
        }
        // The handler of a signal returns to the first byte of the trampoline, which nothing calls:
        // one byte before it, where a call would be, is in no function.
        let behind = self
            .cache
            .resolve(object, elf_address.wrapping_add(1))
            .frames;
        let is_trampoline = behind
            .first()
            .is_some_and(|frame| frame.function.ends_with("restore_rt"));
        if is_trampoline { behind } else { frames }
    }

    /// Waits for debug files that are being fetched; true when names may be better now.
    pub(crate) fn wait_for_debug_files(&self, patience: Duration) -> bool {
        let Some(debuginfod) = &self.debuginfod else {
            return false;
        };
        let is_waiting = self.cache.stats().pending > 0;
        is_waiting && debuginfod.wait_until_idle(patience)
    }

    /// Between two windows nothing is read.
    pub(crate) fn release_pages(&self) {
        self.cache.release_pages();
    }

    pub(crate) fn stats(&self) -> SymbolCacheStats {
        self.cache.stats()
    }

    /// Heap in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        let stats = self.cache.stats();
        stats.symbol_bytes + stats.answer_bytes + self.kernel.heap_bytes()
    }
}
