//! Mangled names to names for readers: Rust (legacy and v0) and Itanium C++.

use crate::frame::FrameLanguage;
use std::borrow::Cow;

/// Longest name that is demangled, in bytes. Demangling may grow a name by orders of magnitude, and
/// hostile names are made for that; real ones beyond this length are template noise that nobody
/// reads.
const LONGEST_NAME: usize = 16 * 1024;

/// A name for readers and the language its mangling gives away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demangled<'a> {
    /// The demangled name, or the raw one when it is not mangled.
    pub name: Cow<'a, str>,
    /// [`FrameLanguage::Rust`] for Rust manglings, else [`FrameLanguage::Native`].
    pub language: FrameLanguage,
}

/// Demangles `raw`: Rust without its hash suffix, C++ with template and function arguments as
/// `c++filt` prints them.
///
/// ```
/// use candela_symbols::demangle::demangle;
/// assert_eq!(demangle("_ZN4core3fmt5write17h0123456789abcdefE").name, "core::fmt::write");
/// assert_eq!(demangle("_ZN2ns3addEii").name, "ns::add(int, int)");
/// assert_eq!(demangle("main").name, "main");
/// ```
pub fn demangle(raw: &str) -> Demangled<'_> {
    let unmangled = Demangled {
        name: Cow::Borrowed(raw),
        language: FrameLanguage::Native,
    };
    if raw.len() > LONGEST_NAME {
        return unmangled;
    }
    let (symbol, suffix) = split_suffix(raw);
    if let Some(name) = demangle_rust(symbol) {
        return Demangled {
            name: Cow::Owned(name),
            language: FrameLanguage::Rust,
        };
    }
    let Some(name) = demangle_cpp(symbol) else {
        return unmangled;
    };
    let name = if suffix.is_empty() {
        name
    } else {
        format!("{name} [clone {suffix}]")
    };
    Demangled {
        name: Cow::Owned(name),
        language: FrameLanguage::Native,
    }
}

/// Cuts what linkers and compilers append to a mangled name: `@@VERSION`, `@plt`, `.cold`,
/// `.part.0`, `.llvm.123`. The version says nothing to a reader; a clone suffix does and is
/// returned.
fn split_suffix(raw: &str) -> (&str, &str) {
    let mangled = raw.starts_with("_Z") || raw.starts_with("_R");
    if !mangled {
        return (raw, "");
    }
    let unversioned = raw.split('@').next().unwrap_or(raw);
    let clone_at = unversioned
        .char_indices()
        .find_map(|(at, character)| (character == '.').then_some(at));
    // Legacy Rust names have dots inside (`..` for `::` in impl paths), always before the closing
    // `E`.
    let clone_at = match clone_at {
        Some(_) if raw.starts_with("_ZN") => unversioned
            .rfind('E')
            .map(|end| end + 1)
            .filter(|end| unversioned.as_bytes().get(*end) == Some(&b'.')),
        other => other,
    };
    match clone_at {
        Some(at) => (&unversioned[..at], &unversioned[at..]),
        None => (unversioned, ""),
    }
}

fn demangle_rust(symbol: &str) -> Option<String> {
    let demangled = rustc_demangle::try_demangle(symbol).ok()?;
    // A C++ name such as `_ZN3foo3barE` satisfies the legacy Rust grammar too; only the hash tells
    // them apart.
    let is_legacy = symbol.starts_with("_ZN");
    if is_legacy && !has_legacy_hash(symbol) {
        return None;
    }
    Some(format!("{demangled:#}"))
}

/// Legacy Rust mangling ends in `17h`, sixteen hexadecimal digits, `E`.
fn has_legacy_hash(symbol: &str) -> bool {
    let Some(body) = symbol.strip_suffix('E') else {
        return false;
    };
    let Some((_, hash)) = body.as_bytes().split_last_chunk::<19>() else {
        return false;
    };
    hash.starts_with(b"17h") && hash[3..].iter().all(u8::is_ascii_hexdigit)
}

fn demangle_cpp(symbol: &str) -> Option<String> {
    if !symbol.starts_with("_Z") && !symbol.starts_with("__Z") {
        return None;
    }
    // The recursion limit bounds what a hostile name can cost.
    let parse = cpp_demangle::ParseOptions::default().recursion_limit(128);
    let print = cpp_demangle::DemangleOptions::default().recursion_limit(128);
    cpp_demangle::Symbol::new_with_options(symbol, &parse)
        .ok()?
        .demangle_with_options(&print)
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(raw: &str) -> String {
        demangle(raw).name.into_owned()
    }

    #[test]
    fn rust_names_lose_their_hash() {
        assert_eq!(
            name("_ZN5alloc3vec12Vec$LT$T$GT$4push17h0011223344556677E"),
            "alloc::vec::Vec<T>::push"
        );
        assert_eq!(demangle("_RNvC6_123foo3bar").language, FrameLanguage::Rust);
        assert_eq!(name("_RNvC6_123foo3bar"), "123foo::bar");
        assert_eq!(
            name(
                "_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE.llvm.123"
            ),
            "<Test + 'static as foo::Bar<Test>>::bar"
        );
    }

    #[test]
    fn cpp_names_keep_their_arguments() {
        assert_eq!(name("_ZN3foo3barE"), "foo::bar");
        assert_eq!(demangle("_ZN3foo3barE").language, FrameLanguage::Native);
        assert_eq!(
            name("_ZNSt6vectorIiSaIiEE9push_backERKi"),
            "std::vector<int, std::allocator<int> >::push_back(int const&)"
        );
        assert_eq!(
            name("_ZN2ns3addEii.cold"),
            "ns::add(int, int) [clone .cold]"
        );
        assert_eq!(name("_ZN2ns3addEii@@LIB_1"), "ns::add(int, int)");
    }

    #[test]
    fn plain_names_stay() {
        for raw in [
            "main",
            "memcpy@@GLIBC_2.14",
            "runtime.mallocgc",
            "",
            "_Z",
            "_R",
            "_ZN",
        ] {
            assert_eq!(name(raw), raw);
        }
    }

    proptest! {
        #[test]
        fn hostile_names_never_panic(raw in "(_Z|_R|_ZN|)[a-zA-Z0-9_$.@]{0,80}") {
            demangle(&raw);
        }
    }
}
