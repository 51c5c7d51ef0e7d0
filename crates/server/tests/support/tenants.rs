//! Two tenants with a profile each, and accounts that see one or both.

use candela_formats::OtlpOptions;
use candela_model::FrameKind;
use candela_model::Labels;
use candela_model::Location;
use candela_model::Mapping;
use candela_model::Profile;
use candela_model::SERVICE_NAME_LABEL;
use candela_server::Account;
use candela_server::AuthOptions;
use candela_server::Right;
use candela_server::Rights;
use candela_server::ServerOptions;
use candela_server::TenantName;
use prost::Message;

use super::Answer;
use super::TestServer;
use super::request;

/// In every name of what a tenant stores: service, function, file, mapping, host.
pub(crate) const TENANTS: [&str; 2] = ["alpha", "beta"];

pub(crate) const SECRETS: [(&str, &str); 5] = [
    ("reader", "secret-reader"),
    ("writer", "secret-writer"),
    ("root", "secret-root"),
    ("alpha", "secret-alpha"),
    ("beta", "secret-beta"),
];

pub(crate) fn secret(name: &str) -> &'static str {
    let found = SECRETS.iter().find(|(known, _)| *known == name);
    found.expect("an account").1
}

/// A server with a reader, a writer and an administrator of all tenants, and one of each.
pub(crate) fn without_profiles() -> TestServer {
    let account = |name: &str, right| {
        let account = Account::new(name, secret(name), Rights::NONE.with(right));
        account.expect("an account")
    };
    let of_tenant = |name: &str| {
        let tenant = TenantName::new(name).expect("a name");
        account(name, Right::Admin).of_tenant(tenant)
    };
    TestServer::start_with(ServerOptions {
        auth: AuthOptions {
            tokens: vec![
                account("reader", Right::Read),
                account("writer", Right::Write),
                account("root", Right::Admin),
                of_tenant("alpha"),
                of_tenant("beta"),
            ],
            multi_tenancy: true,
            ..AuthOptions::default()
        },
        ..super::options()
    })
}

/// The same with profiles of each tenant.
pub(crate) fn start() -> TestServer {
    let server = without_profiles();
    for (tenant, flushed) in [(TENANTS[0], false), (TENANTS[1], true)] {
        for _ in 0..2 {
            let body = super::pprof_bytes(&profile(tenant));
            let path = format!("/api/v1/ingest?service={tenant}-service&label=host={tenant}-host");
            let answer = ask(&server, "POST", &path, "writer", Some(tenant), &body);
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
        let answer = ask(
            &server,
            "POST",
            "/v1/profiles",
            "writer",
            Some(tenant),
            &otlp(tenant),
        );
        assert_eq!(answer.status, 200, "{}", answer.text());
        if flushed {
            let flush = server.store.flush();
            server.runtime.block_on(flush).expect("flushes");
        }
    }
    server
}

/// 100 ns of cpu time below a function and an address, all named after the tenant.
pub(crate) fn profile(tenant: &str) -> Profile {
    let mut profile = Profile::default();
    let symbols = &mut profile.symbols;
    let file = symbols.strings.intern(&format!("/opt/{tenant}.so"));
    let build_id = symbols.strings.intern(&format!("c0ffee{}", tenant.len()));
    let mapping = symbols.intern_mapping(Mapping {
        file,
        build_id,
        memory_start: 0x1000,
        memory_limit: 0x9000,
        ..Mapping::default()
    });
    let function = symbols.intern_function(&format!("{tenant}_function"), "", "a.c", 1);
    let place = Location::new(FrameKind::Native, 0x1100).in_mapping(mapping);
    let named = symbols.intern_location(&place, &[(function, 2, 0)]);
    let place = Location::new(FrameKind::Native, 0x1200).in_mapping(mapping);
    let bare = symbols.intern_location(&place, &[]);
    let mut series = super::demo_profile().series.remove(0);
    series.samples.clear();
    for (stack, value) in [(vec![named], 70), (vec![bare, named], 30)] {
        let stack = profile.stacks.intern(&stack);
        series
            .samples
            .push(candela_model::Sample::new(stack, value));
    }
    profile.series.push(series);
    profile
}

/// The same with the host's agent.
pub(crate) fn otlp(tenant: &str) -> Vec<u8> {
    let mut profile = profile(tenant);
    let labels = [
        (SERVICE_NAME_LABEL, format!("{tenant}-otlp")),
        ("host", format!("{tenant}-host")),
    ];
    profile.series[0].labels = Labels::from_pairs(labels);
    let options = OtlpOptions {
        scope_name: format!("{tenant}-agent"),
        ..OtlpOptions::default()
    };
    candela_formats::encode_otlp(&profile, &options).encode_to_vec()
}

pub(crate) fn ask(
    server: &TestServer,
    method: &str,
    path: &str,
    account: &str,
    tenant: Option<&str>,
    body: &[u8],
) -> Answer {
    let token = format!("Bearer {}", secret(account));
    let mut headers = vec![
        ("Authorization", token.as_str()),
        ("Content-Type", "application/x-protobuf"),
    ];
    headers.extend(tenant.map(|tenant| ("X-Scope-OrgID", tenant)));
    request(server.address, method, path, &headers, body)
}

pub(crate) fn get(server: &TestServer, path: &str, account: &str, tenant: Option<&str>) -> Answer {
    ask(server, "GET", path, account, tenant, b"")
}

/// The body as text; compressed ones inflated.
pub(crate) fn text(answer: &Answer) -> String {
    let inflated = candela_formats::inflate(&answer.body, 1 << 20).expect("a body");
    String::from_utf8_lossy(&inflated).into_owned()
}
