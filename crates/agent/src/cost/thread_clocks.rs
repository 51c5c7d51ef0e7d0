//! CPU time of the agent's own threads. In `candela up` the process is the server, too, so that the time of the
//! process says little.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

/// `USER_HZ`, which is the same on every x86-64 Linux.
const NS_PER_CLOCK_TICK: u64 = 10_000_000;

/// The threads whose time counts as the agent's.
#[derive(Debug, Default)]
pub(crate) struct ThreadClocks {
    threads: Mutex<Threads>,
}

#[derive(Debug, Default)]
struct Threads {
    running: Vec<RunningThread>,
    /// Time of those that have ended, nanoseconds.
    ended: BTreeMap<&'static str, u64>,
}

#[derive(Debug)]
struct RunningThread {
    name: &'static str,
    /// The kernel's id; a text, because it is part of a path.
    id: String,
}

/// A thread's time counts while this lives. It must be dropped by the thread itself.
#[derive(Debug)]
pub(crate) struct CountedThread {
    clocks: Arc<ThreadClocks>,
    id: String,
}

// === impl ThreadClocks ===

impl ThreadClocks {
    /// Counts the calling thread from its start on.
    pub(crate) fn count_this(self: &Arc<Self>, name: &'static str) -> CountedThread {
        let id = own_id().unwrap_or_default();
        let running = RunningThread {
            name,
            id: id.clone(),
        };
        self.lock().running.push(running);
        CountedThread {
            clocks: Arc::clone(self),
            id,
        }
    }

    /// CPU time by the threads' names, nanoseconds; threads of one name are added up.
    pub(crate) fn times(&self) -> BTreeMap<&'static str, u64> {
        let threads = self.lock();
        let mut times = threads.ended.clone();
        for thread in &threads.running {
            *times.entry(thread.name).or_default() += cpu_time_ns(&thread.id).unwrap_or_default();
        }
        times
    }

    fn lock(&self) -> MutexGuard<'_, Threads> {
        // Each change is complete in itself.
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CountedThread {
    fn drop(&mut self) {
        let mut threads = self.clocks.lock();
        let mut running = threads.running.iter();
        let Some(position) = running.position(|thread| thread.id == self.id) else {
            return;
        };
        let thread = threads.running.swap_remove(position);
        let time_ns = cpu_time_ns(&self.id).unwrap_or_default();
        *threads.ended.entry(thread.name).or_default() += time_ns;
    }
}

/// `/proc/thread-self` is a link to `PID/task/TID`.
fn own_id() -> Option<String> {
    let link = fs::read_link("/proc/thread-self").ok()?;
    Some(link.file_name()?.to_str()?.to_owned())
}

/// CPU time of a thread of this process: exact where the kernel has scheduler statistics, else in hundredths of a
/// second.
fn cpu_time_ns(id: &str) -> Option<u64> {
    let read = |file| fs::read_to_string(format!("/proc/self/task/{id}/{file}"));
    if let Ok(statistics) = read("schedstat") {
        return statistics.split(' ').next()?.parse().ok();
    }
    cpu_time_of_stat(&read("stat").ok()?)
}

fn cpu_time_of_stat(stat: &str) -> Option<u64> {
    // The name in brackets may contain anything. Behind it utime and stime are the 12th and 13th field.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ').skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some((ticks()? + ticks()?) * NS_PER_CLOCK_TICK)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Burns CPU until the thread has that much.
    fn burn(time_ns: u64) {
        let id = own_id().expect("a thread has an id");
        let mut sum = 0_u64;
        while cpu_time_ns(&id).expect("it runs") < time_ns {
            sum = std::hint::black_box(sum).wrapping_add(1);
        }
    }

    #[test]
    fn only_counted_threads_count_and_they_do_after_their_end() {
        let clocks = Arc::new(ThreadClocks::default());
        let other = std::thread::spawn(|| burn(10_000_000));
        let counted = {
            let clocks = Arc::clone(&clocks);
            std::thread::spawn(move || {
                let counted = clocks.count_this("worker");
                burn(20_000_000);
                let running = clocks.times()["worker"];
                drop(counted);
                running
            })
        };
        other.join().expect("it ends");
        let running = counted.join().expect("it ends");
        assert!(running >= 20_000_000, "{running}");
        let times = clocks.times();
        assert_eq!(times.len(), 1, "{times:?}");
        assert!(times["worker"] >= running, "{times:?}");
        assert!(clocks.lock().running.is_empty());
    }

    #[test]
    fn coarse_times_are_those_behind_the_name() {
        let stat = "7 (odd) name) S 1 7 7 0 -1 0 0 0 0 0 12 3 0 0 20 0 1 0";
        assert_eq!(cpu_time_of_stat(stat), Some(150_000_000));
    }
}
