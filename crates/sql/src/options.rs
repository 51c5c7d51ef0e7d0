//! What a query may take.

use std::time::Duration;

/// What a query may take. Each is a limit: what exceeds it is refused, with the limit's name.
#[derive(Clone, Copy, Debug)]
pub struct SqlOptions {
    /// What the operators of one query (sorts, groups, joins), the head's rows and the answer may
    /// hold in memory together, bytes. Nothing spills to disk.
    pub memory_bytes: usize,
    /// How long one query may run.
    pub time: Duration,
    /// Rows of an answer.
    pub rows: usize,
    /// Bytes of an answer in memory.
    pub answer_bytes: usize,
    /// Bytes of a query's text.
    pub text_bytes: usize,
    /// Queries that run at the same time; others wait.
    pub concurrent: usize,
    /// How long a query waits for its turn.
    pub wait: Duration,
    /// Threads that run them. They are no others' threads, so that a long query holds up nobody.
    pub threads: usize,
}

impl Default for SqlOptions {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            memory_bytes: 256 << 20,
            time: Duration::from_secs(30),
            rows: 100_000,
            answer_bytes: 64 << 20,
            text_bytes: 16 << 10,
            concurrent: 2,
            wait: Duration::from_secs(30),
            threads: cores.max(2),
        }
    }
}
