//! What makes two stacks of a window the same.

use twox_hash::XxHash3_128;

use crate::processes::ProcessIdentity;
use crate::window::RawStack;

/// Hashes stacks; what it writes them to is used again.
#[derive(Debug, Default)]
pub(crate) struct StackKey {
    bytes: Vec<u8>,
}

// === impl StackKey ===

impl StackKey {
    /// The key of a stack of a process, with the numbers of its lock and its context.
    pub(crate) fn of(
        &mut self,
        identity: ProcessIdentity,
        stack: &RawStack<'_>,
        lock: Option<u32>,
        context: Option<u32>,
    ) -> u128 {
        self.bytes.clear();
        self.process(identity);
        self.bytes.push(u8::from(stack.was_preempted));
        for index in [lock, context] {
            self.number(index.unwrap_or(u32::MAX));
        }
        self.addresses(stack.kernel);
        self.addresses(stack.user);
        if let Some(waker) = stack.waker {
            self.process(waker.process.identity);
            self.addresses(&waker.kernel);
            self.addresses(&waker.user);
        }
        XxHash3_128::oneshot(&self.bytes)
    }

    fn process(&mut self, identity: ProcessIdentity) {
        for number in [identity.pid, identity.serial, identity.generation] {
            self.number(number);
        }
    }

    /// With how many they are: what follows cannot be taken for one of them.
    fn addresses(&mut self, addresses: &[u64]) {
        self.number(addresses.len() as u32);
        for address in addresses {
            self.bytes.extend(address.to_le_bytes());
        }
    }

    fn number(&mut self, number: u32) {
        self.bytes.extend(number.to_le_bytes());
    }
}
