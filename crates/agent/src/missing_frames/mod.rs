//! Why frames of a process or of a stored profile are missing or have no names, and what mends it: `candela doctor -p PID`
//! and `--frames FILE`.

mod code;
mod debug_packages;
mod explanation;
mod process;
mod runtimes;
mod sampled;
mod stored;

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
pub use self::stored::StoredCode;
pub use self::stored::StoredEnds;
pub use self::stored::StoredFrameReport;
pub use self::stored::check_stored_frames;
