//! Names of containers as real runtimes tell them: containerd by the interface of the kubelet, Podman by the Docker
//! Engine API. Their images are made here, of one static program; nothing is downloaded.

mod containerd;
mod cri_client;
mod daemon;
mod image;
mod podman;

use std::sync::mpsc::channel;
use std::time::Duration;
use std::time::Instant;

use candela_agent::Agent;
use candela_agent::AgentOptions;
use candela_agent::AgentTargets;
use candela_agent::ContainerSocket;
use candela_agent::InProcess;
use candela_agent::KubernetesOptions;
use candela_model::Labels;
use candela_model::Profile;

const PATIENCE: Duration = Duration::from_secs(60);

/// The labels that an agent gives to a process once it has samples of it. It asks at `socket` alone.
fn labels_of(pid: u32, container_id: &str, socket: ContainerSocket) -> Labels {
    let (sender, profiles) = channel::<Profile>();
    let exporter = InProcess::new(move |profile| {
        // The test may have seen enough.
        let _ = sender.send(profile.clone());
        Ok(())
    });
    let options = AgentOptions {
        rate_hz: 99,
        window: Duration::from_secs(1),
        first_window: Duration::from_secs(1),
        targets: AgentTargets::Pids(vec![pid]),
        container_sockets: vec![socket],
        kubernetes: KubernetesOptions {
            pod_labels: vec!["team".to_owned()],
            pod_annotations: vec!["example.org/revision".to_owned()],
            ..KubernetesOptions::default()
        },
        ..AgentOptions::default()
    };
    let agent = Agent::start(options, Box::new(exporter)).expect("it starts");
    let deadline = Instant::now() + PATIENCE;
    let labels = loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let profile = profiles.recv_timeout(left).expect("a profile in time");
        let mut series = profile.series.into_iter();
        let found = series.find(|it| it.labels.get("container_id") == Some(container_id));
        if let Some(series) = found {
            break series.labels;
        }
    };
    let status = agent.stop().expect("it stops");
    assert_eq!(status.drops["container_unnamed"], 0);
    labels
}

#[track_caller]
fn expect_labels(labels: &Labels, wanted: &[(&str, &str)]) {
    for (name, value) in wanted {
        assert_eq!(labels.get(name), Some(*value), "{name} of {labels}");
    }
}
