//! The forms of an answer.
#![expect(clippy::expect_used, reason = "a test says what went wrong by failing")]

use crate::common;
use crate::common::Plain;
use crate::common::TENANT;
use candela_sql::SqlEngine;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::ipc::reader::StreamReader;
use serde_json::Value;
use serde_json::json;

async fn engine(directory: &std::path::Path) -> SqlEngine {
    let store = common::open(directory);
    let plain = Plain {
        service: 0,
        profile_type: 0,
        pod: 0,
        step: 0,
        samples: vec![(vec![1, 0], Some(0), 10)],
    };
    store
        .append(TENANT, plain.profile())
        .await
        .expect("appends");
    store.flush().await.expect("flushes");
    store
        .append(TENANT, plain.profile())
        .await
        .expect("appends");
    SqlEngine::new(store, common::limits())
}

const QUESTION: &str = "SELECT service_name, time, value, value / 4.0 AS quarter, trace_id,
    frames, labels, value > 5 AS is_large, 'a,\"b\"' AS odd
    FROM samples JOIN stack_nodes AS n USING (block_id, stack_id)
    JOIN label_sets USING (block_id, label_set_id)";

#[tokio::test]
async fn json_has_types_and_rows() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let sql = engine(directory.path()).await;
    let question = QUESTION.replace("SELECT service_name", "SELECT n.service_name");
    let answer = sql.query(TENANT, &question).await.expect("an answer");
    assert_eq!(answer.row_count(), 2);
    let json: Value = serde_json::from_slice(&answer.to_json().expect("JSON")).expect("JSON");
    assert_eq!(json["schema"], "candela/sql/v1");
    assert_eq!(json["partial"], false);
    let types = json["columns"].as_array().expect("columns").iter();
    let types: Vec<&str> = types.filter_map(|column| column["type"].as_str()).collect();
    assert_eq!(
        types[..4],
        ["Utf8", "Timestamp(ns, \"UTC\")", "Int64", "Float64"]
    );
    assert_eq!(json["columns"][2]["name"], "value");
    let row = json!([
        "api",
        "2024-11-20T23:00:00Z",
        10,
        2.5,
        null,
        ["function_0", "function_1"],
        {"thread_name": "worker"},
        true,
        "a,\"b\""
    ]);
    assert_eq!(common::rows(&answer).len(), 2);
    assert_eq!(
        json["rows"],
        json!([row, row]),
        "of the block and of the head"
    );
}

#[tokio::test]
async fn csv_quotes_what_needs_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let sql = engine(directory.path()).await;
    let question = QUESTION.replace("SELECT service_name", "SELECT n.service_name");
    let answer = sql
        .query(TENANT, &format!("{question} LIMIT 1"))
        .await
        .expect("an answer");
    let text = String::from_utf8(answer.to_csv().expect("CSV")).expect("text");
    let expected = "service_name,time,value,quarter,trace_id,frames,labels,is_large,odd\n\
        api,2024-11-20T23:00:00Z,10,2.5,,\"[\"\"function_0\"\",\"\"function_1\"\"]\",\
        \"{\"\"thread_name\"\":\"\"worker\"\"}\",true,\"a,\"\"b\"\"\"\n";
    assert_eq!(text, expected);
    let none = sql
        .query(TENANT, "SELECT value FROM samples WHERE value > 99")
        .await;
    let none = none.expect("an answer");
    assert_eq!(none.to_csv().expect("CSV"), b"value\n");
    assert!(String::from_utf8_lossy(&none.to_json().expect("JSON")).ends_with(",\"rows\":[]}"));
}

#[tokio::test]
async fn arrow_readers_get_plain_texts() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let sql = engine(directory.path()).await;
    let answer = sql
        .query(TENANT, "SELECT service_name, value FROM samples")
        .await;
    let stream = answer
        .expect("an answer")
        .to_arrow_stream()
        .expect("a stream");
    let reader = StreamReader::try_new(stream.as_slice(), None).expect("a stream");
    assert_eq!(reader.schema().field(0).data_type(), &DataType::Utf8);
    let rows: usize = reader.map(|batch| batch.expect("a batch").num_rows()).sum();
    assert_eq!(rows, 2);
}
