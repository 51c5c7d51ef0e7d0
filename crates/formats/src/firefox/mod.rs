//! Profiles of Firefox: raw ones as Gecko writes them, and processed ones as the Firefox Profiler
//! saves and shows them, of all versions.
//!
//! Facts: `docs-developer` of <https://github.com/firefox-devtools/profiler>, above all
//! `CHANGELOG-formats.md`, and the types and version upgraders in its `src`.

mod allocations;
mod cleopatra;
mod columns;
mod frames;
mod funcs;
mod libs;
mod place;
mod process;
mod read;
mod table;
mod write;
mod write_tables;

pub use crate::firefox::read::read_firefox;
pub use crate::firefox::write::write_firefox;
use crate::format::Entry;
use crate::format::Format;
use crate::format::Part;
use crate::format::Writer;
use crate::json_cursor::leading_keys;

pub(crate) const ENTRY: Entry = Entry {
    format: Format::Firefox,
    name: NAME,
    extensions: &["firefox.json"],
    description: "profile of Firefox, raw or as its profiler saves it",
    keeps: &[
        Part::AllTypes,
        Part::SampleTimes,
        Part::Window,
        Part::Period,
        Part::Addresses,
        Part::Mappings,
        Part::BuildIds,
        Part::SourceFiles,
        Part::Lines,
        Part::Columns,
        Part::StartLines,
        Part::FrameKinds,
        Part::NegativeValues,
    ],
    detects: Some(looks_like_firefox),
    read: Some(|input, options| read_firefox(input, options)),
    write: Some(Writer::Profile(|profile, output, _| {
        write_firefox(profile, output)
    })),
};

const NAME: &str = "firefox";

/// Keys may stand in any order, and the first of them may fill the whole prefix.
fn looks_like_firefox(prefix: &[u8]) -> bool {
    let text = String::from_utf8_lossy(prefix);
    let keys = leading_keys(prefix);
    let has = |key: &str| keys.iter().any(|known| known == key);
    // The panel for developers wrapped raw profiles, behind what it showed itself.
    let is_wrapped = has("label") && has("duration") && has("markers");
    is_wrapped
        || has("format") && text.contains(cleopatra::FORMAT)
        || has("meta") && text.contains("\"startTime\"") && text.contains("\"interval\"")
        || (has("libs") || has("profile")) && text.contains("\"breakpadId\"")
        || has("threads") && (text.contains("\"stackTable\"") || text.contains("\"frameTable\""))
        || has("shared") && text.contains("\"stringArray\"")
}
