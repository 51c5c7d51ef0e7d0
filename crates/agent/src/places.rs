//! Which code an address is, in terms that outlive its process.

use std::sync::Arc;

use crate::observation::ProcessView;
use crate::processes::Code;
use crate::processes::Object;

/// What a place is in.
#[derive(Clone, Debug)]
pub(crate) enum Space {
    Kernel,
    /// Addresses are offsets in the file.
    Object(Arc<Object>),
    /// Addresses are those of the process: memory without file.
    Process {
        pid: u32,
    },
    /// Between the stack of a wait and that of who ended it; its one place is no code.
    Separator,
}

/// A place in the code of a process.
#[derive(Clone, Debug)]
pub(crate) struct CodePlace {
    pub(crate) space: Space,
    pub(crate) address: u64,
}

/// A place in code: a space of the window and an address in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) space: u32,
    pub(crate) address: u64,
}

/// The first space of each window.
pub(crate) const KERNEL_SPACE: u32 = 0;

// === impl Place ===

impl Place {
    pub(crate) fn of_kernel(address: u64) -> Self {
        Self {
            space: KERNEL_SPACE,
            address,
        }
    }
}

// === impl CodePlace ===

impl CodePlace {
    pub(crate) fn of(process: &ProcessView, address: u64) -> Self {
        let mapping = process.mappings.find(address);
        let object = mapping.and_then(|mapping| match &mapping.code {
            Code::Object(object) => Some((object, address - mapping.start + mapping.file_offset)),
            Code::Anonymous => None,
        });
        match object {
            // What is mapped from a file that is no ELF file was written by a just-in-time compiler.
            Some((object, offset))
                if !matches!(object.description(), Some(None)) || !object.is_readable() =>
            {
                Self {
                    space: Space::Object(Arc::clone(object)),
                    address: offset,
                }
            }
            _ => Self {
                space: Space::Process {
                    pid: process.identity.pid,
                },
                address,
            },
        }
    }
}
