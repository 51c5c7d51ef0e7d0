//! Shared memory between us and the kernel: arrays, ring buffers.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// A shared mapping of a file descriptor, unmapped on drop.
#[derive(Debug)]
pub(crate) struct MemoryMap {
    start: NonNull<u8>,
    bytes: usize,
}

/// A BPF array created with `BPF_F_MMAPABLE`, as memory. `T` must be plain data
/// of a size that is a multiple of eight, as the kernel pads elements to that.
#[derive(Debug)]
pub(crate) struct MappedArray<T> {
    memory: MemoryMap,
    elements: u32,
    element: PhantomData<T>,
}

/// Types that are plain numbers without padding: any bytes are a value and all bytes are initialised.
///
/// # Safety
/// The implementor is `repr(C)` or a primitive, has no padding and no invalid bit pattern, and its
/// size is a multiple of eight.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: a primitive of eight bytes.
unsafe impl Plain for u64 {}

// SAFETY: primitives without gaps, 64 bytes.
unsafe impl Plain for [u32; 16] {}

// SAFETY: the memory belongs to the mapping, not to a thread; all access goes through
// methods that copy plain data or use atomics.
unsafe impl Send for MemoryMap {}

// SAFETY: as for Send. A concurrent reader may see a half-written element, which is a value like
// any other, because elements are plain data; ordering is the callers' duty.
unsafe impl Sync for MemoryMap {}

// === impl MemoryMap ===

impl MemoryMap {
    /// Maps `bytes` of `file` from `offset`, shared.
    pub(crate) fn new(
        file: BorrowedFd<'_>,
        offset: usize,
        bytes: usize,
        writable: bool,
    ) -> io::Result<MemoryMap> {
        let protection = if writable {
            libc::PROT_READ | libc::PROT_WRITE
        } else {
            libc::PROT_READ
        };
        let offset = libc::off_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: a fresh mapping at an address that the kernel chooses overlaps nothing of ours.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                protection,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                offset,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast::<u8>()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(MemoryMap { start, bytes })
    }

    /// The eight bytes at `offset` as an atomic number.
    ///
    /// # Panics
    /// If `offset` is outside or not a multiple of eight.
    pub(crate) fn atomic(&self, offset: usize) -> &AtomicU64 {
        assert!(
            offset.is_multiple_of(8) && offset + 8 <= self.bytes,
            "offset {offset} of {}",
            self.bytes
        );
        // SAFETY: inside the mapping and aligned, as just checked; the kernel side uses whole
        // aligned words too.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(offset).cast()) }
    }

    /// Copies `out.len()` bytes at `offset`.
    ///
    /// # Panics
    /// If the range is outside.
    pub(crate) fn read(&self, offset: usize, out: &mut [u8]) {
        assert!(
            offset <= self.bytes && out.len() <= self.bytes - offset,
            "offset {offset} of {}",
            self.bytes
        );
        // SAFETY: the source is inside the mapping, the destination is a slice, and they cannot overlap.
        unsafe {
            std::ptr::copy_nonoverlapping(
                self.start.as_ptr().add(offset),
                out.as_mut_ptr(),
                out.len(),
            );
        }
    }

    /// The bytes at `offset`.
    ///
    /// # Safety
    /// Nobody, the kernel included, writes them while the slice lives.
    ///
    /// # Panics
    /// If the range is outside.
    pub(crate) unsafe fn slice(&self, offset: usize, bytes: usize) -> &[u8] {
        assert!(
            offset <= self.bytes && bytes <= self.bytes - offset,
            "offset {offset} of {}",
            self.bytes
        );
        // SAFETY: inside the mapping, as just checked; not written meanwhile, as the caller promises.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(offset), bytes) }
    }
}

impl Drop for MemoryMap {
    fn drop(&mut self) {
        // SAFETY: start and bytes are those of a mapping that only this value owns.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

// === impl MappedArray ===

impl<T: Plain> MappedArray<T> {
    /// Maps the array `map` of `elements` elements.
    pub(crate) fn new(map: BorrowedFd<'_>, elements: u32) -> io::Result<MappedArray<T>> {
        let bytes = elements as usize * size_of::<T>();
        Ok(MappedArray {
            memory: MemoryMap::new(map, 0, bytes, true)?,
            elements,
            element: PhantomData,
        })
    }

    /// How many elements there are.
    pub(crate) fn len(&self) -> u32 {
        self.elements
    }

    /// Copies `values` to the elements from `first` on.
    ///
    /// # Panics
    /// If they do not fit.
    pub(crate) fn write(&self, first: u32, values: &[T]) {
        let first = first as usize;
        let elements = self.elements as usize;
        assert!(
            first <= elements && values.len() <= elements - first,
            "{first} + {} of {elements}",
            values.len()
        );
        // SAFETY: the destination is inside the mapping, as just checked, and aligned: mappings
        // start at pages. The source is a slice elsewhere.
        unsafe {
            let to = self.memory.start.as_ptr().cast::<T>().add(first);
            std::ptr::copy_nonoverlapping(values.as_ptr(), to, values.len());
        }
    }

    /// A copy of `count` elements from `first` on.
    ///
    /// # Panics
    /// If there are fewer.
    pub(crate) fn read(&self, first: u32, count: u32) -> Vec<T> {
        assert!(
            first <= self.elements && count <= self.elements - first,
            "{first} + {count} of {}",
            self.elements
        );
        (first..first + count)
            // SAFETY: inside the mapping, as just checked, and aligned; any bytes are a `T`.
            .map(|index| unsafe {
                self.memory
                    .start
                    .as_ptr()
                    .cast::<T>()
                    .add(index as usize)
                    .read_volatile()
            })
            .collect()
    }
}
