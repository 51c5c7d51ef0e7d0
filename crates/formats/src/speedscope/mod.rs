//! speedscope: the JSON of <https://www.speedscope.app/file-format-schema.json>.

mod read;
mod write;

use crate::format::Entry;
use crate::format::Format;
use crate::format::Part;
use crate::format::Writer;
pub use crate::speedscope::read::read_speedscope;
pub use crate::speedscope::write::write_speedscope;

pub(crate) const ENTRY: Entry = Entry {
    format: Format::Speedscope,
    name: NAME,
    extensions: &["speedscope.json"],
    description: "speedscope JSON, one sample type",
    keeps: &[Part::SourceFiles],
    detects: Some(read::looks_like_speedscope),
    read: Some(|input, options| read_speedscope(input, options)),
    write: Some(Writer::Tree(|tree, profile_type, output, _| {
        write_speedscope(tree, profile_type, output)
    })),
};

/// The format's name in messages.
const NAME: &str = "speedscope";

/// What every file refers to.
const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";
