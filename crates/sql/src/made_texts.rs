//! What functions have made and somebody still holds.

use std::fmt;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::Weak;

use datafusion::arrow::array::Array;
use datafusion::arrow::array::ArrayRef;
use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::memory_pool::MemoryReservation;

/// The arrays that functions of one query made, in the budget of that query. DataFusion asks its
/// budget for what operators keep, and for nothing that an expression makes.
pub(crate) struct MadeTexts {
    pool: Arc<dyn MemoryPool>,
    held: Mutex<Vec<(Weak<dyn Array>, MemoryReservation)>>,
}

impl MadeTexts {
    pub(crate) fn new(pool: Arc<dyn MemoryPool>) -> Self {
        Self {
            pool,
            held: Mutex::new(Vec::new()),
        }
    }

    /// Memory for what is about to be made.
    ///
    /// # Errors
    /// When the query has not so much left.
    pub(crate) fn reserve(&self, function: &str, bytes: usize) -> Result<MemoryReservation> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|(array, _)| array.strong_count() > 0);
        drop(held);
        let memory = MemoryConsumer::new(format!("results of {function}")).register(&self.pool);
        memory.try_grow(bytes)?;
        Ok(memory)
    }

    /// The memory is given back some time after the array is gone.
    pub(crate) fn hold(&self, array: &ArrayRef, memory: MemoryReservation) {
        memory.shrink(memory.size().saturating_sub(array.get_array_memory_size()));
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.push((Arc::downgrade(array), memory));
    }
}

impl fmt::Debug for MadeTexts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("MadeTexts")
    }
}
