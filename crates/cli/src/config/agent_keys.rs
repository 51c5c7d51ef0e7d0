//! The keys of the agent.

use std::time::Duration;

use super::key::Key;
use super::key::Kind;
use super::key::key;
use super::keys::HOUR;
use super::keys::SECOND;

/// In the order of the documentation.
pub(super) const AGENT_KEYS: &[Key] = &[
    key(
        "agent.server",
        Kind::Url,
        "http://127.0.0.1:4040",
        "server that `candela agent` sends to",
    ),
    key(
        "agent.rate",
        Kind::Integer(1, 1000),
        "19",
        "samples a second and processor",
    ),
    key(
        "agent.kinds",
        Kind::List,
        "cpu,fault",
        "what is sampled: cpu, off-cpu, lock, runq, fault (with growth), growth, io, kernel-lock, alloc (Go programs, and services with the library of `candela preload`), and events as of record -e",
    ),
    key(
        "agent.cpu_budget",
        Kind::CoreShare,
        "0.5%",
        "CPU time of the agent, of one core: less is sampled before it takes more; off is without a bound",
    ),
    key(
        "agent.interval",
        Kind::Duration(SECOND, Duration::from_secs(600)),
        "10s",
        "length of one profile",
    ),
    key(
        "agent.wakers",
        Kind::Choice(&["false", "true", "stack"]),
        "false",
        "waits tell which thread ended them; stack: and its stack",
    ),
    key(
        "agent.min_block_time",
        Kind::Duration(Duration::ZERO, HOUR),
        "0s",
        "shorter times off a processor are no samples of off-cpu, lock and runq, but counted, with their time",
    ),
    key(
        "agent.timestamps",
        Kind::Boolean,
        "false",
        "keep the time of every sample, with its labels pid, thread_id and thread_name",
    ),
    key(
        "agent.table_budget",
        Kind::Size,
        "48MiB",
        "most kernel memory of unwind tables",
    ),
    key(
        "agent.symbol_cache",
        Kind::Size,
        "48MiB",
        "most memory of symbols",
    ),
    key(
        "agent.spool_size",
        Kind::Size,
        "256MiB",
        "most disk space while the server is away",
    ),
    key(
        "agent.labels",
        Kind::Map,
        "",
        "labels added to every series of this host",
    ),
    key(
        "agent.service_rules",
        Kind::Map,
        "",
        "service name by regex over the command line: name=regex",
    ),
    key(
        "agent.container_sockets",
        Kind::List,
        "docker:/var/run/docker.sock,docker:/run/podman/podman.sock,cri:/run/containerd/containerd.sock,cri:/run/crio/crio.sock,cri:/run/k3s/containerd/containerd.sock,cri:/run/cri-dockerd.sock",
        "sockets of container runtimes that are asked for names and images, as docker:PATH or cri:PATH; an empty list asks none",
    ),
    key(
        "agent.kubernetes.node",
        Kind::Text,
        "",
        "name of the node that this host is, the label `node`; the API server is asked for its pods by builds that have `kube`",
    ),
    key(
        "agent.kubernetes.namespace",
        Kind::Text,
        "",
        "namespace of the agent's own pod, by which snapshots of the fleet choose nodes",
    ),
    key(
        "agent.kubernetes.pod",
        Kind::Text,
        "",
        "name of the agent's own pod",
    ),
    key(
        "agent.kubernetes.pod_ip",
        Kind::Text,
        "",
        "address of the agent's own pod",
    ),
    key(
        "agent.kubernetes.own_labels_file",
        Kind::Path,
        "",
        "file with the labels of the agent's own pod, as a volume of the downward API has it: snapshots of the fleet choose nodes by them",
    ),
    key(
        "agent.kubernetes.pod_labels",
        Kind::List,
        "",
        "keys of labels of pods that become labels k8s.pod.label.KEY",
    ),
    key(
        "agent.kubernetes.pod_annotations",
        Kind::List,
        "",
        "keys of annotations of pods that become labels k8s.pod.annotation.KEY",
    ),
    key(
        "agent.include",
        Kind::Structure,
        "",
        "list of selectors: only series that one of them matches are kept",
    ),
    key(
        "agent.exclude",
        Kind::Structure,
        "",
        "list of selectors: no series that one of them matches is kept",
    ),
    key(
        "agent.hide",
        Kind::Structure,
        "",
        "list of filters as of --hide: frames that are taken out of stacks before they are sent",
    ),
    key(
        "agent.min_samples",
        Kind::Integer(1, 1_000_000),
        "1",
        "series with fewer samples in a profile are left out of it",
    ),
    key(
        "agent.sampling",
        Kind::Boolean,
        "true",
        "sample this host; without it the agent only scrapes, and needs no privileges",
    ),
    key(
        "agent.scrape",
        Kind::Structure,
        "",
        "jobs that ask programs for their profiles over HTTP",
    ),
    key(
        "agent.fleet",
        Kind::Boolean,
        "true",
        "run the daemons that the server's fleet document asks of this node; `candela agent` only",
    ),
    key(
        "agent.fleet_store",
        Kind::Boolean,
        "false",
        "store their dumps and snapshots on the server, too, as services dump:NAME and snapshot:NAME",
    ),
    key(
        "agent.fleet_daemon",
        Kind::Text,
        "",
        "run this one daemon of the fleet's document and nothing else, by its id; for hosts where each has an agent of its own",
    ),
    key(
        "agent.perfetto_trigger.listen",
        Kind::Address,
        "127.0.0.1:3565",
        "address at which a Perfetto snapshot is asked for, where the fleet's document has a daemon with PERFETTO_TRIGGER_HTTP; default port $CHALK_PERFETTO_DAEMON_PORT",
    ),
    key(
        "agent.perfetto_trigger.token",
        Kind::Secret,
        "",
        "token that such requests need; an address that other hosts reach needs one",
    ),
    key(
        "agent.perfetto_trigger.token_file",
        Kind::Path,
        "",
        "file that holds it",
    ),
    key(
        "agent.on_demand.enabled",
        Kind::Boolean,
        "",
        "answer requests for a profile of the next seconds; default in `candela up`, and where the address is set",
    ),
    key(
        "agent.on_demand.listen",
        Kind::Address,
        "127.0.0.1:3080",
        "address of profiles on demand, /profile/cpu, and of the agent's /metrics",
    ),
    key(
        "agent.on_demand.token",
        Kind::Secret,
        "",
        "token that requests need; an address that other hosts reach needs one",
    ),
    key(
        "agent.on_demand.token_file",
        Kind::Path,
        "",
        "file that holds it",
    ),
    key(
        "agent.on_demand.tls.cert_file",
        Kind::Path,
        "",
        "certificate of this port in PEM, with those above it; with it it speaks TLS only",
    ),
    key(
        "agent.on_demand.tls.key_file",
        Kind::Path,
        "",
        "its private key",
    ),
];
