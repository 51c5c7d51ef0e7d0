//! Turns of requests that compute: only so many at once, and whoever had least is next.

mod lanes;
mod queue;
mod share;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use axum::http::StatusCode;
use serde_json::Value;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::Instant;

pub(crate) use self::lanes::Lane;
pub(crate) use self::lanes::LaneTurns;
pub(crate) use self::queue::Asker;
use self::queue::Begun;
use self::queue::LineStatus;
pub(crate) use self::queue::Party;
use self::queue::Queue;
use self::queue::Ticket;
use crate::api_error::ApiError;
use crate::auth::Caller;
use crate::auth::Right;

/// The shortest and the longest time after which one who was refused may try again.
const RETRY_AFTER: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// Askers that the status lists.
const MOST_LISTED: usize = 100;

/// Slots for work of one kind, and the queue for them.
pub(crate) struct Turns {
    /// What the work is called in errors, in the plural.
    name: &'static str,
    /// How long a request waits before it is refused.
    patience: Duration,
    state: Mutex<State>,
}

struct State {
    queue: Queue,
    waiting: HashMap<Ticket, Waiting>,
}

struct Waiting {
    turn: oneshot::Sender<Turn>,
    since: Instant,
}

/// A slot, until this is dropped.
pub(crate) struct Turn {
    turns: Arc<Turns>,
    begun: Begun,
    /// `None` as long as it is not known whether somebody takes it.
    since: Option<Instant>,
}

/// A place in the queue, until this is dropped.
struct Place<'a> {
    turns: &'a Turns,
    asker: &'a Asker,
    ticket: Ticket,
}

// === impl Turns ===

impl Turns {
    pub(crate) fn new(name: &'static str, slots: usize, patience: Duration) -> Arc<Self> {
        Arc::new(Self {
            name,
            patience,
            state: Mutex::new(State {
                queue: Queue::new(slots),
                waiting: HashMap::new(),
            }),
        })
    }

    /// Waits for a turn.
    ///
    /// # Errors
    /// 429 `busy` when it takes too long, with the place in the queue by then, or when too many wait.
    pub(crate) async fn take(
        self: &Arc<Self>,
        asker: &Asker,
        weight: u32,
    ) -> Result<Turn, ApiError> {
        let (sender, receiver) = oneshot::channel();
        let Some(place) = self.join(asker, weight, sender) else {
            return Err(busy(format!("too many {} of one caller wait", self.name)));
        };
        self.begin();
        match tokio::time::timeout(self.patience, receiver).await {
            Ok(Ok(mut turn)) => {
                turn.since = Some(Instant::now());
                Ok(turn)
            }
            _ => Err(self.refusal(&place)),
        }
    }

    fn join<'a>(
        &'a self,
        asker: &'a Asker,
        weight: u32,
        turn: oneshot::Sender<Turn>,
    ) -> Option<Place<'a>> {
        let mut state = self.lock();
        let ticket = state.queue.join(asker, weight)?;
        let since = Instant::now();
        state.waiting.insert(ticket, Waiting { turn, since });
        Some(Place {
            turns: self,
            asker,
            ticket,
        })
    }

    /// Begins turns as long as slots are free.
    fn begin(self: &Arc<Self>) {
        while let Some((waiting, begun)) = self.begin_one() {
            let turn = Turn {
                turns: Arc::clone(self),
                begun,
                since: None,
            };
            // Of one who has just gone it comes back, and ends here.
            drop(waiting.turn.send(turn));
        }
    }

    fn begin_one(&self) -> Option<(Waiting, Begun)> {
        let mut state = self.lock();
        let begun = state.queue.begin()?;
        let waiting = state.waiting.remove(&begun.ticket);
        Some((waiting.expect("who waits is in both"), begun))
    }

    fn refusal(&self, place: &Place<'_>) -> ApiError {
        let state = self.lock();
        let position = state.queue.position(place.asker, place.ticket);
        let (name, seconds) = (self.name, self.patience.as_secs());
        let message = format!(
            "this request waited {seconds} s for its turn among the {name}; before it are about {}",
            position - 1
        );
        let [shortest, longest] = RETRY_AFTER;
        let estimate = state.queue.estimate(position);
        ApiError {
            retry_after: Some(estimate.clamp(shortest, longest)),
            ..busy(message)
        }
        .details(json!({"position": position}))
    }

    /// Who has turns and who waits for how long, as far as a caller sees their tenants.
    pub(crate) fn status_json(&self, caller: &Caller) -> Value {
        let state = self.lock();
        let lines = state.queue.lines();
        let mut lines: Vec<LineStatus> = lines
            .filter(|line| caller.sees(&line.asker.tenant))
            .collect();
        let running: usize = lines.iter().map(|line| line.running).sum();
        let waiting: usize = lines.iter().map(|line| line.waiting).sum();
        lines.sort_by_key(|line| Reverse(line.waiting + line.running));
        let knows = |line: &LineStatus| {
            caller.rights.allow(Right::Admin) || line.asker.caller == caller.asker().caller
        };
        let askers = lines.iter().take(MOST_LISTED).map(|line| {
            let oldest = line.oldest.and_then(|ticket| state.waiting.get(&ticket));
            let waited = oldest.map(|oldest| oldest.since.elapsed().as_millis() as u64);
            let position = line.oldest.map(|it| state.queue.position(line.asker, it));
            json!({
                "tenant": *line.asker.tenant,
                "caller": knows(line).then_some(&*line.asker.caller),
                "running": line.running,
                "waiting": line.waiting,
                "position": position,
                "waited_ms": waited,
            })
        });
        json!({"running": running, "waiting": waiting, "askers": askers.collect::<Vec<Value>>()})
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn busy(message: String) -> ApiError {
    ApiError::new(StatusCode::TOO_MANY_REQUESTS, "busy", message)
        .hint("try again, or ask for a shorter time range")
}

impl Drop for Turn {
    fn drop(&mut self) {
        let took = self.since.map(|since| since.elapsed());
        self.turns.lock().queue.end(&self.begun, took);
        self.turns.begin();
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.turns.lock();
        state.queue.leave(self.asker, self.ticket);
        state.waiting.remove(&self.ticket);
    }
}
