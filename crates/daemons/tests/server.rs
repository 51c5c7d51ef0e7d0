//! The client of the server, against one that speaks as the server does.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use crate::support;
use axum::Json;
use axum::Router;
use axum::body::Body;
use axum::extract::Query;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::StatusCode;
use axum::routing::get;
use axum::routing::post;
use candela_daemons::DaemonReport;
use candela_daemons::DaemonState;
use candela_daemons::DocumentSource;
use candela_daemons::FleetReports;
use candela_daemons::FleetStream;
use candela_daemons::NodeReport;
use candela_daemons::ReportSink;
use candela_daemons::ServerError;
use candela_daemons::ServerOptions;
use candela_daemons::SnapshotReport;
use candela_daemons::SnapshotStatus;
use candela_daemons::SourceEvent;
use candela_daemons::Stop;
use serde_json::Value;
use serde_json::json;

#[derive(Clone, Default)]
struct Seen {
    streams: Arc<Mutex<Vec<String>>>,
    reports: Arc<Mutex<Vec<Value>>>,
}

/// A server whose stream says these lines, in pieces that end anywhere, and then ends.
fn serve(lines: &'static str, seen: &Seen) -> String {
    let (told, address) = std::sync::mpsc::channel();
    let seen = seen.clone();
    std::thread::spawn(move || {
        let stream = move |State(seen): State<Seen>,
                           Query(query): Query<Vec<(String, String)>>,
                           headers: HeaderMap| async move {
            let authorization = headers.get("authorization");
            let authorization = authorization
                .and_then(|it| it.to_str().ok())
                .unwrap_or("nobody");
            let instance = headers.get("x-candela-instance");
            let asked = format!("{authorization} {query:?} {instance:?}");
            seen.streams.lock().expect("no panic").push(asked);
            let pieces = lines.as_bytes().chunks(7).map(Ok::<_, Infallible>);
            Body::from_stream(tokio_stream::iter(pieces))
        };
        let report = |State(seen): State<Seen>, Json(report): Json<Value>| async move {
            let answer = match report["node"].as_str() {
                Some("stranger") => (StatusCode::FORBIDDEN, "no such\nnode"),
                Some("namesake") => (
                    StatusCode::CONFLICT,
                    r#"{"hint":"give each its own","code":"name_taken","message":"another is called \"namesake\""}"#,
                ),
                _ => (StatusCode::OK, ""),
            };
            seen.reports.lock().expect("no panic").push(report);
            answer
        };
        support::block_on(async move {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
                .await
                .expect("a port");
            told.send(listener.local_addr().expect("an address"))
                .expect("the test waits");
            let routes = Router::new()
                .route("/api/v1/fleet/stream", get(stream))
                .route("/api/v1/fleet/report", post(report))
                .with_state(seen);
            axum::serve(listener, routes).await.expect("it serves");
        });
    });
    format!("http://{}/", address.recv().expect("it starts"))
}

fn options(url: &str) -> ServerOptions {
    ServerOptions {
        url: url.to_owned(),
        authorization: Some("Bearer hunter2".to_owned()),
        tenant: None,
        node: "node 1".to_owned(),
        daemon: None,
        instance: Some("7.of-this-boot".to_owned()),
    }
}

#[test]
fn documents_and_wishes_come_in_their_order() {
    let seen = Seen::default();
    let lines = concat!(
        r#"{"kind":"document","version":3,"document":{"suspended":true}}"#,
        "\n",
        r#"{"kind":"keep_alive"}"#,
        "\n",
        r#"{"kind":"of a newer server","version":"x"}"#,
        "\n",
        r#"{"kind":"document","version":4,"document":{"what":1}}"#,
        "\n",
        r#"{"kind":"document","version":5,"document":{"observability_daemons":[{"perf_collector":{"export_to":"s3://bucket"}},{"perf_collector":{"export_to":"s3://bucket"}}]}}"#,
        "\n",
        r#"{"kind":"snapshot","id":"7","trigger_name":"moment"}"#,
        "\n",
        r#"{"kind":"snapshot","id":"8""#,
    );
    // A newer server's fields may have other types: that line is refused, and those behind it are not.
    let url = serve(lines, &seen);
    let stream = FleetStream::new(&options(&url)).expect("an address");
    let mut stream = stream.with_long_enough(Duration::MAX);
    let stop = Stop::default();
    let Ok(SourceEvent::Document { version, document }) = stream.next(&stop) else {
        panic!("no document");
    };
    assert_eq!((version, document.is_suspended()), (3, true));
    let error = stream.next(&stop).expect_err("a version that is no number");
    assert!(matches!(error, ServerError::Line { .. }), "{error}");
    let error = stream
        .next(&stop)
        .expect_err("no document of ours")
        .to_string();
    assert!(
        error.contains("document 4: what: ") && !error.contains('\n'),
        "{error}"
    );
    // An earlier server has accepted what is refused today.
    let Ok(SourceEvent::Document { version, document }) = stream.next(&stop) else {
        panic!("no document");
    };
    assert_eq!((version, document.daemons().len()), (5, 2));
    let wish = SourceEvent::Snapshot {
        id: "7".to_owned(),
        trigger_name: "moment".to_owned(),
    };
    assert_eq!(stream.next(&stop), Ok(wish));
    let error = stream.next(&stop).expect_err("half a line");
    assert!(matches!(error, ServerError::Away { .. }), "{error}");
    // It asks again, and hears the document again.
    assert!(matches!(
        stream.next(&stop),
        Ok(SourceEvent::Document { version: 3, .. })
    ));
    let asked = seen.streams.lock().expect("no panic").clone();
    let expected = r#"Bearer hunter2 [("node", "node 1")] Some("7.of-this-boot")"#;
    assert_eq!(asked, [expected; 2]);
    assert!(!format!("{stream:?}").contains("hunter2"));
}

#[test]
fn a_stream_that_was_long_is_followed_by_another_at_once() {
    let seen = Seen::default();
    let line = concat!(r#"{"kind":"document","version":3,"document":{}}"#, "\n");
    let url = serve(line, &seen);
    let stream = FleetStream::new(&options(&url)).expect("an address");
    let mut stream = stream.with_long_enough(Duration::ZERO);
    for _ in 0..2 {
        let heard = stream.next(&Stop::default());
        let is_document = matches!(heard, Ok(SourceEvent::Document { version: 3, .. }));
        assert!(is_document, "{heard:?}");
    }
    assert_eq!(seen.streams.lock().expect("no panic").len(), 2);
}

#[test]
fn reports_have_the_servers_form() {
    let seen = Seen::default();
    let url = serve("", &seen);
    let mut reports = FleetReports::new(&options(&url)).expect("an address");
    let mut report = NodeReport {
        node: "node 1".to_owned(),
        pod: None,
        daemon: None,
        version: 3,
        daemons: vec![DaemonReport {
            id: "perf-collector-1".to_owned(),
            revision: "00ff".to_owned(),
            state: DaemonState::BackingOff,
            last_error: Some("no".to_owned()),
            uploaded: 1,
            retained: 2,
            dropped: 3,
            stored: 5,
            not_stored: 6,
            notes: vec!["a note".to_owned()],
            since: 4,
        }],
        snapshots: vec![SnapshotReport {
            id: "7".to_owned(),
            status: SnapshotStatus::Ok,
            object_key: Some("a/b".to_owned()),
            error: None,
        }],
    };
    reports.report(&report).expect("taken");
    let expected = json!({
        "node": "node 1", "version": 3,
        "daemons": [{"id": "perf-collector-1", "revision": "00ff", "state": "backing_off", "last_error": "no",
            "uploaded": 1, "retained": 2, "dropped": 3, "stored": 5, "not_stored": 6, "notes": ["a note"], "since": 4}],
        "snapshots": [{"id": "7", "status": "ok", "object_key": "a/b"}],
    });
    assert_eq!(*seen.reports.lock().expect("no panic"), [expected]);
    report.node = "stranger".to_owned();
    let error = reports.report(&report).expect_err("refused").to_string();
    assert!(error.contains("answers 403: no such node"), "{error}");
    report.node = "namesake".to_owned();
    let error = reports.report(&report).expect_err("refused");
    let ServerError::NameTaken { reason, .. } = error else {
        panic!("{error}");
    };
    let expected = r#"another is called "namesake"; give each its own"#;
    assert_eq!(reason, expected);
}

#[test]
fn servers_that_are_away_are_named() {
    let url = support::NOBODY;
    let mut stream = FleetStream::new(&options(url)).expect("an address");
    let error = stream
        .next(&Stop::default())
        .expect_err("nobody is there")
        .to_string();
    assert!(
        error.starts_with(&format!("{url}/api/v1/fleet/stream does not answer: ")),
        "{error}"
    );
    for wrong in ["", "server:4040", "https://"] {
        let error = FleetStream::new(&options(wrong)).expect_err(wrong);
        assert!(matches!(error, ServerError::Address { .. }), "{error}");
    }
}
