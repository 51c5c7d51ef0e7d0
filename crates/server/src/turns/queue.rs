//! Who comes next: start-time fair queueing (Goyal, Vin and Cheng, 1996) over parties, and over the lines of each.
//!
//! A party is a tenant where accounts belong to one, else a caller. Its lines are the callers of the tenant, or the tenants that
//! the caller asks about: whoever may name any tenant gains nothing by naming many. Each party has a clock, which advances by
//! the time of its turns over its weight. The party that is furthest behind comes next, and of its lines the same.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use super::share::Share;
use crate::auth::TenantName;

/// Requests of a party that may wait; more are refused at once.
const MOST_WAITING: usize = 1024;

/// Who asks for a turn: a line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Asker {
    pub(crate) tenant: TenantName,
    /// The account, or the address where there are no accounts.
    pub(crate) caller: Arc<str>,
    /// Whether the account can ask about no other tenant.
    pub(crate) is_of_tenant: bool,
}

/// A number for each request, in order of arrival.
pub(super) type Ticket = u64;

/// Those who wait and those whose turn it is.
#[derive(Debug)]
pub(super) struct Queue {
    slots: usize,
    running: usize,
    parties: Group<Party, Lines>,
    last_ticket: Ticket,
    mean_turn: Duration,
}

/// Who shares the slots with others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Party {
    Tenant(TenantName),
    Caller(Arc<str>),
}

/// The lines of a party, with the requests that wait in each, oldest first.
type Lines = Group<Asker, VecDeque<Ticket>>;

/// Those who share something.
#[derive(Debug)]
struct Group<K, M> {
    /// The latest clock at which a turn began. Who joins begins here.
    now: Duration,
    members: HashMap<K, Member<M>>,
}

#[derive(Debug)]
struct Member<M> {
    share: Share,
    of: M,
}

/// A turn that has begun.
#[derive(Clone, Debug)]
pub(super) struct Begun {
    pub(super) ticket: Ticket,
    asker: Asker,
    /// By what its clocks advanced when it began: how long turns usually take.
    charge: Duration,
}

/// How a line stands.
#[derive(Debug)]
pub(super) struct LineStatus<'a> {
    pub(super) asker: &'a Asker,
    pub(super) running: usize,
    pub(super) waiting: usize,
    pub(super) oldest: Option<Ticket>,
}

// === impl Asker ===

impl Asker {
    pub(crate) fn party(&self) -> Party {
        match self.is_of_tenant {
            true => Party::Tenant(self.tenant.clone()),
            false => Party::Caller(Arc::clone(&self.caller)),
        }
    }
}

// === impl Queue ===

impl Queue {
    pub(super) fn new(slots: usize) -> Self {
        Self {
            slots: slots.max(1),
            running: 0,
            parties: Group::default(),
            last_ticket: 0,
            mean_turn: Duration::ZERO,
        }
    }

    /// Takes a place in the queue; `None` when too many of the party wait. The weight is the tenant's.
    pub(super) fn join(&mut self, asker: &Asker, weight: u32) -> Option<Ticket> {
        let [of_party, of_line] = match asker.is_of_tenant {
            true => [weight, 1],
            false => [1, weight],
        };
        let party = self.parties.member(asker.party(), of_party);
        if party.share.waiting >= MOST_WAITING {
            return None;
        }
        party.share.waiting += 1;
        let line = party.of.member(asker.clone(), of_line);
        line.share.waiting += 1;
        self.last_ticket += 1;
        line.of.push_back(self.last_ticket);
        Some(self.last_ticket)
    }

    /// Gives up waiting. Nothing happens when the turn has come.
    pub(super) fn leave(&mut self, asker: &Asker, ticket: Ticket) {
        let Some(party) = self.parties.members.get_mut(&asker.party()) else {
            return;
        };
        let Some(line) = party.of.members.get_mut(asker) else {
            return;
        };
        let Ok(place) = line.of.binary_search(&ticket) else {
            return;
        };
        line.of.remove(place);
        line.share.waiting -= 1;
        party.share.waiting -= 1;
        self.forget_idle(asker);
    }

    /// Begins the next turn, if a slot is free.
    pub(super) fn begin(&mut self) -> Option<Begun> {
        if self.running >= self.slots {
            return None;
        }
        let charge = self.mean_turn;
        let party = self.parties.next(|lines| {
            let fronts = lines.members.values().filter_map(|line| line.of.front());
            fronts.min().copied()
        })?;
        let lines = self.parties.begin(&party, charge)?;
        let asker = lines.next(|tickets| tickets.front().copied())?;
        let ticket = lines.begin(&asker, charge)?.pop_front()?;
        self.running += 1;
        Some(Begun {
            ticket,
            asker,
            charge,
        })
    }

    /// Ends a turn that took so long; `None` when nobody was there to take it.
    pub(super) fn end(&mut self, begun: &Begun, took: Option<Duration>) {
        let used = took.unwrap_or_default();
        if let Some(party) = self.parties.members.get_mut(&begun.asker.party()) {
            party.share.end(begun.charge, used);
            if let Some(line) = party.of.members.get_mut(&begun.asker) {
                line.share.end(begun.charge, used);
            }
        }
        self.running -= 1;
        if let Some(took) = took {
            // Of the last eight or so.
            self.mean_turn = (self.mean_turn * 7 + took) / 8;
        }
        self.forget_idle(&begun.asker);
    }

    /// The place of a request among all that wait: one more than the turns that will begin before it if all take as long as
    /// turns usually do and nobody else comes.
    pub(super) fn position(&self, asker: &Asker, ticket: Ticket) -> usize {
        let key = asker.party();
        let party = self.parties.members.get(&key);
        let line = party.and_then(|party| party.of.members.get(asker));
        let (Some(party), Some(line)) = (party, line) else {
            return 1;
        };
        let in_line = 1 + line.of.partition_point(|other| *other < ticket);
        let in_party = in_line + party.of.turns_before(asker, in_line, self.mean_turn);
        in_party + self.parties.turns_before(&key, in_party, self.mean_turn)
    }

    /// How long it takes until so many turns have begun, if they take as long as the last ones did.
    pub(super) fn estimate(&self, turns: usize) -> Duration {
        let rounds = turns.div_ceil(self.slots);
        self.mean_turn * u32::try_from(rounds).unwrap_or(u32::MAX)
    }

    pub(super) fn lines(&self) -> impl Iterator<Item = LineStatus<'_>> {
        let lines = self.parties.members.values();
        let lines = lines.flat_map(|party| &party.of.members);
        lines.map(|(asker, line)| LineStatus {
            asker,
            running: line.share.running,
            waiting: line.share.waiting,
            oldest: line.of.front().copied(),
        })
    }

    #[cfg(test)]
    pub(super) fn has_no_parties(&self) -> bool {
        self.parties.members.is_empty()
    }

    fn forget_idle(&mut self, asker: &Asker) {
        if let Some(party) = self.parties.members.get_mut(&asker.party()) {
            party.of.forget_idle();
        }
        self.parties.forget_idle();
    }
}

// === impl Group ===

impl<K, M> Default for Group<K, M> {
    fn default() -> Self {
        Self {
            now: Duration::ZERO,
            members: HashMap::new(),
        }
    }
}

impl<K: Clone + Eq + Hash, M: Default> Group<K, M> {
    /// The member of this name. One that was away has saved no turns meanwhile.
    fn member(&mut self, key: K, weight: u32) -> &mut Member<M> {
        let new = || Member {
            share: Share::new(weight),
            of: M::default(),
        };
        let member = self.members.entry(key).or_insert_with(new);
        if member.share.is_idle() {
            member.share.clock = member.share.clock.max(self.now);
        }
        member
    }

    /// Whoever comes next of those who wait.
    fn next(&self, oldest: impl Fn(&M) -> Option<Ticket>) -> Option<K> {
        let waiting = self.members.iter();
        let waiting = waiting.filter(|(_, member)| member.share.waiting > 0);
        let next = waiting.min_by_key(|(_, member)| (member.share.rank(), oldest(&member.of)));
        next.map(|(key, _)| key.clone())
    }

    fn begin(&mut self, key: &K, charge: Duration) -> Option<&mut M> {
        let member = self.members.get_mut(key)?;
        self.now = self.now.max(member.share.clock);
        member.share.begin(charge);
        Some(&mut member.of)
    }

    /// Turns that others begin before a member has begun so many.
    fn turns_before(&self, key: &K, turns: usize, mean_turn: Duration) -> usize {
        let Some(member) = self.members.get(key) else {
            return 0;
        };
        let others = self.members.iter().filter(|(other, _)| *other != key);
        let before =
            others.map(|(_, other)| member.share.turns_before(turns, &other.share, mean_turn));
        before.sum()
    }

    /// Forgets those who neither wait nor have a turn. One who had more than others have had by now is remembered
    /// until they have caught up: whoever asks again and again, and never twice at once, would be new each time.
    fn forget_idle(&mut self) {
        if self.members.values().all(|member| member.share.is_idle()) {
            *self = Self::default();
            return;
        }
        let now = self.now;
        let is_needed = |member: &Member<M>| !member.share.is_idle() || member.share.clock > now;
        self.members.retain(|_, member| is_needed(member));
    }
}

#[cfg(test)]
impl Begun {
    pub(super) fn asker(&self) -> &Asker {
        &self.asker
    }
}
