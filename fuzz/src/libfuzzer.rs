//! The function that libFuzzer calls with each input.

use std::sync::LazyLock;

use candela_fuzz::Target;

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("CANDELA_FUZZ_TARGET").expect("CANDELA_FUZZ_TARGET names a target");
    candela_fuzz::target(&name).expect("CANDELA_FUZZ_TARGET names a target")
});

#[unsafe(no_mangle)]
extern "C" fn LLVMFuzzerTestOneInput(data: *const u8, size: usize) -> i32 {
    let input = if size == 0 {
        &[]
    } else {
        // SAFETY: libFuzzer passes the start of `size` readable bytes that nobody changes before
        // this returns; of no bytes the pointer may be null, which is why that case is apart.
        unsafe { std::slice::from_raw_parts(data, size) }
    };
    (TARGET.run)(input);
    0
}
