//! All formats. Another one is a module with an `ENTRY`, a variant of [`Format`](crate::Format) and
//! a line here.

use crate::callgrind;
use crate::chrome_trace;
use crate::dhat;
use crate::dot;
use crate::firefox;
use crate::folded;
use crate::format::entry::Entry;
use crate::ghc;
use crate::html;
use crate::instruments;
use crate::jfr;
use crate::json;
use crate::legacy;
use crate::nettrace;
use crate::otlp;
use crate::perf_data;
use crate::perf_script;
use crate::perfetto;
use crate::pmcstat;
use crate::pprof;
use crate::pyroscope;
use crate::simpleperf;
use crate::speedscope;
use crate::stackprof;
use crate::svg;
use crate::top;
use crate::v8;

/// In the order in which input is asked for its format, and in which they are listed: what has a
/// magic number comes before JSON, JSON before text, and folded stacks, which nearly any text can
/// be, last of what is read. Texts whose first line is as good as a magic number come before pprof:
/// as short pieces of protobuf some of them make sense.
pub(crate) static CATALOG: &[&Entry] = &[
    &jfr::ENTRY,
    &legacy::TEXT_ENTRY,
    &legacy::JEMALLOC_ENTRY,
    &perf_data::ENTRY,
    &simpleperf::ENTRY,
    &nettrace::ENTRY,
    &perfetto::ENTRY,
    &pprof::ENTRY,
    &otlp::ENTRY,
    &legacy::CPU_ENTRY,
    &otlp::JSON_ENTRY,
    &speedscope::ENTRY,
    &pyroscope::ENTRY,
    &legacy::GOROUTINES_ENTRY,
    &firefox::ENTRY,
    &v8::CPU_ENTRY,
    &v8::HEAP_ENTRY,
    &callgrind::ENTRY,
    &perf_script::ENTRY,
    &pmcstat::ENTRY,
    &instruments::ENTRY,
    &ghc::ENTRY,
    &json::ENTRY,
    &chrome_trace::ENTRY,
    &stackprof::ENTRY,
    &dhat::ENTRY,
    &otlp::EVENTS_ENTRY,
    &folded::ENTRY,
    &svg::ENTRY,
    &html::ENTRY,
    &dot::ENTRY,
    &top::TEXT_ENTRY,
    &top::CSV_ENTRY,
    &top::MARKDOWN_ENTRY,
];
