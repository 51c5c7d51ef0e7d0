//! Zeros in place of pages that a mapped file no longer has.
//!
//! Reading behind the end of a file that was cut short raises SIGBUS, which ends a process that
//! does not handle it. The alternative, reading files into memory of our own, would cost as much
//! memory as the files are long: debug files have hundreds of megabytes, of which little is read.

use std::ffi::c_int;
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Slots that are added at a time; a cache maps some hundreds of files.
const SLOTS_PER_BLOCK: usize = 512;

/// While it lives, a page of its mapping that the file has lost is replaced by zeros.
#[derive(Debug)]
pub(super) struct Guard {
    slot: &'static Slot,
}

/// A guarded range of addresses; free while `start` is 0. The handler reads it at any moment, so
/// whoever takes a slot writes `start` last.
#[derive(Debug)]
struct Slot {
    start: AtomicUsize,
    end: AtomicUsize,
    has_lost_pages: AtomicBool,
}

/// Blocks are never freed: the handler can take no lock, so it could not know when one goes.
struct Block {
    slots: [Slot; SLOTS_PER_BLOCK],
    next: AtomicPtr<Block>,
}

static SLOTS: Block = Block::new();

/// Held by whoever takes a slot or adds a block. Giving a slot back needs no lock.
static TAKING: Mutex<()> = Mutex::new(());

/// What handled SIGBUS before. Set before the handler that reads it is installed.
static FORMER: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

impl Guard {
    /// Guards the pages of `mapping`, which must outlive the guard.
    pub(super) fn of(mapping: &[u8]) -> io::Result<Self> {
        install_handler()?;
        let start = mapping.as_ptr().addr();
        let _taking = TAKING.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = free_slot();
        slot.has_lost_pages.store(false, Ordering::Release);
        slot.end.store(start + mapping.len(), Ordering::Release);
        slot.start.store(start, Ordering::Release);
        Ok(Self { slot })
    }

    /// Whether zeros were put anywhere.
    pub(super) fn has_lost_pages(&self) -> bool {
        self.slot.has_lost_pages.load(Ordering::Acquire)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.slot.start.store(0, Ordering::Release);
    }
}

impl Slot {
    const fn new() -> Self {
        Self {
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            has_lost_pages: AtomicBool::new(false),
        }
    }

    fn contains(&self, address: usize) -> bool {
        let start = self.start.load(Ordering::Acquire);
        let end = self.end.load(Ordering::Acquire);
        // Between the two loads the slot may have been taken by another mapping. That of the
        // faulting thread cannot: it is being read.
        let is_stable = self.start.load(Ordering::Acquire) == start;
        start != 0 && is_stable && start <= address && address < end
    }
}

impl Block {
    const fn new() -> Self {
        Self {
            slots: [const { Slot::new() }; SLOTS_PER_BLOCK],
            next: AtomicPtr::new(ptr::null_mut()),
        }
    }

    fn next(&self) -> Option<&'static Block> {
        let next = self.next.load(Ordering::Acquire);
        // SAFETY: it is null, or was leaked by `free_slot` after it was made.
        unsafe { next.as_ref() }
    }
}

fn blocks() -> impl Iterator<Item = &'static Block> {
    std::iter::successors(Some(&SLOTS), |block| block.next())
}

/// A slot that nobody has, from a new block if need be. The caller holds [`TAKING`].
fn free_slot() -> &'static Slot {
    let mut last = &SLOTS;
    for block in blocks() {
        let mut slots = block.slots.iter();
        if let Some(free) = slots.find(|slot| slot.start.load(Ordering::Acquire) == 0) {
            return free;
        }
        last = block;
    }
    let added: &'static Block = Box::leak(Box::new(Block::new()));
    last.next
        .store(ptr::from_ref(added).cast_mut(), Ordering::Release);
    &added.slots[0]
}

/// Installs the handler once in the life of the process.
fn install_handler() -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
    let installed = INSTALLED.get_or_init(|| {
        let failure = || io::Error::last_os_error().raw_os_error().unwrap_or(0);
        // SAFETY: all zeros is a sigaction without handler, flags and mask.
        let mut former: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: with a null action the call only writes to `former`.
        let asked = unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), &raw mut former) };
        if asked != 0 {
            return Err(failure());
        }
        FORMER.store(Box::leak(Box::new(former)), Ordering::Release);
        // SAFETY: as above.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_bus_error;
        action.sa_sigaction = handler as libc::sighandler_t;
        // A thread whose stack is full has another for its handlers.
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        // SAFETY: the handler has the signature that SA_SIGINFO asks for, and does only what a
        // handler may: atomic loads and system calls.
        let set = unsafe { libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) };
        if set == 0 { Ok(()) } else { Err(failure()) }
    });
    installed.map_err(io::Error::from_raw_os_error)
}

extern "C" fn on_bus_error(signal: c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo_t.
    let code = unsafe { (*info).si_code };
    if code == libc::BUS_ADRERR {
        // SAFETY: with this code the signal is a fault, which has an address.
        let address = unsafe { (*info).si_addr() }.addr();
        let mut slots = blocks().flat_map(|block| &block.slots);
        let guarding = slots.find(|slot| slot.contains(address));
        if let Some(slot) = guarding
            && put_zeros_at(address)
        {
            slot.has_lost_pages.store(true, Ordering::Release);
            return;
        }
    }
    call_former(signal, info, context);
}

/// Replaces the page of `address` by zeros and leaves `errno` as the interrupted code had it.
fn put_zeros_at(address: usize) -> bool {
    // SAFETY: the location is the thread's own and always there.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let saved = unsafe { *errno };
    // SAFETY: sysconf may be called in a handler.
    let page_size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let page_size = usize::try_from(page_size).unwrap_or(4096);
    let page = address & !(page_size - 1);
    // SAFETY: the page belongs to a guarded mapping, which lives as long as its reader, the thread
    // that was interrupted here. Nobody writes there, and what readers saw of it may change.
    let mapped = unsafe {
        libc::mmap(
            ptr::without_provenance_mut(page),
            page_size,
            libc::PROT_READ,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
            -1,
            0,
        )
    };
    // SAFETY: as above.
    unsafe { *errno = saved };
    mapped != libc::MAP_FAILED
}

/// Does with the signal what would have been done without us.
fn call_former(signal: c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: it was leaked before this handler was installed.
    let Some(former) = (unsafe { FORMER.load(Ordering::Acquire).as_ref() }) else {
        return;
    };
    let handler = former.sa_sigaction;
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        // Ignoring a fault would repeat it for ever. The signal is blocked here, so it takes its
        // default action, the end, when this handler returns.
        // SAFETY: both may be called in a handler.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
        return;
    }
    if former.sa_flags & libc::SA_SIGINFO != 0 {
        // SAFETY: whoever installed it said by the flag that it has this signature.
        let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut libc::c_void) =
            unsafe { std::mem::transmute(handler) };
        handler(signal, info, context);
        return;
    }
    // SAFETY: without the flag it has this one.
    let handler: extern "C" fn(c_int) = unsafe { std::mem::transmute(handler) };
    handler(signal);
}
