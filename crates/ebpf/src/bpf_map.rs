//! The few map operations we need, on file descriptors.
//!
//! The loaded object is kept for its programs; maps are used through duplicated descriptors, so
//! that tables can be uploaded on one thread while another reads samples.

use crate::Error;
use libbpf_rs::libbpf_sys;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// The kernel's own ENOTSUPP, which no libc names.
const NOT_SUPPORTED: i32 = 524;

/// A map by its file descriptor.
#[derive(Debug)]
pub(crate) struct BpfMap {
    name: &'static str,
    file: OwnedFd,
}

// === impl BpfMap ===

impl BpfMap {
    /// A second descriptor of `file`.
    pub(crate) fn duplicate(name: &'static str, file: BorrowedFd<'_>) -> Result<BpfMap, Error> {
        let file = file.try_clone_to_owned().map_err(|source| Error::Map {
            map: name,
            action: "keep",
            source,
        })?;
        Ok(BpfMap { name, file })
    }

    /// A new array of `elements` elements of `element_bytes` that fits into the `tables` map.
    pub(crate) fn new_table(elements: u32, element_bytes: u32) -> Result<BpfMap, Error> {
        let options = libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
            map_flags: libbpf_sys::BPF_F_INNER_MAP | libbpf_sys::BPF_F_MMAPABLE,
            ..Default::default()
        };
        // SAFETY: the name is NUL-terminated and the options outlive the call.
        let file = unsafe {
            libbpf_sys::bpf_map_create(
                libbpf_sys::BPF_MAP_TYPE_ARRAY,
                c"candela_table".as_ptr(),
                4,
                element_bytes,
                elements,
                &raw const options,
            )
        };
        let name = "candela_table";
        if file < 0 {
            return Err(Error::Map {
                map: name,
                action: "create",
                source: errno_of(file),
            });
        }
        // SAFETY: a descriptor that the call above has just opened for us.
        let file = unsafe { OwnedFd::from_raw_fd(file) };
        Ok(BpfMap { name, file })
    }

    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Sets `key` to `value`.
    ///
    /// # Panics
    /// Never, but the sizes of `K` and `V` must be those of the map.
    pub(crate) fn update<K: Copy, V: Copy>(&self, key: K, value: V) -> Result<(), Error> {
        // SAFETY: key and value live through the call and have the map's sizes (each caller uses
        // the types of bpf/maps.h).
        let code = unsafe {
            libbpf_sys::bpf_map_update_elem(
                self.file.as_raw_fd(),
                (&raw const key).cast(),
                (&raw const value).cast(),
                libbpf_sys::BPF_ANY.into(),
            )
        };
        self.check("update", code)
    }

    /// Sets many keys at once: a map of maps waits for running programs once per call, not per key.
    pub(crate) fn update_many<K: Copy, V: Copy>(
        &self,
        keys: &[K],
        values: &[V],
    ) -> Result<(), Error> {
        assert_eq!(keys.len(), values.len(), "a value for each key");
        let Ok(mut count) = u32::try_from(keys.len()) else {
            return Err(Error::Map {
                map: self.name,
                action: "update",
                source: io::ErrorKind::InvalidInput.into(),
            });
        };
        let options = libbpf_sys::bpf_map_batch_opts {
            sz: size_of::<libbpf_sys::bpf_map_batch_opts>() as libbpf_sys::size_t,
            ..Default::default()
        };
        // SAFETY: both slices hold `count` elements of the map's sizes and live through the call.
        let code = unsafe {
            libbpf_sys::bpf_map_update_batch(
                self.file.as_raw_fd(),
                keys.as_ptr().cast(),
                values.as_ptr().cast(),
                &raw mut count,
                &raw const options,
            )
        };
        // Maps of maps take batches since Linux 5.19, and until 6.1 find the flags of an address among their
        // options. There each key is set and waited for.
        let refused = [NOT_SUPPORTED, libc::EINVAL].map(Some);
        if code < 0 && refused.contains(&errno_of(code).raw_os_error()) {
            let mut pairs = keys.iter().zip(values);
            return pairs.try_for_each(|(&key, &value)| self.update(key, value));
        }
        self.check("update", code)
    }

    /// Removes `key`; a missing one is fine (the kernel removes processes that exit).
    pub(crate) fn delete<K: Copy>(&self, key: K) -> Result<(), Error> {
        // SAFETY: the key lives through the call and has the map's size.
        let code = unsafe {
            libbpf_sys::bpf_map_delete_elem(self.file.as_raw_fd(), (&raw const key).cast())
        };
        if errno_of(code).raw_os_error() == Some(libc::ENOENT) {
            return Ok(());
        }
        self.check("delete from", code)
    }

    /// Its keys, in no order. Of a map that changes meanwhile some may be missing or twice: `most` ends the walk, which
    /// begins anew where its last key has gone.
    ///
    /// # Panics
    /// Never, but the size of `K` must be that of the map.
    pub(crate) fn keys<K: Copy + Default>(&self, most: u32) -> Result<Vec<K>, Error> {
        let mut keys: Vec<K> = Vec::new();
        while keys.len() < most as usize {
            let mut next = K::default();
            let previous = keys.last().map_or(std::ptr::null(), std::ptr::from_ref);
            // SAFETY: `previous` is null or a key in the vector, which does not change during the call, and `next`
            // has room for one; both have the map's size (each caller uses the types of bpf/maps.h).
            let code = unsafe {
                libbpf_sys::bpf_map_get_next_key(
                    self.file.as_raw_fd(),
                    previous.cast(),
                    (&raw mut next).cast(),
                )
            };
            if errno_of(code).raw_os_error() == Some(libc::ENOENT) {
                break;
            }
            self.check("list", code)?;
            keys.push(next);
        }
        Ok(keys)
    }

    /// Copies the values of `key` on all possible CPUs to `out`.
    pub(crate) fn lookup_per_cpu(&self, key: u32, out: &mut [u64]) -> Result<(), Error> {
        // SAFETY: the map is a per-CPU array of u64 and `out` has one element for each possible
        // CPU, which is what the kernel writes.
        let code = unsafe {
            libbpf_sys::bpf_map_lookup_elem(
                self.file.as_raw_fd(),
                (&raw const key).cast(),
                out.as_mut_ptr().cast(),
            )
        };
        self.check("read", code)
    }

    /// Kernel memory the map is charged for, in bytes (`memlock` of proc_pid_fdinfo(5)).
    pub(crate) fn memory_bytes(&self) -> Result<u64, Error> {
        let path = format!("/proc/self/fdinfo/{}", self.file.as_raw_fd());
        let text = std::fs::read_to_string(path).map_err(|source| Error::Map {
            map: self.name,
            action: "measure",
            source,
        })?;
        text.lines()
            .find_map(|line| line.strip_prefix("memlock:")?.trim().parse().ok())
            .ok_or(Error::Map {
                map: self.name,
                action: "measure",
                source: io::ErrorKind::InvalidData.into(),
            })
    }

    fn check(&self, action: &'static str, code: i32) -> Result<(), Error> {
        if code < 0 {
            return Err(Error::Map {
                map: self.name,
                action,
                source: errno_of(code),
            });
        }
        Ok(())
    }
}

/// libbpf 1.x returns the negative error number.
pub(crate) fn errno_of(code: i32) -> io::Error {
    io::Error::from_raw_os_error(code.saturating_neg())
}
