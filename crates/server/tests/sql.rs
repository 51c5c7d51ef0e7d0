//! `POST /api/v1/sql`: what it answers, and what it says in builds without SQL.

use crate::support::TestServer;

#[cfg(not(feature = "sql"))]
#[test]
fn a_build_without_sql_says_so() {
    let server = TestServer::with_demo_profile();
    for path in ["/api/v1/sql", "/api/v1/sql?format=csv"] {
        let answer = server.post(path, b"SELECT 1");
        assert_eq!(answer.status, 501, "{}", answer.text());
        let error = answer.json();
        assert_eq!(error["code"], "no_sql");
        let message = error["message"].as_str().expect("text");
        assert!(message.contains("this build has no SQL"), "{message}");
        let hint = error["hint"].as_str().expect("text");
        assert!(hint.contains("--features full"), "{hint}");
    }
}

#[cfg(feature = "sql")]
mod with_sql {
    use std::time::Duration;

    use candela_server::ServerOptions;
    use candela_server::SqlLimits;
    use serde_json::json;

    use super::TestServer;
    use crate::support;

    const HOT: &str = "SELECT function_name, sum(value) AS own FROM samples
        JOIN stack_nodes USING (block_id, stack_id) JOIN locations USING (block_id, location_id)
        GROUP BY function_name ORDER BY own DESC";

    fn post(server: &TestServer, accept: &str, body: &str) -> support::Answer {
        let headers = [("Accept", accept)];
        support::request(
            server.address,
            "POST",
            "/api/v1/sql",
            &headers,
            body.as_bytes(),
        )
    }

    #[test]
    fn the_three_forms_have_the_same_rows() {
        let server = TestServer::with_demo_profile();
        let own = json!([["burn", 70], ["sleep", 30]]);
        for flushed in [false, true] {
            if flushed {
                let flush = server.store.flush();
                server.runtime.block_on(flush).expect("flushes");
            }
            let answer = server.post("/api/v1/sql", HOT.as_bytes());
            assert_eq!(answer.status, 200, "{}", answer.text());
            assert_eq!(answer.header("content-type"), Some("application/json"));
            assert_eq!(answer.header("cache-control"), Some("no-store"));
            let body = answer.json();
            assert_eq!(body["schema"], "candela/sql/v1");
            assert_eq!(body["columns"][1], json!({"name": "own", "type": "Int64"}));
            assert_eq!(body["rows"], own, "flushed: {flushed}");
        }
        let body = json!({"query": HOT}).to_string();
        assert_eq!(
            server.post("/api/v1/sql", body.as_bytes()).json()["rows"],
            own
        );

        let csv = post(&server, "text/csv", HOT);
        assert_eq!(csv.header("content-type"), Some("text/csv"));
        assert_eq!(csv.text(), "function_name,own\nburn,70\nsleep,30\n");
        let csv = server.post("/api/v1/sql?format=csv", HOT.as_bytes());
        assert_eq!(csv.text(), "function_name,own\nburn,70\nsleep,30\n");

        let arrow = post(&server, "application/vnd.apache.arrow.stream", HOT);
        assert_eq!(
            arrow.header("content-type"),
            Some("application/vnd.apache.arrow.stream")
        );
        let bytes = &arrow.body;
        assert_eq!(bytes[..4], [0xff; 4], "a message of an Arrow stream");
        assert!(arrow.text().contains("burn") && arrow.text().contains("sleep"));

        let top = server.json("/api/v1/top");
        assert_eq!(
            top["functions"][0]["self"], 70,
            "what the native engine says"
        );
    }

    #[test]
    fn the_documented_example_is_a_real_answer() {
        let server = TestServer::with_demo_profile();
        let path = support::root().join("docs/api.md");
        let text = std::fs::read_to_string(path).expect("the document");
        let (_, section) = text
            .split_once("\n## POST /api/v1/sql\n")
            .expect("its section");
        let block = |language: &str| {
            let (_, rest) = section
                .split_once(&format!("\n```{language}\n"))
                .expect("a block");
            rest.split_once("\n```").expect("its end").0.to_owned()
        };
        let answer = server.post("/api/v1/sql", block("sql").as_bytes());
        let example: serde_json::Value = serde_json::from_str(&block("json")).expect("JSON");
        assert_eq!(answer.json(), example);
    }

    #[test]
    fn errors_say_what_to_do() {
        let server = TestServer::with_demo_profile();
        let cases: [(&[u8], u16, &str, &str); 8] = [
            (b"SELECT nothing FROM samples", 400, "bad_sql", "nothing"),
            (b"SELEC 1", 400, "bad_sql", "SELEC"),
            (b"", 400, "bad_sql", "No SQL statements"),
            (b"{\"sql\": 1}", 400, "bad_json", "query"),
            (b"\xff\xfe", 400, "bad_sql", "UTF-8"),
            (
                b"DROP TABLE samples",
                400,
                "read_only",
                "DROP is not allowed",
            ),
            (&[b' '; 20_000], 413, "too_large", "20000 bytes"),
            (&[b' '; 70_000], 413, "too_large", "65536 bytes"),
        ];
        for (body, status, code, part) in cases {
            let answer = server.post("/api/v1/sql", body);
            let error = answer.json();
            assert_eq!(answer.status, status, "{error}");
            assert_eq!(error["code"], code, "{error}");
            let message = error["message"].as_str().expect("text");
            assert!(message.contains(part), "{error}");
        }
        assert_eq!(
            server.post("/api/v1/sql?format=xml", b"SELECT 1").status,
            400
        );
        assert_eq!(server.get("/api/v1/sql").status, 405);
        let foreign = [("Origin", "http://example.org")];
        let answer = support::request(server.address, "POST", "/api/v1/sql", &foreign, b"SELECT 1");
        assert_eq!(answer.status, 403);
    }

    #[test]
    fn limits_are_those_of_the_options() {
        let many = "samples AS a CROSS JOIN samples AS b CROSS JOIN samples AS c
            CROSS JOIN samples AS d CROSS JOIN samples AS e CROSS JOIN samples AS f";
        let endless = format!(
            "WITH m AS (SELECT a.value FROM {many})
             SELECT sum(m.value + n.value + o.value + p.value) FROM m, m AS n, m AS o, m AS p"
        );
        let long_texts = format!(
            "SELECT count(DISTINCT concat('{}', n)) FROM (SELECT row_number() OVER () AS n
             FROM {many} CROSS JOIN samples AS g CROSS JOIN samples AS h
             CROSS JOIN samples AS i CROSS JOIN samples AS j)",
            "x".repeat(4000)
        );
        // Another limit may strike late on a busy machine, and must be the first all the same.
        let usual = SqlLimits {
            timeout: Duration::from_secs(600),
            ..SqlLimits::default()
        };
        let rows = SqlLimits { rows: 1, ..usual };
        let memory = SqlLimits {
            memory: 1 << 20,
            ..usual
        };
        let timeout = SqlLimits {
            timeout: Duration::from_millis(200),
            ..usual
        };
        refused(rows, "SELECT * FROM samples", "server.sql_rows");
        refused(memory, &long_texts, "server.sql_memory");
        refused(timeout, &endless, "server.sql_timeout");
    }

    fn refused(sql: SqlLimits, question: &str, limit: &str) {
        let server = TestServer::start_with(ServerOptions {
            sql,
            ..support::options()
        });
        let profile = support::pprof_bytes(&support::demo_profile());
        let stored = server.post("/api/v1/ingest?service=checkout", &profile);
        assert_eq!(stored.status, 200, "{}", stored.text());
        let answer = server.post("/api/v1/sql", question.as_bytes());
        let error = answer.json();
        assert_eq!(answer.status, 422, "{error}");
        assert_eq!(error["code"], "over_budget", "{error}");
        let message = error["message"].as_str().expect("text");
        assert!(message.contains(limit), "{error}");
    }

    #[test]
    fn a_damaged_block_is_told() {
        let server = TestServer::with_demo_profile();
        let flush = server.store.flush();
        server.runtime.block_on(flush).expect("flushes");
        // The native engine finds out, and from then on both leave the block out.
        let folder = server.data_dir.path().join("blocks/v1/samples");
        damage(&folder);
        let _ = server.json("/api/v1/top");
        let body = server
            .post("/api/v1/sql", b"SELECT count(*) FROM samples")
            .json();
        assert_eq!(body["partial"], true, "{body}");
        let reason = body["partial_reason"].as_str().expect("text");
        assert!(reason.contains("cannot be read"), "{reason}");
        assert_eq!(body["rows"], json!([[0]]));
    }

    #[test]
    fn sql_itself_finds_a_flipped_byte() {
        let server = TestServer::with_demo_profile();
        let flush = || {
            let flush = server.store.flush();
            server.runtime.block_on(flush).expect("flushes");
        };
        flush();
        damage(&server.data_dir.path().join("blocks/v1/samples"));
        // Another block, which stays as it is.
        let mut profile = support::demo_profile();
        profile.series[0].start_ns += 1;
        let stored = server.post(
            "/api/v1/ingest?service=checkout",
            &support::pprof_bytes(&profile),
        );
        assert_eq!(stored.status, 200, "{}", stored.text());
        flush();
        // The second one finds the block gone already.
        for _ in 0..2 {
            let answer = server.post("/api/v1/sql", HOT.as_bytes());
            assert_eq!(answer.status, 200, "{}", answer.text());
            let body = answer.json();
            assert_eq!(body["rows"], json!([["burn", 70], ["sleep", 30]]));
            assert_eq!(body["partial"], true, "{body}");
            let reason = body["partial_reason"].as_str().expect("text");
            assert!(reason.contains("1 blocks cannot be read"), "{reason}");
            let header = answer.header("x-candela-partial").expect("the header");
            assert_eq!(header, reason);
        }
        for form in ["csv", "arrow"] {
            let answer = server.post(&format!("/api/v1/sql?format={form}"), HOT.as_bytes());
            let header = answer.header("x-candela-partial");
            assert!(header.is_some_and(|reason| reason.contains("cannot be read")));
        }
        let arrow = server.post("/api/v1/sql?format=arrow", HOT.as_bytes());
        assert!(arrow.text().contains("candela.partial_reason"));
        for form in ["folded", "svg", "json", "columns"] {
            let answer = server.get(&format!("/api/v1/flamegraph?format={form}"));
            assert_eq!(answer.status, 200, "{}", answer.text());
            let header = answer.header("x-candela-partial");
            assert!(
                header.is_some_and(|reason| reason.contains("cannot be read")),
                "{form}"
            );
            if form == "svg" {
                assert!(answer.text().contains("only a part"), "{}", answer.text());
            }
        }
    }

    fn damage(folder: &std::path::Path) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                damage(&path);
                continue;
            }
            let mut bytes = std::fs::read(&path).expect("a file");
            let middle = bytes.len() / 3;
            bytes[middle] ^= 0xff;
            std::fs::write(&path, bytes).expect("written");
        }
    }

    #[test]
    fn what_is_pushed_is_there_at_once() {
        let server = TestServer::start();
        let count = || {
            let body = server
                .post("/api/v1/sql", b"SELECT count(*) FROM profiles")
                .json();
            body["rows"][0][0].as_i64().expect("a number")
        };
        assert_eq!(count(), 0);
        for expected in 1..=3 {
            let mut profile = support::demo_profile();
            profile.series[0].start_ns += expected;
            let body = support::pprof_bytes(&profile);
            let answer = server.post("/api/v1/ingest?service=checkout", &body);
            assert_eq!(answer.status, 200, "{}", answer.text());
            if expected == 2 {
                let flush = server.store.flush();
                server.runtime.block_on(flush).expect("flushes");
            }
            assert_eq!(count(), expected);
        }
    }

    #[test]
    fn a_statement_sees_one_tenant() {
        use candela_server::AuthOptions;

        let server = TestServer::start_with(ServerOptions {
            auth: AuthOptions {
                multi_tenancy: true,
                ..AuthOptions::default()
            },
            ..support::options()
        });
        let ask = |tenant: &str, path: &str, body: &[u8]| {
            let headers = [("X-Scope-OrgID", tenant)];
            support::request(server.address, "POST", path, &headers, body)
        };
        let body = support::pprof_bytes(&support::demo_profile());
        for tenant in ["alpha", "beta"] {
            let path = format!("/api/v1/ingest?service={tenant}");
            assert_eq!(ask(tenant, &path, &body).status, 200);
        }
        let services = b"SELECT DISTINCT service_name FROM profiles";
        for flushed in [false, true] {
            if flushed {
                let flush = server.store.flush();
                server.runtime.block_on(flush).expect("flushes");
            }
            for tenant in ["alpha", "beta"] {
                let answer = ask(tenant, "/api/v1/sql", services);
                assert_eq!(
                    answer.json()["rows"],
                    json!([[tenant]]),
                    "{}",
                    answer.text()
                );
            }
            let nobody = ask("nobody", "/api/v1/sql", services);
            assert_eq!(nobody.json()["rows"], json!([]), "{}", nobody.text());
        }
        let several = ask("alpha|beta", "/api/v1/sql", services);
        assert_eq!(several.status, 400);
        assert_eq!(several.json()["code"], "several_tenants");
    }
}
