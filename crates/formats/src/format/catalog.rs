//! All formats. Another one is a module with an `ENTRY`, a variant of [`Format`](crate::Format) and
//! a line here.

use crate::chrome_trace;
use crate::dhat;
use crate::dot;
use crate::firefox;
use crate::folded;
use crate::format::entry::Entry;
use crate::jfr;
use crate::otlp;
use crate::pprof;
use crate::pyroscope;
use crate::speedscope;
use crate::stackprof;
use crate::svg;
use crate::top;
use crate::v8;

/// In the order in which input is asked for its format, and in which they are listed: what has a
/// magic number comes before JSON, JSON before text, and folded stacks, which nearly any text can
/// be, last of what is read.
pub(crate) static CATALOG: &[&Entry] = &[
    &jfr::ENTRY,
    &pprof::ENTRY,
    &otlp::ENTRY,
    &otlp::JSON_ENTRY,
    &speedscope::ENTRY,
    &pyroscope::ENTRY,
    &firefox::ENTRY,
    &v8::CPU_ENTRY,
    &v8::HEAP_ENTRY,
    &chrome_trace::ENTRY,
    &stackprof::ENTRY,
    &dhat::ENTRY,
    &folded::ENTRY,
    &svg::ENTRY,
    &dot::ENTRY,
    &top::TEXT_ENTRY,
    &top::CSV_ENTRY,
    &top::MARKDOWN_ENTRY,
];
