//! Lanes: kinds of work with slots of their own, so that what takes long holds up nothing that does not.

use std::sync::Arc;

#[cfg(feature = "sql")]
use candela_sql::SqlOptions;
use serde_json::Value;
use serde_json::json;

use super::Asker;
use super::Turn;
use super::Turns;
use crate::api_error::ApiError;
use crate::auth::Caller;
use crate::options::Limits;

/// What a request computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// What there is to ask for, and how the server is: milliseconds.
    Lists,
    /// What profiles say: as long as there are profiles.
    Queries,
    #[cfg(feature = "sql")]
    Sql,
}

/// The turns of each lane.
pub(crate) struct LaneTurns {
    lists: Arc<Turns>,
    queries: Arc<Turns>,
    #[cfg(feature = "sql")]
    sql: Arc<Turns>,
}

// === impl LaneTurns ===

impl LaneTurns {
    pub(crate) fn new(limits: &Limits) -> Self {
        let turns = |name, slots| Turns::new(name, slots, limits.query_wait);
        Self {
            lists: turns("lists", limits.concurrent_queries),
            queries: turns("queries", limits.concurrent_queries),
            #[cfg(feature = "sql")]
            sql: turns("SQL queries", SqlOptions::default().concurrent),
        }
    }

    /// Waits for a turn.
    ///
    /// # Errors
    /// 429 `busy` when it takes too long, with the place in the queue by then, or when too many wait.
    pub(crate) async fn take(
        &self,
        asker: &Asker,
        weight: u32,
        lane: Lane,
    ) -> Result<Turn, ApiError> {
        let turns = match lane {
            Lane::Lists => &self.lists,
            Lane::Queries => &self.queries,
            #[cfg(feature = "sql")]
            Lane::Sql => &self.sql,
        };
        turns.take(asker, weight).await
    }

    /// How many run and who waits, as far as a caller may see them.
    pub(crate) fn status_json(&self, caller: &Caller) -> Value {
        #[cfg_attr(
            not(feature = "sql"),
            expect(unused_mut, reason = "there is no SQL to add")
        )]
        let mut lanes = json!({
            "lists": self.lists.status_json(caller),
            "queries": self.queries.status_json(caller),
        });
        #[cfg(feature = "sql")]
        {
            lanes["sql"] = self.sql.status_json(caller);
        }
        lanes
    }
}
