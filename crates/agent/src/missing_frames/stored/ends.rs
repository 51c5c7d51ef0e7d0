//! How stacks of a stored profile end: at the entry of their thread, or before.
//!
//! A profile does not tell; its outermost frames do. Of languages whose runtimes write stacks themselves, and of
//! formats without addresses, nothing can be said and nothing is.

use candela_model::FrameKind;
use candela_model::LocationId;
use candela_model::SymbolTables;
use hashbrown::HashSet;

use crate::missing_frames::stored::causes::EndCause;
use crate::missing_frames::stored::place::is_named;

/// Where profilers stop: gperftools and Go, eBPF tools, perf, OpenTelemetry and we, and powers of two above.
const DEPTH_LIMITS: [usize; 9] = [32, 64, 100, 127, 128, 256, 512, 1024, 2048];

/// How functions begin that nobody calls: those of threads and programs, with what compilers append to them.
const ENTRIES: [&str; 22] = [
    "BaseThreadInitThunk",
    "RtlUserThreadStart",
    "__clone",
    "__libc_start",
    "__restore_rt",
    "__start_thread",
    "_dl_start",
    "_dlstart",
    "_pthread_start",
    "_rt0_",
    "_start",
    "clone",
    "libc_start_main",
    "main",
    "runtime.goexit",
    "runtime.mcall",
    "runtime.morestack",
    "runtime.mstart",
    "runtime.rt0_go",
    "runtime.systemstack",
    "start_thread",
    "thread_start",
];

/// The same in the kernel: threads of its own, and CPUs that idle.
const KERNEL_ENTRIES: [&str; 8] = [
    "cpu_startup_entry",
    "kthread",
    "rest_init",
    "ret_from_fork",
    "secondary_startup",
    "start_kernel",
    "start_secondary",
    "x86_64_start",
];

/// How the kernel is entered from a program.
const KERNEL_CALLS: [&str; 9] = [
    "__x64_sys_",
    "asm_common_interrupt",
    "asm_exc_",
    "asm_sysvec_",
    "do_syscall_64",
    "el0_",
    "entry_SYSCALL",
    "irqentry_exit_to_user_mode",
    "syscall_exit_to_user_mode",
];

/// What all stacks of a type together say about a single one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ends {
    /// The frames of the deepest stack.
    deepest: usize,
    /// Whether goroutines are there as Go's own profiler writes them: from their first function on.
    is_of_go: bool,
    has_addresses: bool,
}

// === impl Ends ===

impl Ends {
    pub(super) fn of<'a>(
        symbols: &SymbolTables,
        stacks: impl Iterator<Item = &'a [LocationId]>,
    ) -> Self {
        let mut ends = Self::default();
        let mut seen = HashSet::new();
        for stack in stacks {
            ends.deepest = ends.deepest.max(stack.len());
            for &id in stack.iter().filter(|&&id| seen.insert(id)) {
                ends.has_addresses |= symbols.location(id).address != 0;
                let mut names = symbols.lines(id).iter().map(|line| {
                    let name = symbols.function(line.function).name;
                    symbols.strings.get(name)
                });
                ends.is_of_go |= names.any(|name| matches!(name, "runtime.main" | "runtime.mcall"));
            }
        }
        ends
    }

    /// The frames of the deepest stack.
    pub(super) const fn depth(self) -> usize {
        self.deepest
    }

    /// Why a stack, leaf first, ends where it does; `None` where nothing is wrong with that, or nothing known.
    pub(super) fn cause(self, symbols: &SymbolTables, stack: &[LocationId]) -> Option<EndCause> {
        let Some(&root) = stack.last() else {
            return Some(EndCause::NoStack);
        };
        if !self.has_addresses {
            return None;
        }
        if self.deepest == 1 {
            return Some(EndCause::LeafOnly);
        }
        let name = outermost_name(symbols, root);
        let location = symbols.location(root);
        if location.kind == FrameKind::Kernel {
            let begins_in_program = KERNEL_CALLS.iter().any(|call| name.starts_with(call));
            return begins_in_program.then_some(EndCause::KernelOnly);
        }
        let is_entry = ENTRIES.iter().any(|entry| is_form_of(name, entry));
        let is_entry = is_entry || KERNEL_ENTRIES.iter().any(|entry| is_form_of(name, entry));
        if is_entry {
            return None;
        }
        if stack.len() == self.deepest && DEPTH_LIMITS.contains(&stack.len()) {
            return Some(EndCause::DepthLimit);
        }
        let is_walked = matches!(location.kind, FrameKind::Native | FrameKind::Rust)
            || (location.kind == FrameKind::Unknown && !self.is_of_go)
            // Ours have the function that goroutines end in, too.
            || (location.kind == FrameKind::Go);
        if !is_walked || location.address == 0 {
            return None;
        }
        match is_named(symbols, root) {
            true => Some(EndCause::EndsEarly),
            false => Some(EndCause::EndsUnnamed),
        }
    }
}

/// The name of the function of a location that is not inlined into another.
fn outermost_name(symbols: &SymbolTables, id: LocationId) -> &str {
    let line = symbols.lines(id).last();
    line.map_or("", |line| {
        symbols.strings.get(symbols.function(line.function).name)
    })
}

/// Whether a name is that of an entry, or what a compiler or linker makes of it: `_start.abi0`, `clone3`,
/// `__libc_start_main@@GLIBC_2.34`, `ret_from_fork_asm`. Of `main` nothing is made.
fn is_form_of(name: &str, entry: &str) -> bool {
    match name.strip_prefix(entry) {
        Some("") => true,
        Some(rest) => entry != "main" && !rest.contains("::"),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use candela_model::Location;

    use super::*;

    /// Stacks of functions, leaf first, and why each ends where it does.
    fn causes(stacks: &[&[(&str, FrameKind)]]) -> Vec<Option<EndCause>> {
        let mut symbols = SymbolTables::default();
        let mut address = 0;
        let mut location = |(name, kind): &(&str, FrameKind)| {
            address += 1;
            let lines: Vec<_> = match *name {
                "" => Vec::new(),
                name => vec![(symbols.intern_function(name, "", "", 0), 0, 0)],
            };
            symbols.intern_location(&Location::new(*kind, address), &lines)
        };
        let stacks: Vec<Vec<LocationId>> = stacks
            .iter()
            .map(|stack| stack.iter().map(&mut location).collect())
            .collect();
        let ends = Ends::of(&symbols, stacks.iter().map(Vec::as_slice));
        let causes = stacks.iter().map(|stack| ends.cause(&symbols, stack));
        causes.collect()
    }

    #[test]
    fn stacks_are_judged_by_their_outermost_frame() {
        use FrameKind::Go;
        use FrameKind::Jvm;
        use FrameKind::Kernel;
        use FrameKind::Native;
        type Stack<'a> = &'a [(&'a str, FrameKind)];
        let cases: [(Stack<'_>, Option<EndCause>); 10] = [
            (&[("f", Native), ("main", Native), ("_start", Native)], None),
            (&[("f", Native), ("clone3", Native)], None),
            (
                &[("f", Native), ("__libc_start_main@@GLIBC_2.34", Native)],
                None,
            ),
            (&[("f", Go), ("runtime.goexit.abi0", Go)], None),
            (&[("f", Jvm), ("java.lang.Thread.run", Jvm)], None),
            (&[("schedule", Kernel), ("ret_from_fork_asm", Kernel)], None),
            (
                &[("read", Kernel), ("entry_SYSCALL_64_after_hwframe", Kernel)],
                Some(EndCause::KernelOnly),
            ),
            (
                &[("f", Native), ("compare", Native)],
                Some(EndCause::EndsEarly),
            ),
            (
                &[("f", Native), ("mainly", Native)],
                Some(EndCause::EndsEarly),
            ),
            (&[("f", Native), ("", Native)], Some(EndCause::EndsUnnamed)),
        ];
        let stacks = cases.map(|(stack, _)| stack);
        let wanted: Vec<_> = cases.iter().map(|(_, cause)| *cause).collect();
        assert_eq!(causes(&stacks), wanted);
    }

    #[test]
    fn stacks_that_all_have_a_usual_depth_are_cut_there() {
        let frame = ("recursive", FrameKind::Native);
        let (deep, deepest) = (vec![frame; 126], vec![frame; 127]);
        assert_eq!(
            causes(&[&deep, &deepest]),
            [Some(EndCause::EndsEarly), Some(EndCause::DepthLimit)]
        );
        let other = vec![frame; 126];
        assert_eq!(causes(&[&other]), [Some(EndCause::EndsEarly)]);
        assert_eq!(causes(&[&[frame], &[frame]]), [Some(EndCause::LeafOnly); 2]);
        assert_eq!(causes(&[&[], &[frame, frame]])[0], Some(EndCause::NoStack));
    }

    #[test]
    fn goroutines_begin_with_a_function_of_the_program() {
        let own = ("net/http.(*conn).serve", FrameKind::Unknown);
        let stack = [("f", FrameKind::Unknown), own];
        let of_runtime = [
            ("f", FrameKind::Unknown),
            ("runtime.mcall", FrameKind::Unknown),
        ];
        assert_eq!(causes(&[&stack, &of_runtime]), [None, None]);
        assert_eq!(causes(&[&stack]), [Some(EndCause::EndsEarly)]);
    }
}
