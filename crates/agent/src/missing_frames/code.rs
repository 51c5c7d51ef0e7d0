//! One file of code: how its frames are found, what names them, and what is wrong with it.

use std::fs::File;
use std::path::Path;

use candela_symbols::DebugFileSearch;
use candela_symbols::ObjectFile;
use candela_symbols::foreign::Reader;
use candela_unwind::Error as UnwindError;
use candela_unwind::RuleSet;
use candela_unwind::Table;
use object::Object as _;
use object::ObjectSection as _;
use object::ObjectSymbol as _;
use serde::Serialize;

use crate::missing_frames::explanation::FrameCause;
use crate::missing_frames::process::Problem;
use crate::tables::is_worth_a_table;

/// What is known of a file of code, or of all code without a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CodeReport {
    /// The path as the process sees it; `[compiled at run time]` for code without a file,
    /// `[interpreted]` for what has none.
    pub path: String,
    /// Build id, or what stands for it; empty when the file cannot be read.
    pub build_id: String,
    /// Whether it was deleted or replaced since it was mapped.
    pub is_deleted: bool,
    /// What its frames are found by: `eh_frame`, `debug_frame`, `go_pclntab`, `code` (rules read from the code
    /// itself), `frame_pointers`; several in the order in which they are asked.
    pub unwound_by: Vec<&'static str>,
    /// What names its functions: `dwarf`, `symtab`, `mini_debug_info`, `go_pclntab`, `dynsym`, `perf_map`; several
    /// in the order in which they are asked.
    pub named_by: Vec<&'static str>,
    /// The separate debug file; empty when there is none.
    pub debug_file: String,
    /// Sampled frames in it.
    pub frames: u64,
    /// Those of them that have no name.
    pub unnamed_frames: u64,
    /// Sampled stacks that ended in it before their end.
    pub short_stacks: u64,
    /// What is wrong with it.
    pub problems: Vec<Problem>,
    #[serde(skip)]
    pub(super) causes: Vec<FrameCause>,
    #[serde(skip)]
    pub(super) debug_file_place: String,
}

impl CodeReport {
    /// Looks into a file that is open; `None` when it is no ELF file, so that a runtime has made it.
    pub(super) fn of_file(file: &File, path: &str, root: &Path, reader: Reader) -> Option<Self> {
        let mut report = Self {
            path: path.to_owned(),
            ..Self::default()
        };
        let object = match ObjectFile::from_file(file, Path::new(path)) {
            Ok(object) => object.with_root(root.to_owned(), reader),
            Err(
                candela_symbols::Error::NotElf { .. }
                | candela_symbols::Error::NotRegularFile { .. },
            ) => {
                return None;
            }
            Err(_) => {
                report.causes.push(FrameCause::Unreadable);
                return Some(report);
            }
        };
        report.build_id = object.build_id().to_string();
        report.debug_file_place = super::debug_packages::debug_file_of(object.build_id());
        report.look_at_unwinding(object.data());
        report.look_at_names(&object);
        Some(report)
    }

    fn look_at_unwinding(&mut self, data: &[u8]) {
        if !is_worth_a_table(data) {
            self.unwound_by = vec!["frame_pointers"];
            self.causes.push(FrameCause::LittleUnwindInformation);
            return;
        }
        let table = match Table::build(data, &mut RuleSet::new()) {
            Ok(table) => table,
            Err(error) => {
                let cause = match error {
                    UnwindError::NoUnwindInformation => FrameCause::NoUnwindInformation,
                    UnwindError::UnsupportedObject { .. } => FrameCause::OtherMachine,
                    UnwindError::NotElf(_) if is_32_bit(data) => FrameCause::OtherMachine,
                    _ => FrameCause::DamagedUnwindInformation,
                };
                self.causes.push(cause);
                self.unwound_by = vec!["frame_pointers"];
                return;
            }
        };
        let statistics = table.statistics();
        let sections = Sections::of(data);
        let sources = [
            (sections.eh_frame && statistics.fdes > 0, "eh_frame"),
            (statistics.go_functions > 0, "go_pclntab"),
            (sections.debug_frame && statistics.fdes > 0, "debug_frame"),
            (statistics.analysed_functions > 0, "code"),
        ];
        let present = sources.into_iter().filter(|(is_present, _)| *is_present);
        self.unwound_by = present.map(|(_, name)| name).collect();
        if statistics.malformed > 0 {
            self.causes.push(FrameCause::DamagedUnwindInformation);
        }
    }

    fn look_at_names(&mut self, object: &ObjectFile) {
        let contents = object.contents();
        let debug_file = match contents.dwarf {
            true => None,
            false => DebugFileSearch::default().find(object),
        };
        let beside = debug_file.as_ref().map(|file| file.contents());
        let has =
            |own: bool, of: fn(candela_symbols::Contents) -> bool| own || beside.is_some_and(of);
        let has_dwarf = has(contents.dwarf, |contents| contents.dwarf);
        let has_symtab = has(contents.symtab, |contents| contents.symtab);
        let sources = [
            (has_dwarf, "dwarf"),
            (has_symtab, "symtab"),
            (contents.mini_debug_info, "mini_debug_info"),
            (contents.go, "go_pclntab"),
        ];
        let present = sources.into_iter().filter(|(is_present, _)| *is_present);
        self.named_by = present.map(|(_, name)| name).collect();
        self.debug_file =
            debug_file.map_or_else(String::new, |file| file.path().display().to_string());
        if self.named_by.is_empty() {
            self.causes.push(FrameCause::Stripped);
        }
        if !has_symtab && exports_functions(object.data()) {
            self.named_by.push("dynsym");
        }
    }
}

/// Which sections of unwind information have contents.
struct Sections {
    eh_frame: bool,
    debug_frame: bool,
}

impl Sections {
    fn of(data: &[u8]) -> Self {
        let Ok(file) = object::File::parse(data) else {
            return Self {
                eh_frame: false,
                debug_frame: false,
            };
        };
        let has = |name| {
            file.section_by_name(name)
                .is_some_and(|section| section.size() > 0)
        };
        Self {
            // Without section headers it is found by its segment.
            eh_frame: has(".eh_frame") || file.sections().next().is_none(),
            debug_frame: has(".debug_frame"),
        }
    }
}

fn exports_functions(data: &[u8]) -> bool {
    let Ok(file) = object::File::parse(data) else {
        return false;
    };
    let mut symbols = file.dynamic_symbols();
    symbols.any(|symbol| symbol.is_definition() && symbol.kind() == object::SymbolKind::Text)
}

fn is_32_bit(data: &[u8]) -> bool {
    const CLASS: usize = 4;
    const CLASS_32: u8 = 1;
    data.get(CLASS) == Some(&CLASS_32)
}
