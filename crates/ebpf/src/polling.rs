//! What both samplers do when they are polled.

use crate::Error;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// To be waited for.
pub(crate) fn readable(file: BorrowedFd<'_>) -> libc::pollfd {
    libc::pollfd {
        fd: file.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    }
}

/// Waits for one of `files`; false when none was ready in time.
pub(crate) fn poll_files(files: &mut [libc::pollfd], timeout: Duration) -> Result<bool, Error> {
    let timeout_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: `files` is a valid array of that many pollfds and outlives the call.
    let code = unsafe { libc::poll(files.as_mut_ptr(), files.len() as libc::nfds_t, timeout_ms) };
    if code >= 0 {
        return Ok(code > 0);
    }
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        source => Err(Error::System {
            action: "wait for events",
            source,
        }),
    }
}

/// Whether nothing will come any more of a file that was waited for.
pub(crate) fn has_hung_up(file: &libc::pollfd) -> bool {
    file.revents & (libc::POLLHUP | libc::POLLERR) != 0
}

/// Takes what is not later than `until_ns` out of `pending`, in the order of time.
pub(crate) fn take_until<T>(
    pending: &mut Vec<T>,
    until_ns: u64,
    time_ns: impl Fn(&T) -> u64,
) -> Vec<T> {
    pending.sort_by_key(&time_ns);
    let later = pending.partition_point(|one| time_ns(one) <= until_ns);
    let later = pending.split_off(later);
    std::mem::replace(pending, later)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_later_stays() {
        let mut pending = vec![(5, 'e'), (3, 'c'), (4, 'd'), (3, 'b')];
        let taken = take_until(&mut pending, 4, |(time_ns, _)| *time_ns);
        assert_eq!(
            taken,
            [(3, 'c'), (3, 'b'), (4, 'd')],
            "equal times in order"
        );
        assert_eq!(pending, [(5, 'e')]);
    }
}
