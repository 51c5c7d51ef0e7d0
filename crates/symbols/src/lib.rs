//! Object files to names: ELF, DWARF with inlines, Go pclntab, perf maps, kallsyms, debuginfod.
