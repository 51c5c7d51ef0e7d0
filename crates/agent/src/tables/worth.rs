//! Which objects get an unwind table at all.
//!
//! Some very large programs (browsers) are built without unwind information for their own code and
//! keep frame pointers or nothing. Without information, rules can be read from the code itself, which
//! is right for the gaps in a C library and takes minutes and hundreds of megabytes for a browser.

use object::Object;
use object::ObjectSection;
use object::SectionKind;

/// Code of this size is always worth it, bytes.
const ALWAYS_WORTH: u64 = 32 << 20;

/// How many bytes of code one byte of unwind information describes at most. Compilers need one for
/// every eight to fifteen.
const CODE_PER_BYTE: u64 = 64;

/// Whether the object's unwind information is in proportion to its code.
pub(crate) fn is_worth_a_table(object_bytes: &[u8]) -> bool {
    let Ok(file) = object::File::parse(object_bytes) else {
        // The builder says what is wrong with it.
        return true;
    };
    let mut code_bytes: u64 = 0;
    let mut information_bytes: u64 = 0;
    for section in file.sections() {
        if section.kind() == SectionKind::Text {
            code_bytes = code_bytes.saturating_add(section.size());
        }
        let is_information = matches!(
            section.name(),
            Ok(".eh_frame" | ".debug_frame" | ".gopclntab" | ".data.rel.ro.gopclntab")
        );
        if is_information {
            information_bytes = information_bytes.saturating_add(section.size());
        }
    }
    is_in_proportion(code_bytes, information_bytes)
}

fn is_in_proportion(code_bytes: u64, information_bytes: u64) -> bool {
    code_bytes <= ALWAYS_WORTH || code_bytes / CODE_PER_BYTE <= information_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_objects_are() {
        let ourselves = std::fs::read("/proc/self/exe").expect("our own executable");
        assert!(is_worth_a_table(&ourselves));
        assert!(is_worth_a_table(b"no ELF file"));
    }

    /// Sizes read from real binaries: Debian's Chromium 156, Node 20, librustc_driver 1.95, and
    /// musl's libc, which has none at all.
    #[test]
    fn sizes_of_the_field() {
        assert!(!is_in_proportion(236_000_000, 420_000));
        assert!(is_in_proportion(27_800_000, 2_773_000));
        assert!(is_in_proportion(35_000_000, 6_262_000));
        assert!(is_in_proportion(600_000, 0));
    }
}
