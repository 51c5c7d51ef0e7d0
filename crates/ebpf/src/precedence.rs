//! Getting one's turn on a host that has more to do than it can.

use std::marker::PhantomData;

/// What the kernel's getpriority(2) answers for nice 0: it is never negative, as an error would be.
const ANSWER_FOR_NICE_ZERO: libc::c_long = 20;

const FIRST_OF_ALL: libc::c_int = -20;

/// While it lives, the calling thread goes before others (nice -20), and so does what it starts meanwhile. Among
/// hundreds of threads that want to run, whoever empties buffers of the kernel would else wait for its turn until they
/// have long overflowed. It takes no more CPU time for that.
#[derive(Debug)]
pub struct Precedence {
    former: libc::c_int,
    /// It is the thread's that took it.
    of_thread: PhantomData<*const ()>,
}

// === impl Precedence ===

impl Precedence {
    /// `None` where it is not allowed: it takes CAP_SYS_NICE, or a limit on niceness that permits it.
    pub fn take() -> Option<Precedence> {
        // SAFETY: the call takes numbers only; 0 stands for the calling thread.
        let answer = unsafe { libc::syscall(libc::SYS_getpriority, libc::PRIO_PROCESS, 0) };
        let former = libc::c_int::try_from(ANSWER_FOR_NICE_ZERO - answer).ok()?;
        (answer >= 0 && set_nice(FIRST_OF_ALL)).then_some(Precedence {
            former,
            of_thread: PhantomData,
        })
    }
}

impl Drop for Precedence {
    fn drop(&mut self) {
        // Nobody is refused to be nicer.
        set_nice(self.former);
    }
}

fn set_nice(nice: libc::c_int) -> bool {
    // SAFETY: the call takes numbers only; 0 stands for the calling thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The 19th field of proc_pid_stat(5); the name before it is ours and has no spaces.
    fn nice() -> i32 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("our own thread");
        let (_, behind_name) = stat.rsplit_once(')').expect("a name");
        let nice = behind_name.split_whitespace().nth(16).expect("a field");
        nice.parse().expect("a number")
    }

    mod host_tests {
        use super::*;

        #[test]
        fn it_lasts_as_long_as_it_lives() {
            let before = nice();
            let Some(precedence) = Precedence::take() else {
                eprintln!("skipped: this process may not go before others");
                return;
            };
            assert_eq!(nice(), FIRST_OF_ALL);
            drop(precedence);
            assert_eq!(nice(), before);
        }
    }
}
