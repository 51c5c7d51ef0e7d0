//! Who may ask: every route of the one table, on every port.

use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use candela_server::Account;
use candela_server::AuthOptions;
use candela_server::OtlpListen;
use candela_server::Right;
use candela_server::Rights;
use candela_server::Server;
use candela_server::ServerOptions;

use crate::support;
use crate::support::Answer;
use crate::support::TestServer;
use crate::support::request;

/// A route of the OpenAPI document, which is made from the tables of routes.
#[derive(Clone, Debug)]
struct Route {
    method: String,
    path: String,
    right: String,
    /// Whose clients ask here; empty for our own.
    surface: String,
    /// Under which prefixes: `none`, `configured` or `any`.
    prefix: String,
}

const TOKENS: [(&str, Right); 3] = [
    ("token-read", Right::Read),
    ("token-write", Right::Write),
    ("token-admin", Right::Admin),
];

const GRPC: [&str; 2] = [
    "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
    "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
];

fn account(name: &str, secret: &str, right: Right) -> Account {
    Account::new(name, secret, Rights::NONE.with(right)).expect("an account")
}

fn start() -> TestServer {
    let port = Some(OtlpListen {
        address: "127.0.0.1:0".parse().expect("an address"),
        is_explicit: true,
    });
    let tokens = TOKENS.map(|(token, right)| account(right.name(), token, right));
    TestServer::start_with(ServerOptions {
        auth: AuthOptions {
            tokens: tokens.to_vec(),
            users: vec![account("ann", "pass:word", Right::Read)],
            ..AuthOptions::default()
        },
        http_prefixes: vec!["/profiling".to_owned()],
        otlp_grpc: port,
        otlp_http: port,
        ..support::options()
    })
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

fn routes(server: &TestServer) -> Vec<Route> {
    let token = bearer("token-read");
    let headers = [("Authorization", token.as_str())];
    let path = "/api/v1/openapi.json";
    let document = request(server.address, "GET", path, &headers, b"").json();
    let mut routes = Vec::new();
    for (path, methods) in document["paths"].as_object().expect("an object") {
        for (method, operation) in methods.as_object().expect("an object") {
            let text = |name: &str| operation[name].as_str().unwrap_or_default().to_owned();
            routes.push(Route {
                method: method.to_uppercase(),
                path: filled(path),
                right: text("x-right"),
                surface: text("x-surface"),
                prefix: text("x-prefix"),
            });
        }
    }
    routes
}

/// A path with something in the place of its parameters.
fn filled(path: &str) -> String {
    let parts = path.split('/');
    let parts = parts.map(|part| {
        if part.starts_with('{') {
            "c0ffee"
        } else {
            part
        }
    });
    parts.collect::<Vec<&str>>().join("/")
}

impl Route {
    fn under(&self, prefix: &str) -> Self {
        Self {
            path: format!("{prefix}{}", self.path),
            ..self.clone()
        }
    }
}

fn ask(address: SocketAddr, route: &Route, authorization: Option<&str>) -> Answer {
    let mut headers = Vec::new();
    headers.extend(authorization.map(|value| ("Authorization", value)));
    request(address, &route.method, &route.path, &headers, b"")
}

#[test]
fn every_route_asks_for_its_right() {
    let server = start();
    let all = routes(&server);
    for path in [
        GRPC[0],
        GRPC[1],
        "/push.v1.PusherService/Push",
        "/ingest",
        "/querier.v1.QuerierService/Series",
        "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw",
        "/api/0/profiles",
        "/api/v1/top",
        "/v1/profiles",
    ] {
        assert!(all.iter().any(|route| route.path == path), "{path}");
    }
    let with_prefix = all.iter().filter(|route| route.prefix != "none");
    let with_prefix = with_prefix.map(|route| route.under("/profiling"));
    let with_any = all.iter().filter(|route| route.prefix == "any");
    let with_any = with_any.map(|route| route.under("/what/ever"));
    let otlp_ports = [server.otlp_grpc, server.otlp_http];
    let otlp_ports: Vec<SocketAddr> = otlp_ports.into_iter().flatten().collect();
    let is_otlp = |route: &&Route| {
        route.surface == "otlp-grpc" || (route.surface.is_empty() && route.path.starts_with("/v1"))
    };
    let of_otlp = otlp_ports.iter().flat_map(|&address| {
        let routes = all.iter().filter(is_otlp).cloned();
        routes.map(move |route| (address, route))
    });
    let of_main = all.iter().cloned().chain(with_prefix).chain(with_any);
    let of_main = of_main.map(|route| (server.address, route));
    for (address, route) in of_main.chain(of_otlp) {
        check(address, &route);
    }
}

fn check(address: SocketAddr, route: &Route) {
    if route.right == "anyone" {
        // Who signs in must say as whom; tests/session.rs has the rest.
        if route.method == "POST" {
            assert_eq!(ask(address, route, None).status, 400, "{route:?}");
            return;
        }
        assert_eq!(ask(address, route, None).status, 200, "{route:?}");
        let wrong = ask(address, route, Some("Bearer wrong"));
        assert_eq!(wrong.status, 200, "{route:?}");
        return;
    }
    let user = |pair: &str| format!("Basic {}", STANDARD.encode(pair));
    let wrong = [
        None,
        Some(bearer("wrong")),
        Some(bearer("")),
        Some(bearer("token-admi")),
        Some(user("ann:wrong")),
        Some(user("admin:")),
        Some(user("read:token-admin")),
    ];
    for authorization in wrong {
        let answer = ask(address, route, authorization.as_deref());
        assert_eq!(answer.status, 401, "{route:?} {authorization:?}");
        let asked = answer.headers.iter();
        let mut asked = asked.filter(|(name, _)| name.eq_ignore_ascii_case("www-authenticate"));
        assert!(
            asked.any(|(_, value)| value.starts_with("Basic realm=")),
            "{route:?}"
        );
        let error = answer.json();
        assert_eq!(error["code"], "unauthenticated", "{route:?}");
        let hint = error["hint"].as_str().expect("text");
        assert!(hint.contains("--token-file"), "{hint}");
    }
    for (token, right) in TOKENS {
        let is_enough = right == Right::Admin || right.name() == route.right;
        let with_token = ask(address, route, Some(&bearer(token)));
        let with_name = ask(
            address,
            route,
            Some(&user(&format!("{}:{token}", right.name()))),
        );
        for answer in [with_token, with_name] {
            if is_enough {
                assert!(
                    ![401, 403].contains(&answer.status),
                    "{route:?}: {}",
                    answer.text()
                );
            } else {
                assert_eq!(answer.status, 403, "{route:?} {token}");
                assert_eq!(answer.json()["code"], "permission_denied", "{route:?}");
            }
        }
    }
    let of_user = ask(address, route, Some(&user("ann:pass:word")));
    assert_eq!(of_user.status == 403, route.right != "read", "{route:?}");
}

#[test]
fn what_needs_which_right() {
    let server = start();
    let all = routes(&server);
    let of = |is_own: bool, right: &str| {
        let routes = all.iter().filter(|route| route.right == right);
        let routes = routes.filter(|route| route.surface.is_empty() == is_own);
        let mut names: Vec<String> = routes
            .map(|route| format!("{} {}", route.method, route.path))
            .collect();
        names.sort();
        names
    };
    assert_eq!(
        of(true, "anyone"),
        [
            "DELETE /api/v1/session",
            "GET /api/v1/session",
            "GET /healthz",
            "GET /metrics",
            "GET /ready",
            "POST /api/v1/session",
        ]
    );
    let admin = of(true, "admin");
    for route in [
        "DELETE /api/v1/data",
        "GET /debug/pprof/profile",
        // An agent's token must not tell other nodes what to run and where to send it.
        "POST /api/v1/fleet/persistence/rollback",
        "POST /api/v1/fleet/snapshot",
        "PUT /api/v1/fleet/persistence",
    ] {
        assert!(admin.iter().any(|name| name == route), "{admin:?}");
    }
    let write = of(true, "write");
    for route in [
        "POST /api/v1/ingest",
        "POST /api/v1/symbols",
        "POST /v1/profiles",
        "POST /v1/logs",
        "POST /api/v1/annotations",
        "DELETE /api/v1/annotations",
        "POST /api/v1/views",
        "DELETE /api/v1/views",
        "GET /api/v1/fleet/stream",
        "POST /api/v1/fleet/report",
    ] {
        assert!(write.iter().any(|name| name == route), "{write:?}");
    }
    let read = of(true, "read");
    let changes = |name: &&String| !name.starts_with("GET ");
    let changing: Vec<&String> = read.iter().filter(changes).collect();
    // What reads by a POST: a file that is forgotten, a document that is only checked, a statement that is long, and a
    // question of pprof without an answer.
    let is_of_file = |name: &&&String| name.starts_with("POST /api/v1/files");
    assert_eq!(changing.iter().filter(is_of_file).count(), 16);
    let changing: Vec<&String> = changing
        .into_iter()
        .filter(|name| !is_of_file(&name))
        .collect();
    let expected = [
        "POST /api/v1/fleet/persistence/check",
        "POST /api/v1/sql",
        "POST /api/v1/symbolz",
        "POST /symbolz",
    ];
    assert_eq!(changing, expected);

    // Of others: what stores or changes something, by its name.
    let none: [&str; 0] = [];
    assert_eq!(of(false, "anyone"), none);
    let snapshots = "POST /chalk.manager.v1.ObservabilityService/TriggerPerfettoSnapshot";
    assert_eq!(of(false, "admin"), [snapshots]);
    assert_eq!(
        of(false, "write"),
        [
            "POST /adhocprofiles.v1.AdHocProfileService/Upload",
            "POST /api/0/profiles",
            "POST /ingest",
            "POST /opentelemetry.proto.collector.logs.v1.LogsService/Export",
            "POST /opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
            "POST /parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw",
            "POST /parca.profilestore.v1alpha1.ProfileStoreService/c0ffee",
            "POST /push.v1.PusherService/Push",
            "POST /pyroscope/ingest",
            "POST /settings.v1.SettingsService/Delete",
            "POST /settings.v1.SettingsService/Set",
        ]
    );
}

#[test]
fn the_window_itself_is_for_everybody() {
    let server = start();
    for path in ["/", "/profiling/"] {
        assert_eq!(server.get(path).status, 200, "{path}");
    }
    let missing = server.get("/nothing");
    assert_eq!(missing.status, 404, "what is not there has no secrets");
}

#[test]
fn clients_of_grpc_read_why_in_their_trailers() {
    let server = start();
    let status = |authorization: Option<&str>| {
        let mut headers = vec![("Content-Type", "application/grpc+proto")];
        headers.extend(authorization.map(|value| ("Authorization", value)));
        let answer = request(server.address, "POST", GRPC[0], &headers, b"");
        assert_eq!(answer.status, 200);
        answer.header("grpc-status").expect("a status").to_owned()
    };
    assert_eq!(status(None), "16");
    assert_eq!(status(Some("Bearer token-read")), "7");
    assert_eq!(
        status(Some("Bearer token-write")),
        "3",
        "an empty body is no message"
    );
}

#[test]
fn who_has_a_token_is_kept_from_foreign_pages_all_the_same() {
    let server = start();
    let token = bearer("token-admin");
    for route in routes(&server) {
        let foreign = [("Authorization", token.as_str()), ("Host", "evil.example")];
        let answer = request(server.address, &route.method, &route.path, &foreign, b"");
        assert_eq!(answer.status, 403, "{route:?}");
        assert_eq!(answer.json()["code"], "foreign_host", "{route:?}");
        if route.method == "GET" {
            continue;
        }
        for (name, value) in [
            ("Origin", "http://evil.example"),
            ("Origin", "null"),
            ("Sec-Fetch-Site", "cross-site"),
        ] {
            let headers = [("Authorization", token.as_str()), (name, value)];
            let answer = request(server.address, &route.method, &route.path, &headers, b"");
            assert_eq!(answer.status, 403, "{route:?} {name}");
            assert_eq!(answer.json()["code"], "foreign_origin", "{route:?}");
        }
    }
}

#[test]
fn what_was_refused_is_counted() {
    let server = start();
    assert_eq!(server.post("/api/v1/ingest", b"x").status, 401);
    let metrics = server.get("/metrics").text();
    let line = "candela_ingest_refused_total{reason=\"unauthenticated\",tenant=\"anonymous\"} 1";
    assert!(metrics.contains(line), "{metrics}");
}

#[test]
fn a_public_address_needs_accounts_or_consent() {
    let public = "0.0.0.0:0".parse().expect("an address");
    let loopback = "127.0.0.1:0".parse().expect("an address");
    let port = |address| {
        Some(OtlpListen {
            address,
            is_explicit: false,
        })
    };
    let open = ServerOptions {
        listen: public,
        ..support::options()
    };
    let main = bind(&open).expect_err("public and open");
    assert!(
        main.contains("0.0.0.0:0 is reachable from other hosts"),
        "{main}"
    );
    assert!(
        main.contains("auth.tokens") && main.contains("--insecure"),
        "{main}"
    );
    assert!(!main.contains('\n'), "{main}");
    let otlp = ServerOptions {
        listen: loopback,
        otlp_http: port(public),
        ..support::options()
    };
    let otlp = bind(&otlp).expect_err("public and open");
    assert!(otlp.contains("server.otlp_http_listen"), "{otlp}");
    let mapped = ServerOptions {
        listen: "[::ffff:127.0.0.1]:0".parse().expect("an address"),
        ..support::options()
    };
    assert_eq!(bind(&mapped), Ok(()), "loopback in another form");
    let insecure = AuthOptions {
        is_insecure: true,
        ..AuthOptions::default()
    };
    let with_tokens = AuthOptions {
        tokens: vec![account("ci", "token", Right::Write)],
        ..AuthOptions::default()
    };
    for auth in [insecure, with_tokens] {
        assert_eq!(
            bind(&ServerOptions {
                auth,
                ..open.clone()
            }),
            Ok(())
        );
    }
}

fn bind(options: &ServerOptions) -> Result<(), String> {
    let data_dir = tempfile::tempdir().expect("a temporary directory");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let store = support::open_store(data_dir.path());
        let engine = candela_query::Engine::new(store.clone());
        let server = Server::bind(options.clone(), store, engine).await;
        server.map(drop).map_err(|error| error.to_string())
    })
}
