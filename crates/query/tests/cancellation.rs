//! Queries whose clients have gone away end.
#![expect(clippy::expect_used, reason = "a test says what went wrong by failing")]

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::thread;
use std::thread::ThreadId;

use crate::common::NOON_NS;
use crate::common::block_on;
use crate::common::options;
use crate::common::query;
use crate::labeled::labeled;
use candela_query::Cancellation;
use candela_query::Engine;
use candela_query::Query;
use candela_query::QueryError;
use candela_query::SeriesOptions;
use candela_store::Clock;
use candela_store::Store;
use candela_store::StoreOptions;

/// A client that goes away when the query looks at the clock for the so-manieth time.
#[derive(Debug)]
struct Impatience {
    /// The thread of the query: those of the store look as well.
    thread: ThreadId,
    looks: AtomicUsize,
    leave: Mutex<Option<(usize, Cancellation)>>,
}

impl Impatience {
    fn leave_at(&self, look: usize, cancellation: Cancellation) {
        self.looks.store(0, Ordering::SeqCst);
        *self.leave.lock().expect("whole") = Some((look, cancellation));
    }

    fn looks(&self) -> usize {
        self.looks.load(Ordering::SeqCst)
    }
}

impl Clock for Impatience {
    fn now_ns(&self) -> i64 {
        NOON_NS
    }

    fn monotonic_ns(&self) -> i64 {
        if thread::current().id() != self.thread {
            return 0;
        }
        let look = self.looks.fetch_add(1, Ordering::SeqCst) + 1;
        if let Some((leave_at, cancellation)) = &*self.leave.lock().expect("whole")
            && look == *leave_at
        {
            cancellation.cancel();
        }
        0
    }
}

/// Fewer than what makes a query take a second thread.
const ROWS: i64 = 100_000;

fn large_store(directory: &std::path::Path) -> (Engine, Arc<Impatience>) {
    let clock = Arc::new(Impatience {
        thread: thread::current().id(),
        looks: AtomicUsize::new(0),
        leave: Mutex::new(None),
    });
    let options = StoreOptions {
        clock: Arc::<Impatience>::clone(&clock),
        ..options(directory)
    };
    let store = Store::open(options).expect("opens");
    block_on(async {
        store
            .append("t", labeled("a", ROWS))
            .await
            .expect("appends");
        store.flush().await.expect("flushes");
    });
    (Engine::new(store), clock)
}

type Ask = fn(&Engine, &Query) -> Result<(), QueryError>;

const QUESTIONS: [(&str, Ask); 4] = [
    ("tree", |engine, query| engine.flame_tree(query).map(drop)),
    ("profile", |engine, query| engine.profile(query).map(drop)),
    ("lines", |engine, query| {
        let by_label = SeriesOptions {
            group_by: vec!["request_bytes".to_owned()],
            ..SeriesOptions::default()
        };
        engine.series(query, &by_label).map(drop)
    }),
    ("names", |engine, query| engine.labels(query).map(drop)),
];

#[test]
fn a_query_without_a_client_reads_no_further_chunk() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (engine, clock) = large_store(directory.path());
    for (name, ask) in QUESTIONS {
        let question = query("{}", "cpu");
        // Tables of blocks are read once and kept, so the first answer takes more looks.
        ask(&engine, &question).expect("an answer");
        clock.leave_at(usize::MAX, Cancellation::default());
        ask(&engine, &question).expect("an answer");
        let looks = clock.looks();
        // Which labels the samples of a block have is kept.
        let chunks = if name == "names" {
            0
        } else {
            ROWS as usize / 65_536
        };
        assert!(looks >= chunks + 3, "{name} looks {looks} times");
        for leave_at in 1..=looks {
            let question = Query {
                cancellation: Cancellation::default(),
                ..question.clone()
            };
            clock.leave_at(leave_at, question.cancellation.clone());
            match ask(&engine, &question) {
                Err(QueryError::Cancelled) => {
                    assert_eq!(clock.looks(), leave_at, "{name} went on");
                }
                Err(other) => panic!("{name}: {other}"),
                // The answer was made when the client left.
                Ok(()) => assert_eq!(leave_at, looks, "{name} took no notice"),
            }
        }
    }
}

#[test]
fn what_waits_cancels_when_it_goes() {
    let question = query("{}", "cpu");
    let waiting = question.cancellation.on_drop();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let engine = Engine::new(Store::open(options(directory.path())).expect("opens"));
    engine.flame_tree(&question).expect("somebody waits");
    drop(waiting);
    let answers = [
        engine.flame_tree(&question).map(drop),
        engine.types(&question).map(drop),
        engine.services(&question).map(drop),
    ];
    for answer in answers {
        assert!(matches!(answer, Err(QueryError::Cancelled)), "{answer:?}");
    }
}
