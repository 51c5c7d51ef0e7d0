//! Something of which there is only so much, shared among parties.
//!
//! A party that has some may have at most as much as stays free (Choudhury and Hahne's dynamic thresholds, 1998, with a factor
//! of 1): one alone gets half. A party that has nothing may take anything that is free, up to half of all.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use crate::turns::Party;

/// All there is.
#[derive(Debug)]
pub(super) struct Shares {
    most: usize,
    taken: Mutex<HashMap<Party, usize>>,
}

/// What somebody has of it, until this is dropped.
#[derive(Debug)]
pub(super) struct Share {
    shares: Arc<Shares>,
    party: Party,
    amount: usize,
}

/// Why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It is more than one gets of all.
    Always,
    /// Too much is taken just now.
    Now,
}

impl Shares {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            taken: Mutex::default(),
        })
    }

    pub(super) fn take(self: &Arc<Self>, party: &Party, amount: usize) -> Result<Share, Refused> {
        if amount > self.most_of_one() {
            return Err(Refused::Always);
        }
        let mut taken = self.lock();
        let all: usize = taken.values().sum();
        let own = taken.get(party).copied().unwrap_or(0);
        let free = self.most.saturating_sub(all + amount);
        let fits = all + amount <= self.most;
        if !fits || (own > 0 && own + amount > free) {
            return Err(Refused::Now);
        }
        taken.insert(party.clone(), own + amount);
        Ok(Share {
            shares: Arc::clone(self),
            party: party.clone(),
            amount,
        })
    }

    /// The most that one gets.
    pub(super) fn most_of_one(&self) -> usize {
        self.most / 2
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Party, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    /// Takes a part out of it, which may outlive the rest.
    pub(super) fn split(&mut self, amount: usize) -> Self {
        let amount = amount.min(self.amount);
        self.amount -= amount;
        Self {
            shares: Arc::clone(&self.shares),
            party: self.party.clone(),
            amount,
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.shares.lock();
        if let Some(own) = taken.get_mut(&self.party) {
            *own -= self.amount;
            if *own == 0 {
                taken.remove(&self.party);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn party(name: &str) -> Party {
        Party::Caller(name.into())
    }

    #[test]
    fn one_gets_half_and_leaves_the_rest_to_others() {
        let shares = Shares::new(100);
        let take = |name: &str, amount| shares.take(&party(name), amount);
        assert_eq!(take("a", 51).err(), Some(Refused::Always));
        let first = take("a", 30).expect("30 of 100");
        let second = take("a", 20).expect("as much as is left");
        assert_eq!(take("a", 1).err(), Some(Refused::Now));
        let other = take("b", 25).expect("as much as is left");
        assert_eq!(take("b", 1).err(), Some(Refused::Now));
        drop(first);
        assert_eq!(take("b", 20).err(), Some(Refused::Now), "25 + 20 > 35");
        let more = take("b", 15).expect("40 and 40");
        assert_eq!(take("c", 41).err(), Some(Refused::Now), "40 are left");
        let last = take("c", 40).expect("all that is left");
        drop((second, other, more, last));
        assert!(shares.lock().is_empty());
    }

    #[test]
    fn a_part_outlives_the_rest() {
        let shares = Shares::new(100);
        let mut whole = shares.take(&party("a"), 50).expect("half of it");
        let part = whole.split(20);
        drop(whole);
        assert_eq!(shares.lock()[&party("a")], 20);
        drop(part);
        assert!(shares.lock().is_empty());
    }
}
