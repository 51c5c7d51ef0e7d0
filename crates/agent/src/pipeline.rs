//! The parts that the continuous agent and a recording share: turning windows of samples into profiles.

use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use candela_ebpf::Clock;
use candela_model::Profile;
use candela_symbols::Debuginfod;
use candela_symbols::debuginfod::DebuginfodOptions;

use crate::collector::Collector;
use crate::filters::SampleFilters;
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

/// How long a profile waits for what container runtimes are being asked.
pub(crate) const LONGEST_NAMING: Duration = Duration::from_secs(3);

/// A window with what its profile needs.
#[derive(Debug)]
pub(crate) struct FinishedWindow {
    pub(crate) window: Window,
    pub(crate) header: ProfileHeader,
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
    let of_source = source.windows().into_iter();
    let mut taken: Vec<(Window, Scale)> = of_source
        .map(|id| (windows.of(id).take(), source.scale(id)))
        .collect();
    taken.extend(windows.take_others());
    // One for all: what happened at one time has the same time in each of them.
    let clock = Clock::now();
    let finished = taken.into_iter();
    finished
        .map(|(window, scale)| finish_window(window, scale, (start_ns, end_ns), clock, board))
        .collect()
}

/// The samples of one window, gathered between two times (CLOCK_MONOTONIC, nanoseconds).
pub(crate) fn finish_window(
    window: Window,
    scale: Scale,
    (start_ns, end_ns): (u64, u64),
    clock: Clock,
    board: &StatusBoard,
) -> FinishedWindow {
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
}

pub(crate) fn start_symbols(options: &AgentOptions) -> Symbols {
    Symbols::new(SymbolOptions {
        cache_bytes: options.symbol_cache_bytes,
        debuginfod: start_debuginfod(options),
    })
}

/// Waits a moment for names that container runtimes are asked for.
pub(crate) fn settle_names(window: &mut Window) {
    let deadline = Instant::now() + LONGEST_NAMING;
    for process in &mut window.processes {
        if let Some(unsettled) = process.unsettled.take() {
            process.labels = unsettled.settled(deadline);
        }
    }
}

pub(crate) fn symbolize(
    finished: &mut FinishedWindow,
    filters: &SampleFilters,
    symbols: &mut Symbols,
    board: &StatusBoard,
) -> Profile {
    settle_names(&mut finished.window);
    let (window, header) = (&finished.window, &finished.header);
    let (mut profile, counts) = build_profile(window, header, filters, symbols);
    filters.hide.apply_frames_to_profile(&mut profile);
    symbols.release_pages();
    let ledger = &board.ledger;
    ledger.add(DropReason::FrameUnnamed, counts.unnamed);
    ledger.add(DropReason::ExcludedByRule, counts.excluded);
    ledger.add(DropReason::BelowMinSamples, counts.below_min);
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
