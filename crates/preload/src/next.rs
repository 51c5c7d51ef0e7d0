//! The allocator behind us: that of the C library, or one that was linked or preloaded besides.

use core::arch::asm;
use core::arch::global_asm;
use core::ffi::CStr;
use core::ffi::c_char;
use core::ffi::c_int;
use core::ffi::c_void;
use core::mem::transmute;
use core::ptr;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering;

use crate::sampling;

pub(crate) type Malloc = unsafe extern "C" fn(usize) -> *mut u8;
pub(crate) type Calloc = unsafe extern "C" fn(usize, usize) -> *mut u8;
pub(crate) type Realloc = unsafe extern "C" fn(*mut u8, usize) -> *mut u8;
pub(crate) type Free = unsafe extern "C" fn(*mut u8);
pub(crate) type PosixMemalign = unsafe extern "C" fn(*mut *mut u8, usize, usize) -> c_int;
pub(crate) type Memalign = unsafe extern "C" fn(usize, usize) -> *mut u8;
type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
type ErrnoLocation = unsafe extern "C" fn() -> *mut c_int;

/// A function of the next allocator, null until it is looked up and where there is none.
pub(crate) struct Next {
    name: &'static CStr,
    function: AtomicPtr<c_void>,
}

pub(crate) static MALLOC: Next = Next::new(c"malloc");
pub(crate) static CALLOC: Next = Next::new(c"calloc");
pub(crate) static REALLOC: Next = Next::new(c"realloc");
pub(crate) static FREE: Next = Next::new(c"free");
pub(crate) static POSIX_MEMALIGN: Next = Next::new(c"posix_memalign");
pub(crate) static ALIGNED_ALLOC: Next = Next::new(c"aligned_alloc");
pub(crate) static MEMALIGN: Next = Next::new(c"memalign");
pub(crate) static VALLOC: Next = Next::new(c"valloc");
pub(crate) static PVALLOC: Next = Next::new(c"pvalloc");

static ALL: [&Next; 9] = [
    &MALLOC,
    &CALLOC,
    &REALLOC,
    &FREE,
    &POSIX_MEMALIGN,
    &ALIGNED_ALLOC,
    &MEMALIGN,
    &VALLOC,
    &PVALLOC,
];

static IS_BEGUN: AtomicBool = AtomicBool::new(false);

// What is not there is null: the GNU C library before 2.34 has `dlsym` in a library of its own, and others do not
// have the names that it gives its allocator besides.
global_asm!(
    ".weak dlsym",
    ".weak __errno_location",
    ".weak __libc_malloc",
    ".weak __libc_calloc",
    ".weak __libc_realloc",
    ".weak __libc_free",
    ".weak __libc_memalign",
    ".weak __libc_valloc",
    ".weak __libc_pvalloc",
);

/// The address of a symbol, null where nobody has it.
macro_rules! weak {
    ($name:literal) => {{
        let address: *mut c_void;
        // SAFETY: Reads an entry of our own global offset table.
        unsafe {
            asm!(
                concat!("mov {address}, qword ptr [rip + ", $name, "@GOTPCREL]"),
                address = out(reg) address,
                options(pure, readonly, nostack, preserves_flags)
            );
        }
        address
    }};
}

/// Looks the next allocator up and reads the settings. The first allocation of a process comes before any
/// constructor runs, and while there is one thread. Whoever allocates meanwhile gets nothing from [`Next`].
#[cold]
#[inline(never)]
fn begin() {
    if IS_BEGUN.swap(true, Ordering::AcqRel) {
        return;
    }
    sampling::configure();
    let dlsym = weak!("dlsym");
    if dlsym.is_null() {
        use_c_library();
        return;
    }
    // SAFETY: The function of that name, POSIX.
    let dlsym: Dlsym = unsafe { transmute(dlsym) };
    let rtld_next = ptr::without_provenance_mut(usize::MAX);
    for next in ALL {
        // SAFETY: A string with its end. The caller is this library, behind which the search begins.
        let function = unsafe { dlsym(rtld_next, next.name.as_ptr()) };
        next.function.store(function, Ordering::Release);
    }
}

/// Where nobody can be asked: the allocator of the GNU C library itself. `posix_memalign` has no other name there,
/// see [`MEMALIGN`].
#[cold]
fn use_c_library() {
    let functions = [
        (&MALLOC, weak!("__libc_malloc")),
        (&CALLOC, weak!("__libc_calloc")),
        (&REALLOC, weak!("__libc_realloc")),
        (&FREE, weak!("__libc_free")),
        (&MEMALIGN, weak!("__libc_memalign")),
        // The same function with another promise.
        (&ALIGNED_ALLOC, weak!("__libc_memalign")),
        (&VALLOC, weak!("__libc_valloc")),
        (&PVALLOC, weak!("__libc_pvalloc")),
    ];
    for (next, function) in functions {
        next.function.store(function, Ordering::Release);
    }
}

/// Sets the calling thread's `errno`, where it has one.
pub(crate) fn set_errno(number: c_int) {
    let location = weak!("__errno_location");
    if location.is_null() {
        return;
    }
    // SAFETY: The function of that name: the C libraries of Linux agree on it.
    let location: ErrnoLocation = unsafe { transmute(location) };
    // SAFETY: It gives the address of the calling thread's variable.
    unsafe { *location() = number };
}

// === impl Next ===

impl Next {
    const fn new(name: &'static CStr) -> Self {
        Self {
            name,
            function: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// `None` while it is looked up, and where there is none.
    ///
    /// # Safety
    /// `Function` is the type of the C function with this name.
    #[inline(always)]
    pub(crate) unsafe fn get<Function: Copy>(&self) -> Option<Function> {
        let mut function = self.function.load(Ordering::Relaxed);
        if function.is_null() {
            begin();
            function = self.function.load(Ordering::Acquire);
            if function.is_null() {
                return None;
            }
        }
        const { assert!(size_of::<Function>() == size_of::<*mut c_void>()) };
        // SAFETY: Not null, and of the caller's type.
        Some(unsafe { core::mem::transmute_copy(&function) })
    }
}
