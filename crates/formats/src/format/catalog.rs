//! All formats. Another one is a module with an `ENTRY`, a variant of [`Format`](crate::Format) and
//! a line here.

use crate::dot;
use crate::folded;
use crate::format::entry::Entry;
use crate::html;
use crate::jfr;
use crate::json;
use crate::otlp;
use crate::pprof;
use crate::pyroscope;
use crate::speedscope;
use crate::svg;
use crate::top;

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
    &json::ENTRY,
    &otlp::EVENTS_ENTRY,
    &folded::ENTRY,
    &svg::ENTRY,
    &html::ENTRY,
    &dot::ENTRY,
    &top::TEXT_ENTRY,
    &top::CSV_ENTRY,
    &top::MARKDOWN_ENTRY,
];
