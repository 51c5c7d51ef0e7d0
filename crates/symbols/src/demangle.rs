//! Mangled names to names for readers: Rust (legacy and v0) and Itanium C++.

use crate::frame::FrameLanguage;
use std::borrow::Cow;
use std::fmt;
use std::fmt::Write;

/// Longest name that is demangled, in bytes. Real ones beyond this length are template noise that
/// nobody reads.
const LONGEST_NAME: usize = 16 * 1024;

/// Longest name that demangling may give, in bytes. A mangled name refers to parts of itself, and
/// those to parts of themselves: one of eight hundred bytes can say four gigabytes.
const LONGEST_DEMANGLED: usize = 64 * 1024;

/// A name for readers and the language its mangling gives away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demangled<'a> {
    /// The demangled name, or the raw one when it is not mangled.
    pub name: Cow<'a, str>,
    /// [`FrameLanguage::Rust`] for Rust manglings, else [`FrameLanguage::Native`].
    pub language: FrameLanguage,
}

/// A text that refuses to grow beyond [`LONGEST_DEMANGLED`].
#[derive(Default)]
struct Limited(String);

impl Write for Limited {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST_DEMANGLED {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// Demangles `raw`: Rust without its hash suffix, C++ with template and function arguments as
/// `c++filt` prints them. A name that would become unreasonably long stays as it is.
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
    let mut name = Limited::default();
    write!(name, "{demangled:#}").ok()?;
    Some(name.0)
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
    // The recursion limit bounds the stack that a hostile name can cost, the limited name the time.
    let parse = cpp_demangle::ParseOptions::default().recursion_limit(128);
    let print = cpp_demangle::DemangleOptions::default().recursion_limit(128);
    let parsed = cpp_demangle::Symbol::new_with_options(symbol, &parse).ok()?;
    let mut name = Limited::default();
    parsed.structured_demangle(&mut name, &print).ok()?;
    Some(name.0)
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

    #[test]
    fn names_that_multiply_stay_mangled() {
        // `S_` is the template, and each instance has the one before it for both arguments.
        let instance = |step: u32| {
            let digit = char::from_digit(step, 36).expect("below 36");
            format!("S{}_", digit.to_ascii_uppercase())
        };
        let small = "_Z1f1aIiiE";
        let mut bomb = small.to_owned();
        for step in 0..24 {
            let last = instance(step);
            bomb += &format!("S_I{last}{last}E");
        }
        assert_eq!(name(small), "f(a<int, int>)");
        assert_eq!(name(&bomb), bomb);
    }

    proptest! {
        #[test]
        fn hostile_names_never_panic(raw in "(_Z|_R|_ZN|)[a-zA-Z0-9_$.@]{0,80}") {
            demangle(&raw);
        }
    }
}
