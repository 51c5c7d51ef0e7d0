//! Unwind tables: built on a thread of their own, shared by build id, in the kernel within a budget.

mod loader;
mod requests;
mod slots;
mod space;
mod worth;

pub(crate) use self::loader::Loader;
pub(crate) use self::loader::LoaderReply;
pub(crate) use self::slots::TableSlots;
pub(crate) use self::space::ProcessSpace;
pub(crate) use self::worth::is_worth_a_table;
