//! Compact unwind tables and the user-space stack walk, for x86-64 Linux.
//!
//! [`Table::build`] turns the bytes of an ELF object (`.eh_frame`, `.debug_frame`, Go's pclntab) into
//! an array of 32-bit words that the BPF agent uploads as it is: four bytes per row, each row an
//! address and the index of a [`Rule`] in one [`RuleSet`] that all tables share. [`walk()`] follows
//! such tables over a copy of a stack; it is the testable twin of the BPF walk and means the same,
//! rule by rule.
//!
//! The crate opens no file (callers pass bytes) and never sees BPF or profiles.
//!
//! # Example
//!
//! ```
//! use candela_unwind::{Error, Rule, RuleSet, Table};
//!
//! let mut rules = RuleSet::new();
//! let executable = std::fs::read("/proc/self/exe").expect("our own executable is readable");
//! let table = Table::build(&executable, &mut rules)?;
//! println!("{} rows, {} bytes", table.statistics().rows, table.statistics().bytes);
//! assert_ne!(table.lookup(table.rows().next().expect("a row").0, &rules), Rule::NO_RULE);
//! # Ok::<(), Error>(())
//! ```
#![forbid(unsafe_code)]

mod analysis;
mod cfi;
mod compile;
mod elf;
mod error;
mod expression;
mod gaps;
mod go;
mod landmarks;
mod registers;
mod rule;
mod rule_set;
mod table;
mod table_builder;
mod unit;
mod walk;

pub use error::Error;
pub use registers::{Registers, dwarf};
pub use rule::{CfaKind, FpKind, Rule};
pub use rule_set::RuleSet;
pub use table::{Statistics, Table};
pub use table_builder::TableBuilder;
pub use walk::{AddressSpace, Region, StackCopy, WalkResult, walk};
