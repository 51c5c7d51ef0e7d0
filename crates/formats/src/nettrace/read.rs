//! A trace as a profile.

use std::io::BufRead;

use candela_model::Labels;
use candela_model::Profile;

use crate::error::ReadError;
use crate::inflate::read_inflated;
use crate::named_stacks::NamedStacks;
use crate::nettrace::NAME;
use crate::nettrace::blocks::Container;
use crate::nettrace::blocks::Kind;
use crate::nettrace::blocks::container;
use crate::nettrace::events::events;
use crate::nettrace::metadata::EventKind;
use crate::nettrace::metadata::Metadata;
use crate::nettrace::methods::Methods;
use crate::nettrace::samples::EventSamples;
use crate::nettrace::threads::Threads;
use crate::nettrace::universal::Machine;
use crate::options::ReadOptions;
use crate::report::Report;
use crate::timed_samples::Window;

/// Reads a trace of versions 3 to 6: the samples of the runtime's sampler as wall time, as it takes
/// running and waiting threads alike, and the ticks of allocation as memory. Each sample weighs
/// the interval that the trace says. The label `thread_state` tells managed code from what it waits for.
/// Methods are named by the events that the runtime writes at the end of a trace; an address without one
/// stays an address. Recordings of a whole machine (`Universal.Events`) have samples of its processors.
///
/// # Errors
/// When the input cannot be read, exceeds a limit, is of another version, or has none of these events.
/// A trace that breaks off gives what it has.
pub fn read_nettrace(
    input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let limits = &options.limits;
    let bytes = read_inflated(input, limits.inflated_bytes())?;
    let parts = container(&bytes)?;
    let mut stacks = NamedStacks::new(limits);
    if parts.is_cut {
        stacks.report.note(
            "trace_cut",
            "the trace breaks off: methods that it would have named at its end are addresses",
        );
    }
    let names = Names::of(&parts, &mut stacks);
    let Names {
        metadata,
        methods,
        machine,
        threads,
    } = names;
    let version = parts.trace.version;
    let mut samples = EventSamples::new(parts.trace, (methods, machine), &threads, stacks, limits);
    for block in &parts.blocks {
        let mut result = Ok(());
        let is_whole = match block.kind {
            Kind::Events => events(block, version, &mut |event| {
                if result.is_ok() {
                    result = samples.take_event(event, metadata.kind(event.metadata));
                }
            }),
            Kind::Stacks => samples.take_stacks(block.data),
            Kind::SequencePoint => {
                samples.forget_stacks();
                Some(())
            }
            Kind::Metadata | Kind::Threads | Kind::Other => Some(()),
        };
        result?;
        if is_whole.is_none() {
            samples.note_broken();
        }
    }
    let (mut profile, report, samples, window) = samples.finish();
    if samples.is_empty() {
        return Err(ReadError::Invalid {
            format: NAME,
            problem: "the trace has no stack sample and no tick of allocation: collect with \
                the profile `cpu-sampling` or `gc-verbose`"
                .to_owned(),
        });
    }
    let now = Window::between(options.now_ns, options.now_ns);
    samples.finish(
        &mut profile,
        window.unwrap_or(now),
        Labels::default(),
        options,
    );
    Ok((profile, report))
}

/// What events refer to, which may come behind them.
struct Names {
    metadata: Metadata,
    methods: Methods,
    machine: Machine,
    threads: Threads,
}

impl Names {
    /// What is broken is noted when the events are read.
    fn of(parts: &Container<'_>, stacks: &mut NamedStacks<'_>) -> Self {
        let version = parts.trace.version;
        let mut names = Self {
            metadata: Metadata::default(),
            methods: Methods::default(),
            machine: Machine::default(),
            threads: Threads::default(),
        };
        for block in &parts.blocks {
            let _ = match block.kind {
                Kind::Metadata if version >= 6 => names.metadata.take_block(block.data),
                Kind::Metadata => events(block, version, &mut |event| {
                    let _ = names.metadata.take_event(event.payload);
                }),
                Kind::Threads => names.threads.take_block(block.data),
                Kind::Events => events(block, version, &mut |event| {
                    // Version 3 has metadata among the events.
                    if version <= 3 && event.metadata == 0 {
                        let _ = names.metadata.take_event(event.payload);
                    }
                    let _ = match names.metadata.kind(event.metadata).0 {
                        EventKind::Method => names.methods.take_method(event.payload, stacks),
                        EventKind::Module => names.methods.take_module(event.payload, stacks),
                        EventKind::Mapping | EventKind::Symbol => {
                            let thread = names.threads.get(event.thread);
                            let pid = thread.and_then(|thread| thread.pid);
                            let (kind, _) = names.metadata.kind(event.metadata);
                            names.machine.take(kind, pid, event.payload, stacks)
                        }
                        _ => Some(()),
                    };
                }),
                Kind::Stacks | Kind::SequencePoint | Kind::Other => Some(()),
            };
        }
        names.methods.sort();
        names.machine.sort();
        names
    }
}
