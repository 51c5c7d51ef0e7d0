//! Why frames of a profile that was stored are missing or have no names, and what can still be done about it.

use crate::missing_frames::explanation::Explanation;

/// Why frames have no names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum StoredCause {
    /// A file is known by its build id.
    NotSymbolized,
    /// A file is known by its path alone.
    NoBuildId,
    /// An address in no file: compiled at run time, in memory that has no name.
    Compiled,
    /// The kernel's, or one of its modules'.
    Kernel,
    /// The page that the kernel lends to every process.
    Vdso,
    /// The profile has no address of it.
    NoAddress,
}

/// How stacks end before their beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum EndCause {
    /// There is no frame at all.
    NoStack,
    /// All stacks are of one frame.
    LeafOnly,
    /// As many frames as a profiler takes.
    DepthLimit,
    /// Frames of the kernel alone, in a call or interrupt of a program.
    KernelOnly,
    /// In a function that nothing starts with.
    EndsEarly,
    /// At an address without a name.
    EndsUnnamed,
}

// === impl StoredCause ===

impl StoredCause {
    #[cfg(test)]
    pub(super) const ALL: [Self; 6] = [
        Self::NotSymbolized,
        Self::NoBuildId,
        Self::Compiled,
        Self::Kernel,
        Self::Vdso,
        Self::NoAddress,
    ];

    /// The cause in words; those in braces stand for what is known.
    pub(super) const fn explanation(self) -> Explanation {
        let (name, meaning, remedy) = match self {
            Self::NotSymbolized => (
                "not_symbolized",
                "its addresses were not named where the profile was taken; its build id is {build_id}",
                "{found}give a server the profile and the symbols: candela push {profile} --service NAME, and \
                 candela symbols upload {symbols}; or let it fetch them: CANDELA_SYMBOLS__DEBUGINFOD_URLS={debuginfod}{install}",
            ),
            Self::NoBuildId => (
                "no_build_id",
                "its addresses were not named where the profile was taken, and without a build id nobody can tell \
                 which file they are of",
                "link it with -Wl,--build-id, and take the profile anew with a profiler that writes build ids{install}",
            ),
            Self::Compiled => (
                "compiled_without_names",
                "code that was compiled at run time: its names are gone with the process",
                "{names}; then take the profile anew",
            ),
            Self::Kernel => (
                "kernel_hidden",
                "the kernel did not tell where its functions are, and its addresses change with each start",
                "take the profile anew as root or with cap_syslog, or after: sysctl kernel.kptr_restrict=0",
            ),
            Self::Vdso => (
                "vdso",
                "it has no file: the kernel maps its code for the clock into every process",
                "take the profile anew with candela record, which reads its names in the process",
            ),
            Self::NoAddress => (
                "no_address",
                "the profile has neither names nor addresses of them: who wrote it did not know, or the format keeps none",
                "convert what the profiler wrote first (perf.data, pprof) and not its text: candela convert perf.data -o profile.pb.gz",
            ),
        };
        Explanation {
            name,
            meaning,
            remedy,
        }
    }
}

// === impl EndCause ===

impl EndCause {
    #[cfg(test)]
    pub(super) const ALL: [Self; 6] = [
        Self::NoStack,
        Self::LeafOnly,
        Self::DepthLimit,
        Self::KernelOnly,
        Self::EndsEarly,
        Self::EndsUnnamed,
    ];

    /// The cause in words.
    pub(super) const fn explanation(self) -> Explanation {
        let (name, meaning, remedy) = match self {
            Self::NoStack => (
                "no_stack",
                "samples without any frame",
                "take the profile anew with stacks: candela record, perf record -g",
            ),
            Self::LeafOnly => (
                "leaf_only",
                "every stack is one frame: who calls it was not recorded",
                "take the profile anew with stacks: candela record, perf record -g",
            ),
            Self::DepthLimit => (
                "depth_limit",
                "stacks of exactly {depth} frames, which is where profilers stop: their outermost are missing",
                "take more (sysctl kernel.perf_event_max_stack for perf; candela takes 256), or read such stacks from \
                 their leaves: candela query callers",
            ),
            Self::KernelOnly => (
                "kernel_only",
                "programs in the kernel, without the program's part of the stack: it was not asked for, or its walk failed at once",
                "take the profile anew with candela record, which needs no frame pointers; with perf: --call-graph dwarf, \
                 and no :k behind the event",
            ),
            Self::EndsEarly => (
                "ends_early",
                "stacks end in functions that somebody must have called, most of them in {place}: the walk lost its way there",
                "take the profile anew with candela record, which needs no frame pointers, or build {place} with \
                 -fno-omit-frame-pointer; with perf: --call-graph dwarf",
            ),
            Self::EndsUnnamed => (
                "ends_unnamed",
                "stacks end at addresses without names, most of them in {place}: whether they begin there nobody can tell",
                "name it first, as is said of it",
            ),
        };
        Explanation {
            name,
            meaning,
            remedy,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_cause_has_a_name_of_its_own_and_a_remedy() {
        let of_names = StoredCause::ALL.map(StoredCause::explanation);
        let of_ends = EndCause::ALL.map(EndCause::explanation);
        let all = [of_names, of_ends].concat();
        let names: BTreeSet<&str> = all.iter().map(|it| it.name).collect();
        assert_eq!(names.len(), all.len());
        for explanation in all {
            assert!(!explanation.meaning.is_empty() && !explanation.remedy.is_empty());
        }
    }
}
