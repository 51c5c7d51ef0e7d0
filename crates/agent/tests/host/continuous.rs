//! The continuous agent on this host: windows, exporters, the spool.

use std::net::SocketAddr;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::channel;
use std::time::Duration;
use std::time::Instant;

use crate::support;
use crate::support::PATIENCE;
use crate::support::Stacks;
use crate::support::wait_for;
use candela_agent::Agent;
use candela_agent::AgentOptions;
use candela_agent::AgentStatus;
use candela_agent::ExportError;
use candela_agent::InProcess;
use candela_agent::OtlpGrpc;
use candela_agent::OtlpGrpcOptions;
use candela_agent::SpoolOptions;
use candela_model::Labels;
use candela_model::Profile;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceResponse;
use opentelemetry_proto::tonic::collector::profiles::v1development::profiles_service_server::ProfilesService;
use opentelemetry_proto::tonic::collector::profiles::v1development::profiles_service_server::ProfilesServiceServer;
use tokio::net::TcpSocket;
use tonic::codec::CompressionEncoding;

/// A busy program that ends with the test.
struct Busy(Child);

impl Busy {
    fn start(directory: &std::path::Path) -> Self {
        let program = directory.join("busy");
        let source = support::source("shares.c");
        let flags = ["-O2", "-fomit-frame-pointer", "-o"].map(Into::into);
        support::run("gcc", flags.into_iter().chain([program.clone(), source]));
        let mut command = Command::new(program);
        command.arg("600").stdout(Stdio::null());
        Self(command.spawn().expect("it starts"))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.kill().expect("it is still running");
        self.0.wait().expect("it is our child");
    }
}

fn options() -> AgentOptions {
    AgentOptions {
        rate_hz: 99,
        window: Duration::from_secs(1),
        first_window: Duration::from_secs(1),
        extra_labels: Labels::from_pairs([("zone", "test")]),
        host: Some("test-host".to_owned()),
        ..AgentOptions::default()
    }
}

/// Waits for a profile with samples of the busy program that has all of its names: the first ones may be from before
/// there were unwind tables.
fn wait_for_busy(profiles: &Receiver<Profile>) -> Profile {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let profile = profiles.recv_timeout(left).expect("a profile in time");
        let stacks = busy_stacks(&profile);
        let named = stacks.count(|names| {
            names[0] == "burn_fifty" && names.last().is_some_and(|name| name == "_start")
        });
        if named > 0 && named_roots(&stacks) == stacks.total() {
            return profile;
        }
    }
}

/// Samples whose stacks are complete.
fn named_roots(stacks: &Stacks) -> u64 {
    stacks.count(|names| names.last().is_some_and(|name| name == "_start"))
}

fn busy_stacks(profile: &Profile) -> Stacks {
    Stacks::of(profile, |series| {
        series.labels.get("service_name") == Some("busy")
    })
}

#[test]
fn windows_of_the_whole_host() {
    if support::cannot_sample() || support::lacks("gcc") {
        return;
    }
    let _turn = support::turn();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let _busy = Busy::start(directory.path());
    let (agent, profiles) = support::start_agent(options());
    let profile = wait_for_busy(&profiles);
    assert_eq!(profile.validate(), Ok(()));
    let series = profile
        .series
        .iter()
        .find(|series| series.labels.get("service_name") == Some("busy"))
        .expect("a series of the busy program");
    let labels = &series.labels;
    assert_eq!(labels.get("host"), Some("test-host"));
    assert_eq!(labels.get("zone"), Some("test"));
    assert_eq!(labels.get("process_executable_name"), Some("busy"));
    assert_eq!(
        series.profile_type.to_string(),
        "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
    );
    assert_eq!(series.period, 1_000_000_000 / 99);
    assert!(
        series
            .samples
            .iter()
            .all(|sample| sample.value % series.period == 0)
    );
    assert!(
        series.samples.iter().all(|sample| sample.time_ns == 0),
        "no times unless asked for"
    );
    assert!(series.duration_ns >= 200_000_000 && series.start_ns > 1_700_000_000_000_000_000);

    assert!(agent.is_running());
    let exported = agent.status().delivery.profiles;
    let status = agent.stop().expect("it stops");
    assert!(
        status.delivery.profiles > exported,
        "the last window is flushed"
    );
    assert_eq!(
        status.quality.samples,
        status.delivery.samples + given_up(&status),
        "{status:?}"
    );
    assert!(status.source.kernel_tables > 0 && status.source.kernel_table_bytes > 0);
    let json = serde_json::to_value(&status).expect("plain values");
    assert!(json["drops"]["sample_ring_full"].is_u64());
}

#[test]
fn what_the_receiver_does_not_take_is_kept_or_counted() {
    if support::cannot_sample() || support::lacks("gcc") {
        return;
    }
    let _turn = support::turn();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let _busy = Busy::start(directory.path());
    let (sender, attempts) = channel();
    let answers = Mutex::new(0);
    let exporter = InProcess::new(move |profile| {
        let mut attempt = answers.lock().expect("one thread uses it");
        *attempt += 1;
        let result = match *attempt {
            1 => Err(ExportError::Unavailable {
                reason: "disk full".to_owned(),
            }),
            2 => Err(ExportError::Rejected {
                reason: "too old".to_owned(),
            }),
            _ => Ok(()),
        };
        let _ = sender.send(profile.series.len());
        result
    });
    let agent = Agent::start(options(), Box::new(exporter)).expect("it starts");
    let mut refused_series = 0;
    for attempt in 1..=4 {
        let series = attempts.recv_timeout(PATIENCE).expect("another attempt");
        if attempt == 2 {
            refused_series = series;
        }
    }
    let status = agent.stop().expect("it stops");
    assert_eq!(status.delivery.failed_attempts, 1);
    assert_eq!(status.drops["export_rejected"], refused_series as u64);
    assert!(status.delivery.profiles >= 2);
}

/// A receiver as any OTLP server is one.
#[derive(Clone)]
struct Server {
    sender: std::sync::mpsc::Sender<(ExportProfilesServiceRequest, Option<String>)>,
}

#[tonic::async_trait]
impl ProfilesService for Server {
    async fn export(
        &self,
        request: tonic::Request<ExportProfilesServiceRequest>,
    ) -> Result<tonic::Response<ExportProfilesServiceResponse>, tonic::Status> {
        let header = request.metadata().get("authorization");
        let token = header
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        let _ = self.sender.send((request.into_inner(), token));
        Ok(tonic::Response::new(
            ExportProfilesServiceResponse::default(),
        ))
    }
}

fn serve(
    socket: TcpSocket,
    runtime: &tokio::runtime::Runtime,
) -> Receiver<(ExportProfilesServiceRequest, Option<String>)> {
    let (sender, requests) = channel();
    let _inside = runtime.enter();
    let listener = socket.listen(16).expect("it is bound");
    let service =
        ProfilesServiceServer::new(Server { sender }).accept_compressed(CompressionEncoding::Gzip);
    let connections = tokio_stream::wrappers::TcpListenerStream::new(listener);
    runtime.spawn(
        tonic::transport::Server::builder()
            .add_service(service)
            .serve_with_incoming(connections),
    );
    requests
}

#[test]
fn a_server_that_comes_later_gets_everything() {
    if support::cannot_sample() || support::lacks("gcc") {
        return;
    }
    let _turn = support::turn();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let _busy = Busy::start(directory.path());
    let runtime = Arc::new(tokio::runtime::Runtime::new().expect("threads"));
    // Ours, so that nobody else takes it, and refused until somebody listens.
    let socket = TcpSocket::new_v4().expect("a socket");
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    socket.bind(any).expect("a free port");
    let address = socket.local_addr().expect("it is bound");
    let exporter = OtlpGrpc::new(&OtlpGrpcOptions {
        authorization: Some("Bearer sesame".to_owned()),
        ..OtlpGrpcOptions::new(&format!("http://{address}"))
    });
    let agent_options = AgentOptions {
        spool: Some(SpoolOptions {
            directory: directory.path().join("spool"),
            max_bytes: 16 << 20,
        }),
        ..options()
    };
    let agent =
        Agent::start(agent_options, Box::new(exporter.expect("an address"))).expect("it starts");
    wait_for(&agent, "a spooled profile", |status| {
        status.delivery.spooled_profiles >= 2
    });
    assert!(
        agent
            .status()
            .delivery
            .last_error
            .contains(&address.to_string())
    );

    let requests = serve(socket, &runtime);
    wait_for(&agent, "an empty spool", |status| {
        status.delivery.spooled_profiles == 0 && status.delivery.profiles >= 3
    });
    let status = agent.stop().expect("it stops");
    assert_eq!(status.drops["spool_full"], 0);
    let mut samples = 0;
    let mut is_named = false;
    for (request, token) in requests.try_iter() {
        assert_eq!(token.as_deref(), Some("Bearer sesame"));
        let (profile, _) =
            candela_formats::decode_otlp(&request, &candela_formats::ReadOptions::default())
                .expect("what we sent");
        let series = profile.series.iter();
        samples += series
            .map(|series| series.total() / series.period)
            .sum::<i64>();
        is_named |= busy_stacks(&profile).with("burn_fifty") > 0;
    }
    assert!(is_named);
    assert_eq!(
        samples as u64 + given_up(&status),
        status.quality.samples,
        "nothing is lost or sent twice: {status:?}"
    );
}

/// Samples that a busy machine made us give up, which is counted and no error.
fn given_up(status: &AgentStatus) -> u64 {
    status.drops["symbolizer_behind"] + status.drops["exporter_behind"]
}
