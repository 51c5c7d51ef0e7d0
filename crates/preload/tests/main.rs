//! The library as the loader sees it.

use object::Architecture;
use object::Object as _;
use object::ObjectSymbol as _;

/// What every C library has, under these names, in every version.
const NEEDED: [&str; 2] = ["memmove", "memset"];

/// What may be missing.
const WEAK: [&str; 9] = [
    "dlsym",
    "__errno_location",
    "__libc_malloc",
    "__libc_calloc",
    "__libc_realloc",
    "__libc_free",
    "__libc_memalign",
    "__libc_valloc",
    "__libc_pvalloc",
];

/// What stands before the functions of the C library, and what tells of allocations.
const DEFINED: [&str; 11] = [
    "aligned_alloc",
    "calloc",
    "candela_alloc_freed",
    "candela_alloc_sampled",
    "free",
    "malloc",
    "memalign",
    "posix_memalign",
    "pvalloc",
    "realloc",
    "valloc",
];

#[test]
fn it_loads_beside_any_c_library_and_hides_nothing_of_others() {
    let file = object::File::parse(candela_preload::LIBRARY).expect("an object file");
    assert_eq!(file.architecture(), Architecture::X86_64);
    let mut defined = Vec::new();
    for symbol in file.dynamic_symbols() {
        let name = symbol.name().expect("text");
        if symbol.is_definition() {
            defined.push(name);
        } else if symbol.is_weak() {
            assert!(WEAK.contains(&name), "{name}");
        } else if !name.is_empty() {
            // Whatever else, such as what a panic needs, would keep programs from starting.
            assert!(NEEDED.contains(&name), "{name}");
        }
    }
    defined.sort_unstable();
    assert_eq!(defined, DEFINED);
    assert!(
        candela_preload::LIBRARY.len() < 64 * 1024,
        "it is in every binary"
    );
}
