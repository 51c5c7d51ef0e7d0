//! Whether the tracepoints that programs attach to are there.

use crate::options::Options;
use crate::refusal::FIRST_KERNEL;
use crate::{Error, host, loader};
use libbpf_rs::OpenObject;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Typedef;

/// How the sections of such programs begin, before the tracepoint's name.
const SECTION: &str = "tp_btf/";

/// The type that the kernel has for each of its tracepoints begins so.
const TYPE: &str = "btf_trace_";

/// Asks for the tracepoints of what `options` ask for. Nothing is loaded, which makes it much quicker than a start;
/// where the kernel's types cannot be read nothing is missing, and the start tells why.
///
/// # Errors
/// [`Error::NoTracepoint`].
pub fn check_tracepoints(options: &Options) -> Result<(), Error> {
    match loader::opened(options) {
        Ok(open) => check(&open),
        Err(_) => Ok(()),
    }
}

/// The same of an object whose programs are chosen.
pub(crate) fn check(open: &OpenObject) -> Result<(), Error> {
    // What else an old kernel lacks is of more weight, and the load tells it.
    if host::kernel_version().is_some_and(|version| version < FIRST_KERNEL) {
        return Ok(());
    }
    let Ok(types) = Btf::from_vmlinux() else {
        return Ok(());
    };
    let is_missing = |name: &String| {
        let type_name = format!("{TYPE}{name}");
        types.type_by_name::<Typedef<'_>>(&type_name).is_none()
    };
    let loaded = open.progs().filter(|program| program.autoload());
    let sections = loaded.map(|program| program.section().to_string_lossy().into_owned());
    let mut names = sections.filter_map(|section| Some(section.strip_prefix(SECTION)?.to_owned()));
    match names.find(is_missing) {
        Some(name) => Err(Error::NoTracepoint { name }),
        None => Ok(()),
    }
}
