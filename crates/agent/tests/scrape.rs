//! Programs that are asked for their profiles: a server of the test plays the program.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Write;
use std::net::TcpListener;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::channel;
use std::time::Duration;
use std::time::Instant;

use candela_agent::Agent;
use candela_agent::AgentError;
use candela_agent::AgentHandle;
use candela_agent::AgentOptions;
use candela_agent::Credentials;
use candela_agent::InProcess;
use candela_agent::ScrapeJob;
use candela_agent::ScrapeJobStatus;
use candela_agent::ScrapeStatus;
use candela_agent::ScrapedProfile;
use candela_agent::SecretSource;
use candela_agent::TargetGroup;
use candela_agent::default_profiles;
use candela_formats::PprofOptions;
use candela_formats::write_pprof;
use candela_model::FrameKind;
use candela_model::Labels;
use candela_model::Location;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::ProfileType;
use candela_model::Sample;

const PATIENCE: Duration = Duration::from_secs(60);

/// What a path answers: status line and headers, body.
type Reply = (String, Vec<u8>);

/// A program that answers requests by a function of their path and authorization.
struct Program {
    address: String,
    /// Paths that were asked for, with what stood in `authorization`.
    asked: Arc<Mutex<Vec<(String, String)>>>,
}

impl Program {
    fn start(reply: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound").to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        let reply = Arc::new(reply);
        // Ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (log, reply) = (Arc::clone(&log), Arc::clone(&reply));
                std::thread::spawn(move || answer(stream, &log, &*reply));
            }
        });
        Self { address, asked }
    }

    fn asked(&self) -> Vec<(String, String)> {
        self.asked.lock().expect("no panic while locked").clone()
    }
}

fn answer(
    mut stream: TcpStream,
    log: &Mutex<Vec<(String, String)>>,
    reply: &dyn Fn(&str) -> Reply,
) {
    let mut lines = BufReader::new(stream.try_clone().expect("a socket")).lines();
    let first = lines.next().and_then(Result::ok).unwrap_or_default();
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let headers: Vec<String> = lines
        .map_while(Result::ok)
        .take_while(|line| !line.is_empty())
        .collect();
    let authorization = headers
        .iter()
        .find_map(|line| line.strip_prefix("authorization: "))
        .unwrap_or_default();
    log.lock()
        .expect("no panic while locked")
        .push((path.clone(), authorization.to_owned()));
    let (head, body) = reply(&path);
    let length = body.len();
    let head = format!("HTTP/1.1 {head}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
    // The other side may have gone meanwhile.
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(&body);
}

/// A heap profile in which each function has allocated so many bytes, and has ten of them left.
fn heap(totals: &[(&str, i64)]) -> Vec<u8> {
    let mut profile = Profile::default();
    let new = |sample_type: &str| {
        let profile_type = ProfileType::new("memory", sample_type, "bytes", "space", "bytes");
        ProfileSeries::new(Labels::default(), profile_type)
    };
    let mut series = [new("alloc_space"), new("inuse_space")];
    for (position, (name, total)) in totals.iter().enumerate() {
        let function = profile.symbols.intern_function(name, "", "shop.go", 1);
        let location = Location::new(FrameKind::Go, position as u64 + 1);
        let location = profile
            .symbols
            .intern_location(&location, &[(function, 7, 0)]);
        let stack = profile.stacks.intern(&[location]);
        series[0].samples.push(Sample::new(stack, *total));
        series[1].samples.push(Sample::new(stack, 10));
    }
    profile.series.extend(series);
    let mut written = Vec::new();
    write_pprof(&profile, &mut written, &PprofOptions::default()).expect("a sound profile");
    written
}

fn ok(body: Vec<u8>) -> Reply {
    ("200 OK".to_owned(), body)
}

/// A job for some kinds of profiles of one program.
fn job(name: &str, program: &Program, profiles: Vec<ScrapedProfile>) -> ScrapeJob {
    let second = Duration::from_secs(1);
    ScrapeJob {
        static_targets: vec![TargetGroup {
            addresses: vec![program.address.clone()],
            labels: Labels::from_pairs([("service_name", "shop")]),
        }],
        interval: 2 * second,
        timeout: PATIENCE,
        delta_duration: second,
        profiles,
        ..ScrapeJob::new(name)
    }
}

fn start(scrape: Vec<ScrapeJob>) -> (AgentHandle, Receiver<Profile>) {
    let (sender, profiles) = channel();
    let exporter = InProcess::new(move |profile| {
        // The test may have seen enough.
        let _ = sender.send(profile.clone());
        Ok(())
    });
    let options = AgentOptions {
        sampling: false,
        extra_labels: Labels::from_pairs([("zone", "test"), ("service_name", "not mine")]),
        scrape,
        ..AgentOptions::default()
    };
    let agent = Agent::start(options, Box::new(exporter)).expect("it starts");
    (agent, profiles)
}

fn wait_for(agent: &AgentHandle, job: &str, is_there: impl Fn(&ScrapeJobStatus) -> bool) {
    wait_for_all(agent, |status| is_there(&status.jobs[job]));
}

fn wait_for_all(agent: &AgentHandle, is_there: impl Fn(&ScrapeStatus) -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_there(&agent.status().scrape) {
        let status = agent.status().scrape;
        assert!(Instant::now() < deadline, "not in time: {status:#?}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// A busy machine may still be at an answer when the next one is due, which is then left out and counted as this.
fn failures_but_busy(status: &ScrapeJobStatus) -> BTreeMap<&str, u64> {
    let failures = status.failures.iter();
    let failures = failures.map(|(reason, count)| (reason.as_str(), *count));
    failures.filter(|(reason, _)| *reason != "busy").collect()
}

fn answers(status: &ScrapeJobStatus) -> u64 {
    status.scrapes - status.failures.values().sum::<u64>()
}

/// The series of a sample type, in the order in which they came.
fn series_of<'a>(
    profiles: &'a [Profile],
    sample_type: &str,
) -> impl Iterator<Item = &'a ProfileSeries> {
    let series = profiles.iter().flat_map(|profile| &profile.series);
    series.filter(move |series| series.profile_type.sample_type == sample_type)
}

/// What each function has in the series of a sample type.
fn values(profiles: &[Profile], sample_type: &str) -> Vec<BTreeMap<String, i64>> {
    let mut found = Vec::new();
    for profile in profiles {
        for series in &profile.series {
            if series.profile_type.sample_type != sample_type {
                continue;
            }
            let samples = series.samples.iter().map(|sample| {
                let location = profile.stacks.get(sample.stack)[0];
                let line = profile.symbols.lines(location)[0];
                let name = profile.symbols.function(line.function).name;
                (profile.symbols.strings.get(name).to_owned(), sample.value)
            });
            found.push(samples.collect());
        }
    }
    found
}

#[test]
fn totals_become_what_was_added_and_restarts_are_seen() {
    let scrapes = [
        heap(&[("cart", 1000), ("pay", 50)]),
        heap(&[("cart", 1700), ("pay", 50), ("ship", 3)]),
        heap(&[("cart", 90)]),
        heap(&[("cart", 95)]),
    ];
    let asked = Mutex::new(0);
    let program = Program::start(move |_| {
        let mut asked = asked.lock().expect("no panic while locked");
        let body = scrapes[(*asked).min(3)].clone();
        *asked += 1;
        ok(body)
    });
    let memory = default_profiles().remove(0);
    let (agent, received) = start(vec![job("heaps", &program, vec![memory])]);
    wait_for(&agent, "heaps", |status| answers(status) >= 4);
    let status = agent.stop().expect("it ends well");
    let profiles: Vec<Profile> = received.try_iter().collect();

    let status = &status.scrape.jobs["heaps"];
    assert_eq!((status.targets, status.endpoints), (1, 1));
    assert_eq!((status.first_scrapes, status.restarts), (1, 1));
    assert_eq!(failures_but_busy(status), BTreeMap::new());
    let map = |pairs: &[(&str, i64)]| -> BTreeMap<String, i64> {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect()
    };
    let added = values(&profiles, "alloc_space");
    let expected = [map(&[("cart", 700), ("ship", 3)]), map(&[("cart", 5)])];
    assert_eq!(
        added[..2],
        expected,
        "of the first and of a restarted one there is nothing"
    );
    let live = values(&profiles, "inuse_space");
    assert_eq!(
        live[0],
        map(&[("cart", 10), ("pay", 10)]),
        "states are never subtracted"
    );
    assert!(live.len() >= 4);

    let mut added = series_of(&profiles, "alloc_space");
    let added = added.next().expect("what was added");
    let address = &program.address;
    assert_eq!(
        added.labels.to_string(),
        format!(
            r#"{{__delta__="false", instance="{address}", job="heaps", service_name="shop", zone="test"}}"#
        )
    );
    let scraped_at: Vec<i64> = series_of(&profiles, "inuse_space")
        .map(|series| series.start_ns)
        .collect();
    let added = [added.start_ns, added.start_ns + added.duration_ns];
    assert_eq!(added, scraped_at[..2], "from scrape to scrape");
    assert!(added[0] < added[1], "{added:?}");
}

#[test]
fn failures_are_told_by_reason_and_harm_nobody_else() {
    let program = Program::start(|path| match path {
        "/ok" => ok(heap(&[("cart", 1)])),
        "/missing" => ("404 Not Found".to_owned(), b"no such profile".to_vec()),
        "/secret" => ("401 Unauthorized".to_owned(), Vec::new()),
        "/busy" => (
            "500 Oops".to_owned(),
            b"cpu profiling\nalready in use".to_vec(),
        ),
        "/page" => ok(b"<html>welcome</html>".to_vec()),
        "/slow" => loop {
            std::thread::park();
        },
        _ => ("204 No Content".to_owned(), Vec::new()),
    });
    let gone = Program {
        // Port 1 is privileged and unused.
        address: "127.0.0.1:1".to_owned(),
        asked: Arc::default(),
    };
    let custom = |name: &str| ScrapedProfile::custom(name, &format!("/{name}"), false);
    let kinds = ["ok", "missing", "secret", "busy", "page"].map(custom);
    let slow = ScrapeJob {
        timeout: Duration::from_secs(1),
        ..job("slow", &program, vec![custom("slow")])
    };
    let mut with_token = job("with token", &program, vec![custom("ok")]);
    with_token.credentials = Some(Credentials::Bearer(SecretSource::File(
        "/nonexistent".into(),
    )));
    let (agent, received) = start(vec![
        job("mixed", &program, kinds.to_vec()),
        slow,
        job("gone", &gone, vec![custom("ok")]),
        with_token,
    ]);
    wait_for(&agent, "mixed", |status| {
        let reasons = ["not_found", "unauthorized", "http_status", "not_pprof"];
        reasons
            .iter()
            .all(|reason| status.failures.contains_key(*reason))
            && status.samples >= 2
    });
    for (name, reason) in [
        ("slow", "timeout"),
        ("gone", "unreachable"),
        ("with token", "credentials"),
    ] {
        wait_for(&agent, name, |status| status.failures.contains_key(reason));
    }
    // What is listed is the last failure of each.
    wait_for_all(&agent, |status| {
        let listed = status.failing.iter();
        let listed: Vec<String> = listed
            .map(|failing| format!("{} {}", failing.reason, failing.detail))
            .collect();
        let busy = "http_status 500 Internal Server Error: cpu profiling already in use";
        status.jobs["mixed"].failing == 4
            && listed.iter().any(|line| line == busy)
            && listed.iter().any(|line| line.contains("no such profile"))
    });
    let mut metrics = String::new();
    agent.status().write_metrics(&mut metrics);
    let status = agent.stop().expect("it ends well");
    assert!(status.drops["scrape_failed"] >= 7);
    let line = r#"candela_agent_scrape_failures_total{job="slow",reason="timeout"}"#;
    assert!(metrics.contains(line), "{metrics}");
    let profile = received.try_iter().next().expect("what is well is scraped");
    assert_eq!(profile.validate(), Ok(()));
    assert_eq!(
        profile.series[0].profile_type.name, "ok",
        "what the configuration calls it"
    );
}

#[test]
fn windows_are_asked_for_with_credentials() {
    let program = Program::start(|_| ok(heap(&[("cart", 1)])));
    let cpu = default_profiles().remove(4);
    let mut job = job("cpu", &program, vec![cpu]);
    job.path_prefix = "/app".to_owned();
    job.credentials = Some(Credentials::Basic {
        username: "Aladdin".to_owned(),
        password: SecretSource::Inline("open sesame".to_owned()),
    });
    let (agent, received) = start(vec![job]);
    wait_for(&agent, "cpu", |status| status.samples > 0);
    agent.stop().expect("it ends well");
    let (path, authorization) = program.asked().remove(0);
    assert_eq!(path, "/app/debug/pprof/profile?seconds=1");
    assert_eq!(authorization, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    let profile = received.try_iter().next().expect("a profile");
    assert_eq!(profile.series[0].profile_type.name, "process_cpu");
}

#[test]
fn an_agent_without_work_is_refused() {
    let options = AgentOptions {
        sampling: false,
        ..AgentOptions::default()
    };
    let exporter = Box::new(InProcess::new(|_| Ok(())));
    let refused = Agent::start(options, exporter).expect_err("nothing to do");
    assert!(matches!(refused, AgentError::NothingToDo), "{refused}");
}
