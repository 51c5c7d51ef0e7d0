//! The kernel's tracefs where it is mounted nowhere: a mount that is in no namespace, as long as its file is open.

use std::ffi::CStr;
use std::io;
use std::os::fd::AsRawFd;
use std::os::fd::FromRawFd;
use std::os::fd::OwnedFd;
use std::ptr;

/// Of linux/mount.h.
const FSOPEN_CLOEXEC: libc::c_uint = 1;
const FSCONFIG_CMD_CREATE: libc::c_uint = 6;
const FSMOUNT_CLOEXEC: libc::c_uint = 1;

/// Nothing is written there.
const ATTRIBUTES: u64 = libc::MOUNT_ATTR_RDONLY
    | libc::MOUNT_ATTR_NOSUID
    | libc::MOUNT_ATTR_NODEV
    | libc::MOUNT_ATTR_NOEXEC;

const TYPE: &CStr = c"tracefs";

/// Its root directory.
///
/// # Errors
/// The system's: it takes CAP_SYS_ADMIN.
pub(crate) fn mount() -> io::Result<OwnedFd> {
    // SAFETY: the name is a string that ends with a zero and outlives the call.
    let context = owned(unsafe { libc::syscall(libc::SYS_fsopen, TYPE.as_ptr(), FSOPEN_CLOEXEC) })?;
    let no_text = ptr::null::<libc::c_char>();
    // SAFETY: the command takes neither key nor value, which are null.
    let created = unsafe {
        libc::syscall(
            libc::SYS_fsconfig,
            context.as_raw_fd(),
            FSCONFIG_CMD_CREATE,
            no_text,
            no_text,
            0,
        )
    };
    if created < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call takes three numbers.
    let mounted = unsafe {
        libc::syscall(
            libc::SYS_fsmount,
            context.as_raw_fd(),
            FSMOUNT_CLOEXEC,
            ATTRIBUTES,
        )
    };
    owned(mounted)
}

/// The file descriptor that a system call has returned.
fn owned(returned: libc::c_long) -> io::Result<OwnedFd> {
    if returned < 0 {
        return Err(io::Error::last_os_error());
    }
    let descriptor = libc::c_int::try_from(returned).map_err(io::Error::other)?;
    // SAFETY: the kernel has just opened it for us, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
