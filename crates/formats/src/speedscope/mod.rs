//! speedscope: the JSON of <https://www.speedscope.app/file-format-schema.json>.

mod events;
mod read;
mod write;

pub(crate) use crate::speedscope::read::looks_like_speedscope;
pub use crate::speedscope::read::read_speedscope;
pub use crate::speedscope::write::write_speedscope;

/// The format's name in messages.
const NAME: &str = "speedscope";

/// What every file refers to.
const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";
