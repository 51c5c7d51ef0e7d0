//! System calls, made here because the C library's may allocate, set `errno`, or not be ready yet.

use core::arch::asm;

const READ: usize = 0;
const OPEN: usize = 2;
const CLOSE: usize = 3;
const GETPID: usize = 39;

/// A system call of up to three arguments; a negative number is an error.
///
/// # Safety
/// As the call asks for.
unsafe fn call(number: usize, first: usize, second: usize, third: usize) -> isize {
    let result: isize;
    // SAFETY: The kernel keeps all registers but those named; what the call does is the caller's to argue.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") first,
            in("rsi") second,
            in("rdx") third,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack)
        );
    }
    result
}

/// The process id.
pub(crate) fn process_id() -> u32 {
    // SAFETY: The call takes nothing and cannot fail.
    unsafe { call(GETPID, 0, 0, 0) as u32 }
}

/// Hands the bytes of a file to `take`, as long as it wants more.
pub(crate) fn read_file(path: &core::ffi::CStr, mut take: impl FnMut(u8)) {
    const CLOSE_ON_EXEC: usize = 0o2_000_000;
    // SAFETY: A string with its end, read only.
    let file = unsafe { call(OPEN, path.as_ptr() as usize, CLOSE_ON_EXEC, 0) };
    let Ok(file) = usize::try_from(file) else {
        return;
    };
    let mut buffer = [0_u8; 512];
    loop {
        // SAFETY: The buffer has that many bytes.
        let count = unsafe { call(READ, file, buffer.as_mut_ptr() as usize, buffer.len()) };
        let filled = usize::try_from(count).unwrap_or_default();
        if filled == 0 {
            break;
        }
        buffer.iter().take(filled).for_each(|&byte| take(byte));
    }
    // SAFETY: Nobody else has this descriptor.
    unsafe { call(CLOSE, file, 0, 0) };
}

/// Ends the process at once.
#[cfg(candela_preload)]
pub(crate) fn abort() -> ! {
    loop {
        // SAFETY: An instruction that the processor refuses.
        unsafe { asm!("ud2", options(noreturn)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_and_its_files_are_told() {
        assert_eq!(process_id(), std::process::id());
        let mut bytes = std::vec::Vec::new();
        read_file(c"/proc/self/stat", |byte| bytes.push(byte));
        let text = std::string::String::from_utf8(bytes).expect("text");
        assert!(
            text.starts_with(&std::format!("{} (", std::process::id())),
            "{text}"
        );
        read_file(c"/nowhere", |_| panic!("nothing to read"));
    }
}
