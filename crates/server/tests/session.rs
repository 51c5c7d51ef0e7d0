//! Signing in from a browser: the cookie, whom it stands for, and what it cannot do.

use std::sync::Arc;

use candela_server::Account;
use candela_server::AuthOptions;
use candela_server::Right;
use candela_server::Rights;
use candela_server::ServerOptions;
use candela_server::TenantName;
use candela_store::ManualClock;
use serde_json::Value;
use serde_json::json;

use crate::support;
use crate::support::Answer;
use crate::support::TestServer;
use crate::support::request;

const SESSION: &str = "/api/v1/session";
const SECOND_NS: i64 = 1_000_000_000;
const WINDOW: (&str, &str) = ("X-Candela-Window", "1");

fn account(name: &str, secret: &str, right: Right) -> Account {
    Account::new(name, secret, Rights::NONE.with(right)).expect("an account")
}

fn accounts() -> AuthOptions {
    AuthOptions {
        tokens: vec![account("ci", "token-ci", Right::Write)],
        users: vec![
            account("ann", "pass:word", Right::Read),
            account("root", "toor", Right::Admin),
        ],
        ..AuthOptions::default()
    }
}

fn start_at(clock: Arc<ManualClock>) -> TestServer {
    TestServer::start_with(ServerOptions {
        auth: accounts(),
        http_prefixes: vec!["/profiling".to_owned()],
        clock,
        ..support::options()
    })
}

fn start() -> TestServer {
    start_at(Arc::new(ManualClock::at(support::NOW_NS)))
}

fn sign_in(server: &TestServer, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
    let body = body.to_string();
    request(server.address, "POST", path, headers, body.as_bytes())
}

fn ann() -> Value {
    json!({"user": "ann", "password": "pass:word"})
}

/// The cookie as a browser sends it back.
fn cookie(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let set = answer.header("set-cookie").expect("a cookie");
    set.split(';').next().expect("name and value").to_owned()
}

fn signed_in(server: &TestServer, body: &Value) -> String {
    cookie(&sign_in(server, SESSION, &[], body))
}

#[test]
fn the_cookie_is_no_secret_of_the_configuration_and_no_script_reads_it() {
    let server = start();
    let answer = sign_in(&server, SESSION, &[], &ann());
    let set = answer.header("set-cookie").expect("a cookie");
    let parts: Vec<&str> = set.split("; ").collect();
    assert_eq!(
        parts[1..],
        ["Path=/", "Max-Age=604800", "HttpOnly", "SameSite=Strict"]
    );
    assert!(parts[0].starts_with("candela_session=") && parts[0].len() > 50);
    assert!(!set.contains("word"), "{set}");
    let who = answer.json();
    assert_eq!(
        (&who["name"], &who["rights"], &who["can_sign_out"]),
        (&json!("ann"), &json!(["read"]), &json!(true))
    );
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_ne!(cookie(&answer), signed_in(&server, &ann()), "each is new");

    let over_tls = [("Host", "localhost"), ("Origin", "https://localhost")];
    let set = sign_in(&server, SESSION, &over_tls, &ann());
    let set = set.header("set-cookie").expect("a cookie").to_owned();
    assert!(set.ends_with("; Secure"), "{set}");
    let under_prefix = sign_in(&server, "/profiling/api/v1/session", &[], &ann());
    let set = under_prefix.header("set-cookie").expect("a cookie");
    assert!(set.contains("; Path=/profiling/;"), "{set}");
}

#[test]
fn a_session_is_who_signed_in_and_no_more() {
    let server = start();
    let ask = |method: &str, path: &str, headers: &[(&str, &str)]| {
        request(server.address, method, path, headers, b"{\"text\":\"x\"}").status
    };
    let notes = "/api/v1/annotations";
    let reader = signed_in(&server, &ann());
    let reader = [("Cookie", reader.as_str()), WINDOW];
    assert_eq!(ask("GET", "/api/v1/labels", &reader), 200);
    assert_eq!(ask("GET", "/profiling/api/v1/labels", &reader), 200);
    assert_eq!(ask("POST", notes, &reader), 403, "ann only reads");
    let token = signed_in(&server, &json!({"token": "token-ci"}));
    let token = [("Cookie", token.as_str()), WINDOW];
    assert_eq!(ask("POST", notes, &token), 200);
    assert_eq!(ask("GET", "/api/v1/labels", &token), 403, "ci only writes");
    // A token is the password of its name.
    signed_in(&server, &json!({"user": "ci", "password": "token-ci"}));

    // What programs send wins over what a browser has.
    let basic = [token[0], ("Authorization", "Bearer wrong")];
    assert_eq!(ask("GET", "/api/v1/labels", &basic), 401);
    for wrong in [
        "candela_session=",
        "candela_session=x",
        "candela_session=token-ci",
        "ci",
    ] {
        assert_eq!(
            ask("GET", "/api/v1/labels", &[("Cookie", wrong)]),
            401,
            "{wrong}"
        );
    }
}

#[test]
fn pages_of_others_change_nothing_with_it() {
    let server = start();
    let root = signed_in(&server, &json!({"user": "root", "password": "toor"}));
    let root = ("Cookie", root.as_str());
    let post = |headers: &[(&str, &str)]| {
        let answer = request(
            server.address,
            "POST",
            "/api/v1/annotations",
            headers,
            b"{\"text\":\"x\"}",
        );
        (answer.status, answer.json()["code"].clone())
    };
    let refused = |code: &str| (403, json!(code));
    assert_eq!(
        post(&[root]),
        refused("not_the_window"),
        "a form of a page has no such header"
    );
    for foreign in [
        ("Origin", "http://evil.example"),
        ("Origin", "null"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
    ] {
        assert_eq!(
            post(&[root, WINDOW, foreign]),
            refused("foreign_origin"),
            "{foreign:?}"
        );
        // Nor is anybody signed in, as somebody else, or out.
        for method in ["POST", "DELETE"] {
            let body = ann().to_string();
            let answer = request(
                server.address,
                method,
                SESSION,
                &[root, foreign],
                body.as_bytes(),
            );
            assert_eq!(answer.status, 403, "{method} {foreign:?}");
            assert_eq!(answer.header("set-cookie"), None);
        }
    }
    assert_eq!(post(&[root, WINDOW]).0, 200);
    // No page of another origin is told that it may send the header.
    let asked = [
        root,
        ("Origin", "http://evil.example"),
        ("Access-Control-Request-Headers", "x-candela-window"),
    ];
    let preflight = request(
        server.address,
        "OPTIONS",
        "/api/v1/annotations",
        &asked,
        b"",
    );
    assert_eq!(preflight.header("access-control-allow-origin"), None);
}

#[test]
fn wrong_ones_are_told_so_and_too_many_have_to_wait() {
    let clock = Arc::new(ManualClock::at(support::NOW_NS));
    let server = start_at(Arc::clone(&clock));
    let wrong = json!({"user": "ann", "password": "guess"});
    let ask = |body: &Value| sign_in(&server, SESSION, &[], body);
    for guess in 0..10 {
        let answer = ask(&wrong);
        assert_eq!(answer.status, 401, "{guess}");
        assert_eq!(answer.json()["code"], "unauthenticated");
        assert_eq!(answer.header("set-cookie"), None);
        assert_eq!(
            answer.header("www-authenticate"),
            None,
            "no dialog over the form"
        );
    }
    let full = ask(&ann());
    assert_eq!(
        (full.status, &full.json()["code"]),
        (429, &json!("too_many_guesses"))
    );
    assert_eq!(full.header("retry-after"), Some("60"));
    // Others are not kept out, nor is ann's program.
    signed_in(&server, &json!({"token": "token-ci"}));
    assert_eq!(ask(&json!({"token": "wrong"})).status, 401);
    clock.advance(61 * SECOND_NS);
    signed_in(&server, &ann());

    for body in [
        json!({}),
        json!({"user": "ann"}),
        json!({"token": "a", "user": "ann", "password": "b"}),
        json!({"token": 7}),
        json!({"token": "a", "remember": true}),
        json!({"token": "a", "tenant": "../x"}),
    ] {
        assert_eq!(ask(&body).status, 400, "{body}");
    }
}

#[test]
fn who_signs_out_is_out() {
    let clock = Arc::new(ManualClock::at(support::NOW_NS));
    let server = start_at(Arc::clone(&clock));
    let who =
        |cookie: &str| request(server.address, "GET", SESSION, &[("Cookie", cookie)], b"").json();
    let nobody = who("");
    assert_eq!(
        (&nobody["name"], &nobody["is_open"], &nobody["has_users"]),
        (&json!(null), &json!(false), &json!(true))
    );
    let cookie = signed_in(&server, &ann());
    assert_eq!(who(&cookie)["name"], "ann");
    let headers = [("Cookie", cookie.as_str()), WINDOW];
    let out = request(server.address, "DELETE", SESSION, &headers, b"");
    assert_eq!(
        (out.status, &out.json()["was_signed_in"]),
        (200, &json!(true))
    );
    let set = out.header("set-cookie").expect("a cookie");
    assert!(
        set.starts_with("candela_session=; Path=/; Max-Age=0;"),
        "{set}"
    );
    assert_eq!(who(&cookie)["name"], json!(null));

    // Signing in again ends the session before, and time ends every one.
    let first = signed_in(&server, &ann());
    let second = sign_in(&server, SESSION, &[("Cookie", first.as_str())], &ann());
    let second = self::cookie(&second);
    assert_eq!(who(&first)["name"], json!(null));
    assert_eq!(who(&second)["name"], "ann");
    clock.advance(12 * 3600 * SECOND_NS);
    let late = request(
        server.address,
        "GET",
        "/api/v1/labels",
        &[("Cookie", &second), WINDOW],
        b"",
    );
    assert_eq!(late.status, 401);
    let asked = late
        .headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("www-authenticate"));
    let asked: Vec<&str> = asked.map(|(_, value)| value.as_str()).collect();
    assert_eq!(
        asked,
        ["Bearer realm=\"candela\""],
        "the window has its own form"
    );
}

#[test]
fn a_tenant_is_chosen_with_the_sign_in() {
    let mut auth = accounts();
    auth.multi_tenancy = true;
    let team = TenantName::new("team").expect("a name");
    auth.users = vec![
        auth.users.remove(0).of_tenant(team),
        account("free", "secret", Right::Read),
    ];
    let server = TestServer::start_with(ServerOptions {
        auth,
        ..support::options()
    });
    let ask = |body: &Value| sign_in(&server, SESSION, &[], body);
    assert_eq!(ask(&ann()).json()["tenants"], json!(["team"]));
    let foreign = ask(&json!({"user": "ann", "password": "pass:word", "tenant": "other"}));
    assert_eq!(
        (foreign.status, &foreign.json()["code"]),
        (403, &json!("foreign_tenant"))
    );
    let free = |tenant: &str| ask(&json!({"user": "free", "password": "secret", "tenant": tenant}));
    let unnamed = free("");
    assert_eq!(
        (unnamed.status, &unnamed.json()["code"]),
        (401, &json!("no_tenant"))
    );
    let chosen = free("blue");
    assert_eq!(chosen.json()["tenants"], json!(["blue"]));
    let cookie = cookie(&chosen);
    let headers = [("Cookie", cookie.as_str())];
    let answer = request(server.address, "GET", "/api/v1/labels", &headers, b"");
    assert_eq!(answer.status, 200, "{}", answer.text());
}
