//! Our own profile JSON: all of a profile, for scripts and for keeping. Written and read again it is the
//! same profile.
//!
//! ```json
//! {"schema":"candela/profile/v1",
//! "mappings":[{}, {"file":"/usr/bin/demo","build_id":"c0ffee","start":"0x1000","limit":"0x9000","offset":"0x0"}],
//! "functions":[{"name":"main","system_name":"_main","file":"main.c","start_line":3}],
//! "locations":[{"mapping":1,"address":"0x1234","kind":"native","lines":[{"function":0,"line":5,"column":7}]}],
//! "stacks":[[], [0]],
//! "label_sets":[[], [{"key":"thread","text":"worker"},{"key":"size","number":64,"unit":"bytes"}]],
//! "links":[{}, {"trace_id":"0af7651916cd43dd8448eb211c80319c","span_id":"b7ad6b7169203331"}],
//! "series":[
//! {"labels":{"service_name":"demo"},"type":"process_cpu:cpu:nanoseconds:cpu:nanoseconds",
//!  "start_ns":1700000000000000000,"duration_ns":10000000000,"period":10000000,
//!  "samples":{"stack":[1],"value":[20000000],"label_set":[1],"link":[1],"time_ns":[1700000000500000000]}}
//! ]}
//! ```
//!
//! Everything refers to entries of tables by their position. Entry 0 of `mappings`, `stacks`, `label_sets`
//! and `links` is the one of nothing. A stack has its leaf first; of the lines of a location the innermost
//! function, inlined into the next, is first. `samples` has a column each: `stack` and `value`, and where a
//! sample has more, `label_set`, `link` and `time_ns`. What is empty or 0 may be missing anywhere.
//!
//! Values are whole numbers of 64 bits in the unit that the type names, times nanoseconds since the Unix
//! epoch; addresses, which use all 64 bits, are text.

mod read;
mod rows;
mod write;

use crate::format::Entry;
use crate::format::Format;
use crate::format::Part;
use crate::format::Writer;
pub use crate::json::read::read_json;
pub use crate::json::write::write_json;
use crate::report::Report;

pub(crate) const ENTRY: Entry = Entry {
    format: Format::Json,
    name: NAME,
    extensions: &["json"],
    description: "Candela's own JSON: all of a profile",
    keeps: &Part::ALL,
    detects: Some(read::looks_like_json),
    read: Some(|input, options| read_json(input, options)),
    write: Some(Writer::Profile(|profile, output, _| {
        write_json(profile, output)?;
        Ok(Report::default())
    })),
};

/// The format's name in messages.
const NAME: &str = "json";

const SCHEMA: &str = "candela/profile/v1";
