//! The parts that the continuous agent and a recording share: starting the source, and turning its
//! windows into profiles.

use std::sync::Arc;

use candela_ebpf::Clock;
use candela_ebpf::Target;
use candela_model::Profile;
use candela_symbols::Debuginfod;
use candela_symbols::debuginfod::DebuginfodOptions;

use crate::collector::Collector;
use crate::cpu::CpuCollector;
use crate::cpu::CpuOptions;
use crate::cpu::SamplingPlan;
use crate::error::AgentError;
use crate::labels::Labeler;
use crate::ledger::DropReason;
use crate::options::AgentOptions;
use crate::status::StatusBoard;
use crate::symbolize::ProfileHeader;
use crate::symbolize::Scale;
use crate::symbolize::SymbolOptions;
use crate::symbolize::Symbols;
use crate::symbolize::build_profile;
use crate::window::Window;
use crate::windows::Windows;

/// A window with what its profile needs.
#[derive(Debug)]
pub(crate) struct FinishedWindow {
    pub(crate) window: Window,
    pub(crate) header: ProfileHeader,
}

pub(crate) fn start_cpu(
    options: &AgentOptions,
    plan: SamplingPlan,
    target: Target,
    exclude_self: bool,
    board: &StatusBoard,
) -> Result<CpuCollector, AgentError> {
    let labeler = Labeler::new(
        &options.host_name(),
        options.extra_labels.clone(),
        options.service_rules.clone(),
    );
    let cpu = CpuOptions {
        plan,
        target,
        exclude_self,
        table_budget_bytes: options.table_budget_bytes,
    };
    CpuCollector::start(cpu, labeler, Arc::clone(&board.ledger))
}

/// Takes the samples of each kind; they were gathered between the two times (CLOCK_MONOTONIC,
/// nanoseconds).
pub(crate) fn finish_windows(
    source: &dyn Collector,
    windows: &mut Windows,
    start_ns: u64,
    end_ns: u64,
    board: &StatusBoard,
) -> Vec<FinishedWindow> {
    let clock = Clock::now();
    let finish = |window: Window, scale| {
        board.add_results(&window.results);
        board.ledger.add(DropReason::WindowFull, window.dropped);
        let contexts_dropped = window.contexts.dropped;
        board.ledger.add(DropReason::ContextsFull, contexts_dropped);
        FinishedWindow {
            window,
            header: ProfileHeader {
                scale,
                start_ns: clock.unix_ns(start_ns),
                duration_ns: i64::try_from(end_ns.saturating_sub(start_ns)).unwrap_or(i64::MAX),
                clock,
            },
        }
    };
    let of_windows = source
        .windows()
        .into_iter()
        .map(|id| finish(windows.of(id).take(), source.scale(id)));
    let mut finished: Vec<FinishedWindow> = of_windows.collect();
    let in_use = windows.take_in_use();
    finished.extend(in_use.map(|window| finish(window, Scale::in_use())));
    finished
}

pub(crate) fn start_symbols(options: &AgentOptions) -> Symbols {
    Symbols::new(SymbolOptions {
        cache_bytes: options.symbol_cache_bytes,
        debuginfod: start_debuginfod(options),
    })
}

pub(crate) fn symbolize(
    finished: &FinishedWindow,
    symbols: &mut Symbols,
    board: &StatusBoard,
) -> Profile {
    let (profile, counts) = build_profile(&finished.window, &finished.header, symbols);
    symbols.release_pages();
    board.ledger.add(DropReason::FrameUnnamed, counts.unnamed);
    let stats = symbols.stats();
    let status = &mut board.parts().symbols;
    status.windows += 1;
    status.named_frames += counts.named;
    status.unnamed_frames += counts.unnamed;
    status.cache_hits = stats.hits;
    status.cache_misses = stats.misses;
    status.cache_bytes = symbols.heap_bytes() as u64;
    profile
}

fn start_debuginfod(options: &AgentOptions) -> Option<Arc<Debuginfod>> {
    if options.debuginfod_urls.is_empty() {
        return None;
    }
    let urls = options.debuginfod_urls.join(" ");
    let cache = options.debuginfod_cache.as_ref();
    let settings = DebuginfodOptions::from_environment(|name| match name {
        "DEBUGINFOD_URLS" => Some(urls.clone()),
        "DEBUGINFOD_CACHE_PATH" if cache.is_some() => cache.map(|path| path.display().to_string()),
        _ => std::env::var(name).ok(),
    })?;
    Debuginfod::start(&settings)
        .inspect_err(|error| tracing::warn!(%error, "debuginfod is not asked"))
        .ok()
        .map(Arc::new)
}
