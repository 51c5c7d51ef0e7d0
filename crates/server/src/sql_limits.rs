//! What one SQL query may take.

use std::time::Duration;

/// What one SQL query may take. Without meaning in builds without SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqlLimits {
    /// Memory, bytes.
    pub memory: usize,
    /// Time.
    pub timeout: Duration,
    /// Rows of the answer.
    pub rows: usize,
}

impl Default for SqlLimits {
    fn default() -> Self {
        Self {
            memory: 256 << 20,
            timeout: Duration::from_secs(30),
            rows: 100_000,
        }
    }
}
