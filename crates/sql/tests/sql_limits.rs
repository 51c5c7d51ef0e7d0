//! What queries may not do, and how that is said.
#![expect(clippy::expect_used, reason = "a test says what went wrong by failing")]

use std::pin::pin;
use std::time::Duration;
use std::time::Instant;

use crate::common;
use crate::common::Plain;
use crate::common::TENANT;
use candela_sql::SqlEngine;
use candela_sql::SqlError;
use candela_sql::SqlOptions;
use candela_store::Store;
use futures::future::poll_immediate;
use tokio::time::timeout;

/// A store with a block and a head, of two tenants.
async fn store(directory: &std::path::Path) -> Store {
    let store = common::open(directory);
    let plain = |service, value| Plain {
        service,
        profile_type: 0,
        pod: 0,
        step: 0,
        samples: vec![(vec![1, 0], Some(0), value), (vec![2, 0], None, value)],
    };
    store
        .append(TENANT, plain(0, 10).profile())
        .await
        .expect("appends");
    store
        .append("other", plain(1, 7).profile())
        .await
        .expect("appends");
    store.flush().await.expect("flushes");
    store
        .append(TENANT, plain(0, 100).profile())
        .await
        .expect("appends");
    store
        .append("other", plain(2, 70).profile())
        .await
        .expect("appends");
    store
}

async fn csv(sql: &SqlEngine, question: &str) -> String {
    let answer = sql.query(TENANT, question).await.expect(question);
    String::from_utf8(answer.to_csv().expect("CSV")).expect("text")
}

async fn refusal(sql: &SqlEngine, question: &str) -> SqlError {
    let answer = sql.query(TENANT, question).await;
    answer.expect_err(question)
}

#[tokio::test]
async fn another_tenants_profiles_are_not_there() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let sql = SqlEngine::new(store(directory.path()).await, common::limits());
    let sums =
        "SELECT service_name, sum(value) AS sum, count(*) AS n FROM samples GROUP BY 1 ORDER BY 1";
    assert_eq!(csv(&sql, sums).await, "service_name,sum,n\napi,220,4\n");
    let blocks = "SELECT count(DISTINCT block_id) FROM profiles";
    assert!(
        csv(&sql, blocks).await.ends_with("\n2\n"),
        "a block and a head"
    );
    for table in ["profiles", "label_sets", "stack_nodes", "locations"] {
        let own = csv(&sql, &format!("SELECT * FROM {table}")).await;
        // Words: hexadecimal numbers may have the letters of a name in them.
        let mut words = own.split(|character: char| !character.is_alphanumeric());
        assert!(
            !words.any(|word| ["db", "web"].contains(&word)),
            "{table}: {own}"
        );
    }
    let nobody = sql.query("nobody", "SELECT count(*) FROM samples").await;
    assert_eq!(
        common::rows(&nobody.expect("no tables are empty ones"))[0][0],
        0
    );
    // No name of a place leads to the other tenant's files.
    for elsewhere in [
        "other.samples",
        "'other/samples.parquet'",
        "candela.other.samples",
    ] {
        let error = refusal(&sql, &format!("SELECT * FROM {elsewhere}")).await;
        assert!(matches!(error, SqlError::Bad(_)), "{error}");
    }
}

#[tokio::test]
async fn nothing_is_changed_and_no_file_is_reached() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let sql = SqlEngine::new(store(directory.path()).await, common::limits());
    let outside = tempfile::tempdir().expect("a temporary directory");
    let file = outside.path().join("out.csv");
    let file = file.display();
    let statements = [
        "CREATE TABLE t AS SELECT * FROM samples".to_owned(),
        "CREATE VIEW v AS SELECT 1".to_owned(),
        format!("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{file}'"),
        format!("COPY samples TO '{file}'"),
        format!("COPY (SELECT 1) TO '{file}' STORED AS CSV"),
        "INSERT INTO samples SELECT * FROM samples".to_owned(),
        "DELETE FROM samples".to_owned(),
        "UPDATE samples SET value = 0".to_owned(),
        "DROP TABLE samples".to_owned(),
        "TRUNCATE TABLE samples".to_owned(),
        "SET datafusion.execution.target_partitions = 1000".to_owned(),
        "RESET datafusion.execution.target_partitions".to_owned(),
        "PREPARE p AS SELECT 1".to_owned(),
        "EXPLAIN ANALYZE INSERT INTO samples SELECT * FROM samples".to_owned(),
        "EXPLAIN DROP TABLE samples".to_owned(),
        "BEGIN TRANSACTION".to_owned(),
        "CREATE FUNCTION f(BIGINT) RETURNS BIGINT RETURN $1 + 1".to_owned(),
    ];
    for statement in &statements {
        let error = refusal(&sql, statement).await;
        let is_refused = matches!(error, SqlError::NotReadOnly(_));
        assert!(is_refused, "{statement}: {error:?}");
        assert!(error.to_string().contains("only SELECT"), "{error}");
    }
    let reads = [
        format!("SELECT * FROM '{file}'"),
        "SELECT * FROM 'file:///etc/passwd'".to_owned(),
        "SELECT * FROM read_csv('/etc/passwd')".to_owned(),
        "SELECT * FROM generate_series(1, 10)".to_owned(),
        "SELECT repeat('x', 2000000000)".to_owned(),
        "SELECT 1; SELECT 2".to_owned(),
        String::new(),
        "SELEC 1".to_owned(),
        "SELECT nothing FROM samples".to_owned(),
        "SELECT * FROM nothing".to_owned(),
        "SELECT value + 'x' FROM samples".to_owned(),
    ];
    for read in &reads {
        let error = refusal(&sql, read).await;
        let message = error.to_string();
        assert!(matches!(error, SqlError::Bad(_)), "{read}: {error:?}");
        assert!(!message.contains('\n') && message.len() < 1000, "{message}");
    }
    let mut written = std::fs::read_dir(outside.path()).expect("a folder");
    assert!(written.next().is_none(), "no file was written");
    let left = csv(&sql, "SELECT sum(value) FROM samples").await;
    assert!(left.ends_with("\n220\n"), "{left}");
}

#[tokio::test]
async fn the_tables_can_be_looked_at() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let sql = SqlEngine::new(store(directory.path()).await, common::limits());
    let tables = csv(&sql, "SHOW TABLES").await;
    for table in [
        "samples",
        "profiles",
        "label_sets",
        "stack_nodes",
        "locations",
        "hourly_samples",
    ] {
        assert!(
            tables.contains(&format!("candela,public,{table},BASE TABLE")),
            "{tables}"
        );
    }
    let columns = csv(&sql, "DESCRIBE samples").await;
    assert!(columns.contains("\nstack_id,UInt32,YES\n"), "{columns}");
    let plan = csv(
        &sql,
        "EXPLAIN SELECT sum(value) FROM samples WHERE service_name = 'api'",
    )
    .await;
    assert!(plan.contains("DataSourceExec"), "{plan}");
    let pods = "SELECT labels['pod'] AS pod, sum(total_value) AS total FROM profiles
        JOIN label_sets ON label_sets.block_id = profiles.block_id AND label_set_id = series_id GROUP BY 1";
    assert_eq!(csv(&sql, pods).await, "pod,total\np-1,220\n");
    let threads = "SELECT labels['thread_name'] AS thread, sum(value) AS total FROM samples
        LEFT JOIN label_sets USING (block_id, label_set_id) GROUP BY 1 ORDER BY 1";
    assert_eq!(csv(&sql, threads).await, "thread,total\nworker,110\n,110\n");
}

#[tokio::test]
async fn blocks_that_cannot_match_are_not_opened() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let sql = SqlEngine::new(store(directory.path()).await, common::limits());
    for (condition, is_read) in [
        ("service_name = 'api'", true),
        ("service_name IN ('api', 'x')", true),
        ("service_name = 'aqi'", false),
        ("service_name LIKE 'zz%'", false),
        ("time < to_timestamp(0)", false),
        ("time >= '2024-11-20T23:00:00Z'", true),
        ("profile_type = 'x'", false),
        ("block_id = 'head-0'", false),
    ] {
        let plan = csv(
            &sql,
            &format!("EXPLAIN SELECT value FROM samples WHERE {condition}"),
        )
        .await;
        assert_eq!(plan.contains(".parquet"), is_read, "{condition}: {plan}");
    }
}

#[tokio::test]
async fn limits_are_named() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = store(directory.path()).await;
    let limited = |options| SqlEngine::new(store.clone(), options);
    let few_rows = limited(SqlOptions {
        rows: 3,
        ..common::limits()
    });
    let error = refusal(&few_rows, "SELECT * FROM samples").await;
    assert!(matches!(error, SqlError::Rows { limit: 3 }), "{error}");
    assert!(
        few_rows
            .query(TENANT, "SELECT * FROM samples LIMIT 3")
            .await
            .is_ok()
    );

    let short = limited(SqlOptions {
        text_bytes: 20,
        ..common::limits()
    });
    let error = refusal(&short, "SELECT value FROM samples").await;
    assert!(
        matches!(
            error,
            SqlError::TextTooLong {
                bytes: 25,
                limit: 20
            }
        ),
        "{error}"
    );

    let small = limited(SqlOptions {
        answer_bytes: 100,
        ..common::limits()
    });
    let error = refusal(&small, "SELECT * FROM samples").await;
    assert!(
        matches!(error, SqlError::AnswerBytes { limit: 100 }),
        "{error}"
    );

    let tight = limited(SqlOptions {
        memory_bytes: 1 << 20,
        ..common::limits()
    });
    let error = refusal(&tight, &many_long_texts()).await;
    assert!(matches!(error, SqlError::Memory { .. }), "{error}");
    assert!(error.to_string().contains("server.sql_memory"), "{error}");
    let window = cross_join(11, "sum(a.value) OVER () AS n");
    let error = refusal(&tight, &format!("SELECT max(n) FROM ({window})")).await;
    assert!(matches!(error, SqlError::Memory { .. }), "{error}");
    let head = limited(SqlOptions {
        memory_bytes: 100,
        ..common::limits()
    });
    let error = refusal(&head, "SELECT sum(value) FROM samples").await;
    assert!(error.to_string().contains("not yet in blocks"), "{error}");
}

/// 4^5 different texts of 4000 bytes.
fn many_long_texts() -> String {
    let numbers = cross_join(5, "row_number() OVER () AS n");
    let text = "x".repeat(4000);
    format!("SELECT count(DISTINCT concat('{text}', n)) FROM ({numbers})")
}

/// The samples times themselves, so many times: 4 to that power rows.
fn cross_join(times: usize, what: &str) -> String {
    let aliases = [
        "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n",
    ];
    let tables: Vec<String> = aliases[..times]
        .iter()
        .map(|alias| format!("samples AS {alias}"))
        .collect();
    format!("SELECT {what} FROM {}", tables.join(" CROSS JOIN "))
}

#[tokio::test]
async fn a_query_ends_in_time_and_with_its_client() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let hasty = SqlOptions {
        time: Duration::from_millis(300),
        concurrent: 1,
        ..common::limits()
    };
    let store = store(directory.path()).await;
    let sql = SqlEngine::new(store.clone(), hasty);
    // 4^14 rows would take minutes.
    let endless = cross_join(14, "sum(a.value + b.value)");
    let error = refusal(&sql, &endless).await;
    assert!(matches!(error, SqlError::Time { .. }), "{error}");
    assert!(error.to_string().contains("server.sql_timeout"), "{error}");
    // The one slot is free again: the query has really ended.
    assert!(one_in_time(&sql).await.ends_with("\n1\n"));

    let patient = SqlOptions {
        time: Duration::from_secs(600),
        ..hasty
    };
    let sql = SqlEngine::new(store.clone(), patient);
    let gone = timeout(Duration::from_millis(100), sql.query(TENANT, &endless)).await;
    assert!(gone.is_err(), "the client went away");
    assert!(csv(&sql, "SELECT 1").await.ends_with("\n1\n"));

    let impatient = SqlOptions {
        wait: Duration::from_millis(10),
        ..patient
    };
    let sql = SqlEngine::new(store.clone(), impatient);
    let mut running = pin!(sql.query(TENANT, &endless));
    // The slot is free, so the first look at it takes it, and it is kept while this lives.
    assert!(poll_immediate(&mut running).await.is_none());
    let busy = refusal(&sql, "SELECT 1").await;
    assert!(matches!(busy, SqlError::Busy { running: 1, .. }), "{busy}");
}

/// What `SELECT 1` answers, for which a busy machine may need several tries.
async fn one_in_time(sql: &SqlEngine) -> String {
    let deadline = Instant::now() + common::PATIENCE;
    loop {
        match sql.query(TENANT, "SELECT 1").await {
            Err(SqlError::Time { .. }) if Instant::now() < deadline => {}
            answer => {
                let csv = answer.expect("an answer").to_csv().expect("CSV");
                return String::from_utf8(csv).expect("text");
            }
        }
    }
}

#[tokio::test]
async fn long_expressions_are_answered_or_refused() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let sql = SqlEngine::new(store(directory.path()).await, common::limits());
    let sum = |depth| format!("SELECT {}1 AS n", "1+".repeat(depth));
    assert_eq!(csv(&sql, &sum(100)).await, "n\n101\n");
    // As long as a text may be. No stack overflows, and no thread plans for minutes.
    for deep in [sum(1000), sum(8000), sum(1000).replace('+', " OR ")] {
        let error = refusal(&sql, &deep).await;
        assert!(error.to_string().contains("operators deep"), "{error}");
    }
    for (open, close) in [
        ("(", ")"),
        ("abs(", ")"),
        ("(SELECT ", ")"),
        ("NOT ", ""),
        ("-", ""),
    ] {
        let times = 15_000 / (open.len() + close.len());
        let deep = format!("SELECT {}1{}", open.repeat(times), close.repeat(times));
        // Whether it is too deep or not: the process goes on.
        let _ = sql.query(TENANT, &deep).await;
    }
    assert_eq!(csv(&sql, "SELECT 1 AS n").await, "n\n1\n");
}
