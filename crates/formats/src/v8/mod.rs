//! What V8 writes of itself: CPU profiles and sampled heap profiles, the JSON of the Chrome DevTools
//! Protocol (`Profiler.Profile`, `HeapProfiler.SamplingHeapProfile`).
//!
//! Facts: <https://chromedevtools.github.io/devtools-protocol/tot/Profiler/>; the older form with
//! nested nodes is that of the protocol up to 1.1.

mod call_frame;
mod call_tree;
mod cpu;
mod heap;
mod node;
mod timeline;

use crate::format::Entry;
use crate::format::Format;
use crate::format::Part;
use crate::json_cursor::contains;
use crate::json_cursor::leading_keys;
pub(crate) use crate::v8::call_frame::CallFrame;
pub(crate) use crate::v8::call_tree::CallTree;
pub use crate::v8::cpu::read_cpuprofile;
pub use crate::v8::heap::read_heapprofile;
pub(crate) use crate::v8::node::ListedNode;
pub(crate) use crate::v8::node::Node;
pub(crate) use crate::v8::node::add_listed;
pub(crate) use crate::v8::timeline::Hit;
pub(crate) use crate::v8::timeline::Target;
pub(crate) use crate::v8::timeline::Timeline;

pub(crate) const CPU_ENTRY: Entry = Entry {
    format: Format::CpuProfile,
    name: CPU_NAME,
    extensions: &["cpuprofile"],
    description: "CPU profile of V8 (Chrome, Node, Deno)",
    keeps: &[
        Part::SampleTimes,
        Part::Window,
        Part::SourceFiles,
        Part::Lines,
        Part::Columns,
        Part::StartLines,
    ],
    detects: Some(looks_like_cpuprofile),
    read: Some(|input, options| read_cpuprofile(input, options)),
    write: None,
};

pub(crate) const HEAP_ENTRY: Entry = Entry {
    format: Format::HeapProfile,
    name: HEAP_NAME,
    extensions: &["heapprofile"],
    description: "sampled heap profile of V8 (Chrome, Node, Deno)",
    keeps: &[
        Part::SourceFiles,
        Part::Lines,
        Part::Columns,
        Part::StartLines,
    ],
    detects: Some(looks_like_heapprofile),
    read: Some(|input, options| read_heapprofile(input, options)),
    write: None,
};

const CPU_NAME: &str = "cpuprofile";
const HEAP_NAME: &str = "heapprofile";

/// Keys of nodes tell the two apart from each other and from whatever else has nodes.
fn looks_like_cpuprofile(prefix: &[u8]) -> bool {
    let keys = leading_keys(prefix);
    let has = |key: &str| keys.iter().any(|known| known == key);
    if has("nodes") {
        return contains(prefix, "\"callFrame\"") && !contains(prefix, "\"selfSize\"");
    }
    if has("head") {
        return contains(prefix, "\"functionName\"") && contains(prefix, "\"hitCount\"");
    }
    // Samples may fill the whole prefix before the nodes come.
    has("timeDeltas") && (has("startTime") || has("samples"))
}

fn looks_like_heapprofile(prefix: &[u8]) -> bool {
    let keys = leading_keys(prefix);
    keys.iter().any(|key| key == "head")
        && contains(prefix, "\"selfSize\"")
        && contains(prefix, "\"callFrame\"")
}
