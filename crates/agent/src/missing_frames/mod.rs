//! Why frames of a process are missing or have no names, and what mends it: `candela doctor -p PID`.

mod code;
mod debug_packages;
mod explanation;
mod process;
mod runtimes;
mod sampled;

pub use self::code::CodeReport;
pub use self::explanation::Explanation;
pub use self::explanation::FrameCause;
pub use self::explanation::explain_drop;
pub use self::explanation::explain_result;
pub use self::process::FrameCheckOptions;
pub use self::process::FrameReport;
pub use self::process::Problem;
pub use self::process::check_frames;
pub use self::sampled::SampledCode;
pub use self::sampled::SampledFrames;
