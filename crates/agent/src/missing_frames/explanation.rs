//! The one table of causes: what has happened, and the command or flag that mends it.

use candela_unwind::WalkResult;

use crate::ledger::DropReason;

/// A cause in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Its name in JSON.
    pub name: &'static str,
    /// What has happened.
    pub meaning: &'static str,
    /// What mends it; empty where nothing is wrong. Words in braces stand for what is known of the file or the
    /// process.
    pub remedy: &'static str,
}

/// Why frames of a piece of code are missing, or are shown as addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FrameCause {
    /// Nothing but exported functions can be named.
    Stripped,
    /// As [`Self::Stripped`], and the servers that are asked for debug files had none.
    NotAtDebuginfod,
    /// The file may not be read.
    Unreadable,
    /// The file is deleted, and may not be read through the process.
    DeletedUnreadable,
    /// The file is for another kind of machine.
    OtherMachine,
    /// The file says nothing about how its functions are left.
    NoUnwindInformation,
    /// The file says so little that reading the rest from its code would take minutes.
    LittleUnwindInformation,
    /// Parts of the unwind information are damaged.
    DamagedUnwindInformation,
    /// Compiled at run time, and nothing names it.
    CompiledWithoutNames,
    /// Compiled at run time, and its list of names is not one that its own user made there.
    NamesRefused,
    /// Compiled at run time without frame pointers: what called it is lost.
    CompiledWithoutFramePointers,
    /// Interpreted: there are frames of the interpreter only.
    Interpreted,
    /// The kernel does not tell where its functions are.
    KernelHidden,
}

impl FrameCause {
    /// Every cause.
    pub const ALL: [Self; 13] = [
        Self::Stripped,
        Self::NotAtDebuginfod,
        Self::Unreadable,
        Self::DeletedUnreadable,
        Self::OtherMachine,
        Self::NoUnwindInformation,
        Self::LittleUnwindInformation,
        Self::DamagedUnwindInformation,
        Self::CompiledWithoutNames,
        Self::NamesRefused,
        Self::CompiledWithoutFramePointers,
        Self::Interpreted,
        Self::KernelHidden,
    ];

    /// The cause in words.
    #[must_use]
    pub const fn explanation(self) -> Explanation {
        let (name, meaning, remedy) = match self {
            Self::Stripped => (
                "stripped",
                "it has no symbols: only functions that it exports have names",
                "{install}fetch them by build id: DEBUGINFOD_URLS={debuginfod}; of an own build, keep \
                 `objcopy --only-keep-debug` of the unstripped file as {debug_file}",
            ),
            Self::NotAtDebuginfod => (
                "not_at_debuginfod",
                "it has no symbols, and none of the debuginfod servers has those of its build id {build_id}",
                "{install}of an own build, keep `objcopy --only-keep-debug` of the unstripped file as {debug_file}",
            ),
            Self::Unreadable => (
                "unreadable",
                "its file may not be read",
                "run as root, or with cap_sys_ptrace and cap_dac_read_search",
            ),
            Self::DeletedUnreadable => (
                "deleted",
                "its file was deleted or replaced since it was started, and may not be read through the process",
                "run as root or with cap_checkpoint_restore, or restart the process, which then runs the new file",
            ),
            Self::OtherMachine => (
                "other_machine",
                "it is no x86-64 file: the stacks of such programs are not walked",
                "profile a 64-bit build of it",
            ),
            Self::NoUnwindInformation => (
                "no_unwind_information",
                "it has neither .eh_frame, .debug_frame nor a Go pclntab, and its code could not be read instead",
                "build it with -fasynchronous-unwind-tables, or with -fno-omit-frame-pointer",
            ),
            Self::LittleUnwindInformation => (
                "little_unwind_information",
                "next to none of its code has unwind information: frames are found by frame pointers, if it has them",
                "build it with -fasynchronous-unwind-tables, or with -fno-omit-frame-pointer",
            ),
            Self::DamagedUnwindInformation => (
                "damaged_unwind_information",
                "parts of its unwind information cannot be read: stacks end in these functions",
                "`readelf --debug-dump=frames {path}` shows which; link it anew with a current linker",
            ),
            Self::CompiledWithoutNames => (
                "compiled_without_names",
                "code that was compiled at run time has no names: {map} is not there",
                "{names}",
            ),
            Self::NamesRefused => (
                "names_refused",
                "code that was compiled at run time has no names: {map} is not read, because {refusal}",
                "rm {map}, and let the program itself write it again; links and other users' files are not read",
            ),
            Self::CompiledWithoutFramePointers => (
                "compiled_without_frame_pointers",
                "code that was compiled at run time keeps no frame pointers: what called it is lost",
                "{frame_pointers}",
            ),
            Self::Interpreted => (
                "interpreted",
                "its functions are run by an interpreter: there are frames of the interpreter, none of theirs",
                "{names}",
            ),
            Self::KernelHidden => (
                "kernel_hidden",
                "the kernel does not tell where its functions are",
                "run as root or with cap_syslog, or: sudo sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1",
            ),
        };
        Explanation {
            name,
            meaning,
            remedy,
        }
    }
}

/// A text with what is known in the places of words in braces. Such words inside of what is known stay: names of
/// files may have them, and what is quoted for a shell must not change any more.
pub(super) fn filled(text: &str, known: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(brace) = rest.find('{') {
        let (before, from_brace) = rest.split_at(brace);
        let found = known.iter().find(|(word, _)| from_brace.starts_with(word));
        let (word, value) = *found.unwrap_or(&("{", "{"));
        filled.extend([before, value]);
        rest = &from_brace[word.len()..];
    }
    filled.push_str(rest);
    filled
}

/// How a walk ended, in words.
#[must_use]
pub const fn explain_result(result: WalkResult) -> Explanation {
    let (name, meaning, remedy) = match result {
        WalkResult::Complete => ("complete", "the stack reaches the entry of its thread", ""),
        WalkResult::TruncatedDepth => (
            "truncated_depth",
            "the stack has more than the 256 frames that are taken: its outermost are missing",
            "read such stacks from their leaves: candela query callers, or the view Callers of the window",
        ),
        WalkResult::TruncatedStack => (
            "truncated_stack",
            "the sample came before the unwind tables were there, with a copy of its stack that was too short",
            "passes by itself within seconds of a program's start; where it stays, give tables more room: agent.table_budget",
        ),
        WalkResult::NoMapping => (
            "no_mapping",
            "the stack leads to memory that is no known code: mapped a moment ago, or a caller without frame pointers",
            "code that is compiled at run time needs frame pointers: see what is said of it below",
        ),
        WalkResult::NoTable => (
            "no_table",
            "the unwind table of the file was not in the kernel yet, or found no room there",
            "passes by itself within seconds; where it stays, give tables more room: agent.table_budget",
        ),
        WalkResult::NoRule => (
            "no_rule",
            "the file's unwind information says nothing about the function: assembly, or code of no compiler",
            "build it with -fasynchronous-unwind-tables; in assembly, write .cfi_startproc and its kin",
        ),
        WalkResult::BadRead => (
            "bad_read",
            "the stack could not be read where the caller should be: a frame pointer that is none, most often",
            "build the code with -fno-omit-frame-pointer, or with -fasynchronous-unwind-tables; runtimes have flags, see below",
        ),
        WalkResult::NoProgress => (
            "no_progress",
            "the caller would lie inside the frame that it called: a frame pointer that is none, most often",
            "build the code with -fno-omit-frame-pointer, or with -fasynchronous-unwind-tables; runtimes have flags, see below",
        ),
        WalkResult::KernelOnly => (
            "kernel_only",
            "the kernel's own thread: there is no program's stack",
            "",
        ),
    };
    Explanation {
        name,
        meaning,
        remedy,
    }
}

/// A reason of the drop ledger by which frames or names go missing, in words; `None` for reasons that are about
/// other things.
#[must_use]
pub const fn explain_drop(reason: DropReason) -> Option<Explanation> {
    let (meaning, remedy) = match reason {
        DropReason::KernelStackFailed => (
            "samples in the kernel without frames of the kernel",
            "nothing: the kernel could not walk its own stack at that moment",
        ),
        DropReason::Compat32Bit => (
            "samples of a 32-bit program, whose stacks are not walked",
            "profile a 64-bit build of it",
        ),
        DropReason::UserStackMissed => (
            "waits without a stack of the program: too many threads came back at the same time",
            "record fewer processes at a time (-p PID)",
        ),
        DropReason::ArrivalMissed => (
            "waits without a stack: the kernel did not tell of the switch that ended them",
            "nothing: their time is counted",
        ),
        DropReason::CopyLimited => (
            "samples that came before their unwind tables, in larger numbers than stacks are copied",
            "passes by itself within seconds of a program's start; else lower the rate (-F, agent.rate)",
        ),
        DropReason::PendingFull => (
            "samples that came before their unwind tables, more than can wait for them",
            "passes by itself within seconds of a program's start; else lower the rate (-F, agent.rate)",
        ),
        DropReason::ProcessGone => (
            "samples of processes that ended before their mappings were read",
            "record their start: candela record -- CMD",
        ),
        DropReason::ObjectUnreadable => (
            "files of code that could not be opened",
            "run as root, or with cap_sys_ptrace and cap_dac_read_search",
        ),
        DropReason::TooManyObjects => (
            "files of code that were not opened, as many as allowed are",
            "name the processes of interest (-p PID)",
        ),
        DropReason::TableFailed => (
            "files whose unwind information could not be read",
            "CANDELA_LOG=candela_agent=debug says which and why",
        ),
        DropReason::TableEvicted | DropReason::TableRefused => (
            "unwind tables that found no room",
            "give them more: agent.table_budget",
        ),
        DropReason::TableRulesFull => (
            "unwind tables that lack rules: there are more different ones than there is room for",
            "name the processes of interest (-p PID)",
        ),
        DropReason::MappingsRefused => (
            "processes with more mappings than the kernel has room for",
            "name the processes of interest (-p PID)",
        ),
        DropReason::FrameUnnamed => (
            "places in code that have no name",
            "what is said of each file below",
        ),
        _ => return None,
    };
    Some(Explanation {
        name: reason.name(),
        meaning,
        remedy,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_result_is_explained_and_all_that_fail_have_a_remedy() {
        let results = (0..=u8::MAX).map_while(WalkResult::from_code);
        let mut meanings = BTreeSet::new();
        for result in results {
            let explanation = explain_result(result);
            assert_eq!(explanation.name, result.name());
            assert!(meanings.insert(explanation.meaning), "{result:?}");
            let is_fine = matches!(result, WalkResult::Complete | WalkResult::KernelOnly);
            assert_eq!(explanation.remedy.is_empty(), is_fine, "{result:?}");
        }
        assert_eq!(meanings.len(), crate::window::RESULT_CODES);
    }

    #[test]
    fn words_inside_of_what_is_known_stay() {
        let known = [("{file}", "'{path};{file}'"), ("{path}", "'/x'")];
        let text = "strip {file} {path} {other} {";
        assert_eq!(filled(text, &known), "strip '{path};{file}' '/x' {other} {");
    }

    #[test]
    fn every_cause_has_a_name_of_its_own_and_a_remedy() {
        let explanations = FrameCause::ALL.map(FrameCause::explanation);
        let names: BTreeSet<&str> = explanations.iter().map(|it| it.name).collect();
        assert_eq!(names.len(), FrameCause::ALL.len());
        for explanation in explanations {
            assert!(!explanation.meaning.is_empty() && !explanation.remedy.is_empty());
        }
    }

    /// What is counted as samples, files, tables or frames that are worth less is about frames.
    #[test]
    fn reasons_by_which_frames_go_missing_are_explained() {
        for name in [
            "unwind_table_evicted",
            "unwind_table_failed",
            "unwind_table_refused",
            "unwind_table_rules_full",
            "stack_copy_limited",
            "frame_unnamed",
            "process_gone",
        ] {
            let mut reasons = DropReason::ALL.iter();
            let reason = reasons.find(|reason| reason.name() == name).expect(name);
            assert!(explain_drop(*reason).is_some(), "{name}");
        }
        assert!(explain_drop(DropReason::SpoolFull).is_none());
    }
}
