//! Why a table could not be built.

/// Why [`crate::Table::build`] gave no table.
///
/// Damage inside unwind information is no error: the builder keeps what it could read and counts
/// the rest in [`crate::Statistics`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The bytes are not a readable ELF file.
    #[error("object is not a readable ELF file: {0}")]
    NotElf(#[from] object::read::Error),

    /// The ELF file is for another architecture or of another type.
    #[error(
        "object is no x86-64 executable or shared object (machine {machine}, type {kind}); only those have a table"
    )]
    UnsupportedObject {
        /// `e_machine` of the ELF header.
        machine: u16,
        /// `e_type` of the ELF header.
        kind: u16,
    },

    /// Neither `.eh_frame`, `.debug_frame` nor pclntab rows were found.
    #[error("object has no unwind information; frame pointers are all that is left")]
    NoUnwindInformation,

    /// The object asks for more than any honest binary does.
    #[error("object has too many {what}: {value}, limit {limit}; it is damaged or hostile")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How many the object asks for.
        value: u64,
        /// How many are accepted.
        limit: u64,
    },

    /// A caller of [`crate::TableBuilder`] went backwards.
    #[error("row at {address:#x} comes after one at {previous:#x}; push rows in ascending order")]
    OutOfOrder {
        /// Address of the refused row.
        address: u64,
        /// Address of the row before it.
        previous: u64,
    },
}
