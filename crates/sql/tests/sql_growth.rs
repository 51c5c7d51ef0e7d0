//! Short statements that would make much of little are refused before the memory is taken.
#![expect(clippy::expect_used, reason = "a test says what went wrong by failing")]

use crate::common;
use crate::common::Plain;
use crate::common::TENANT;
use candela_sql::SqlEngine;
use candela_sql::SqlError;
use candela_store::Store;

/// A block of two stacks.
async fn engine(directory: &std::path::Path) -> SqlEngine {
    let store: Store = common::open(directory);
    let plain = Plain {
        service: 0,
        profile_type: 0,
        pod: 0,
        step: 0,
        samples: vec![(vec![1, 0], Some(0), 10), (vec![2, 0], None, 10)],
    };
    store
        .append(TENANT, plain.profile())
        .await
        .expect("appends");
    store.flush().await.expect("flushes");
    SqlEngine::new(store, common::limits())
}

async fn csv(sql: &SqlEngine, question: &str) -> String {
    let answer = sql.query(TENANT, question).await.expect(question);
    assert_eq!(common::rows(&answer).len(), 1, "{question}");
    String::from_utf8(answer.to_csv().expect("CSV")).expect("text")
}

/// Questions of questions, each of which computes with what the last one made.
fn chained(times: usize, first: &str, expression: &str, last: &str) -> String {
    let start = format!("WITH q0 AS (SELECT {first} AS x FROM samples)");
    let chain = (0..times).fold(start, |chain, number| {
        let next = number + 1;
        format!("{chain}, q{next} AS (SELECT {expression} AS x FROM q{number})")
    });
    format!("{chain} SELECT {last} FROM q{times}")
}

#[tokio::test]
async fn what_would_make_much_of_little_is_refused() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let sql = engine(directory.path()).await;
    let replace = |from: &str| {
        let many = "a".repeat(100);
        (0..6).fold(from.to_owned(), |text, _| {
            format!("replace({text}, 'a', '{many}')")
        })
    };
    let texts = |times, first, expression| chained(times, first, expression, "length(x)");
    let statements = [
        format!("SELECT length({})", replace("'a'")),
        format!(
            "SELECT length({}) FROM samples",
            replace("lower(service_name)")
        ),
        texts(40, "service_name", "x || x"),
        texts(40, "service_name", "concat(x, x)"),
        texts(40, "service_name", "concat_ws(x, x, x)"),
        texts(40, "service_name", "array_to_string([x, x], x)"),
        texts(40, "'ab'", "x || x"),
        texts(
            12,
            "service_name",
            "regexp_replace(x, '.', 'aaaaaaaaaa', 'g')",
        ),
        chained(30, "[service_name]", "[x, x]", "cardinality(x)"),
    ];
    for statement in &statements {
        let error = sql.query(TENANT, statement).await.expect_err(statement);
        let message = error.to_string();
        let is_refused = matches!(error, SqlError::Memory { .. } | SqlError::Bad(_));
        assert!(is_refused, "{statement}: {error:?}");
        assert!(
            message.contains("results of") || message.contains("of constant"),
            "{statement}: {message}"
        );
    }
}

#[tokio::test]
async fn constants_are_not_copied_without_bound() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let sql = engine(directory.path()).await;
    let columns = (0..12).map(|number| {
        let short = "a".repeat(1000);
        format!("replace('{short}', 'a', 'bbbbbbbbbbbbb{number}') AS x{number}")
    });
    let columns: Vec<String> = columns.collect();
    let statement = format!("SELECT {} FROM samples", columns.join(", "));
    let error = sql.query(TENANT, &statement).await.expect_err("much text");
    assert!(error.to_string().contains("of constant texts"), "{error}");
    let long = "a".repeat(12_000);
    let one = csv(&sql, &format!("SELECT length('{long}') AS n")).await;
    assert_eq!(one, "n\n12000\n");
}

#[tokio::test]
async fn what_makes_lists_and_texts_out_of_the_budget_is_left_out() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let sql = engine(directory.path()).await;
    for statement in [
        "SELECT repeat('x', 2)",
        "SELECT rpad('x', 2)",
        "SELECT string_agg(service_name, ',') FROM samples",
        "SELECT array_agg(value) OVER (ORDER BY value) FROM samples",
        "SELECT array_concat(frames, frames) FROM stack_nodes",
        "SELECT frames || frames FROM stack_nodes",
        "SELECT string_to_array(service_name, NULL) FROM samples",
        "SELECT array_transform(frames, f -> service_name) FROM stack_nodes, samples",
        "SELECT struct(value, value) FROM samples",
        "SELECT {'a': value} FROM samples",
        "SELECT (value, value) FROM samples",
        "SELECT overlay(service_name PLACING 'x' FROM 1) FROM samples",
        "SELECT MAP {'a': value} FROM samples",
        "SELECT regexp_like(service_name, service_name) FROM samples",
        "SELECT service_name ~ service_name FROM samples",
        "SELECT service_name SIMILAR TO service_name FROM samples",
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM stack_nodes WHERE frames || frames IS NULL)",
    ] {
        let error = sql.query(TENANT, statement).await.expect_err(statement);
        assert!(matches!(error, SqlError::Bad(_)), "{statement}: {error:?}");
    }
}

#[tokio::test]
async fn questions_of_profiles_have_their_functions() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let sql = engine(directory.path()).await;
    for (question, expected) in [
        ("service_name || '/' || value", "api/10"),
        ("coalesce(service_name || NULL, 'none')", "none"),
        ("concat(service_name, NULL, '-', value)", "api-10"),
        ("concat_ws('-', service_name, NULL, value)", "api-10"),
        ("replace(service_name, 'p', '..')", "a..i"),
        ("regexp_replace(service_name, '(.)p', '\\1\\1')", "aai"),
        ("regexp_replace(service_name, '[a-z]', 'x', 'g')", "xxx"),
        ("array_to_string([service_name, 'x'], ';')", "api;x"),
        ("to_char(time, '%Y-%m-%d')", "2024-11-20"),
        ("date_trunc('hour', time)", "2024-11-20T23:00:00Z"),
        ("date_bin(INTERVAL '1 hour', time)", "2024-11-20T23:00:00Z"),
        ("extract(year FROM time)", "2024"),
        ("position('p' IN service_name)", "2"),
        ("upper(substr(service_name, 1, 2))", "AP"),
        ("split_part(profile_type, ':', 2)", "cpu"),
        ("regexp_like(service_name, '^a')", "true"),
        ("service_name ~ '^a' AND service_name LIKE 'a%'", "true"),
        ("(regexp_match(service_name, '^(a)'))[1]", "a"),
        ("array_has([1, 2], 2)", "true"),
        ("['x', 'y'][2]", "y"),
        ("greatest(round(value / 3.0, 1), 1.0)", "3.3"),
        ("CASE WHEN value > 5 THEN 'much' ELSE 'little' END", "much"),
    ] {
        let statement = format!("SELECT DISTINCT {question} AS x FROM samples");
        let answer = csv(&sql, &statement).await;
        assert_eq!(answer, format!("x\n{expected}\n"), "{statement}");
    }
    let lists =
        "SELECT array_to_string(array_agg(DISTINCT function_name ORDER BY function_name), ' ') AS x
        FROM locations";
    assert_eq!(
        csv(&sql, lists).await,
        "x\nfunction_0 function_1 function_2\n"
    );
    let frames = "SELECT array_to_string(frames, ';') || ' ' || sum(value) AS x FROM samples
        JOIN stack_nodes USING (block_id, stack_id) WHERE array_has(frames, 'function_1') GROUP BY frames";
    assert_eq!(csv(&sql, frames).await, "x\nfunction_0;function_1 10\n");
}
