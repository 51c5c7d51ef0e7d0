//! Processes, their mappings and the files behind them.

mod environment;
mod forks;
mod listing;
mod mappings;
mod maps_file;
mod memory;
mod object;
mod objects;
mod process;
mod table;
mod tasks;
mod thread_context;

pub(crate) use self::environment::ProcessEnvironment;
pub(crate) use self::listing::all_processes;
pub(crate) use self::listing::members_of;
pub(crate) use self::mappings::Code;
pub(crate) use self::mappings::Mappings;
#[cfg(test)]
pub(crate) use self::mappings::ProcessMapping;
pub(crate) use self::maps_file::MapsLine;
pub(crate) use self::maps_file::parse_maps;
pub(crate) use self::maps_file::read_maps;
pub(crate) use self::memory::ProcessMemory;
pub(crate) use self::memory::read_file_in_memory;
pub(crate) use self::object::FileNumber;
pub(crate) use self::object::Object;
pub(crate) use self::object::ObjectSource;
pub(crate) use self::object::open_mapped;
pub(crate) use self::process::Process;
pub(crate) use self::process::ProcessIdentity;
pub(crate) use self::table::ProcessTable;
pub(crate) use self::table::find_context;
pub(crate) use self::tasks::TaskState;
pub(crate) use self::tasks::check_is_process;
pub(crate) use self::tasks::may_look_into;
pub(crate) use self::tasks::tasks_of;
pub(crate) use self::thread_context::ThreadContext;
pub(crate) use self::thread_context::find_thread_context;
