//! Go functions, which have no `.eh_frame`: their rows come from the tables of the Go runtime.

mod functions;
mod locate;
mod pclntab;
mod scheduler;

pub(crate) use functions::GoFunctions;
