//! What a kubelet asks a runtime for to run a pod: the messages of `k8s.io/cri-api/pkg/apis/runtime/v1/api.proto`, with
//! the fields that are written.

use std::collections::HashMap;
use std::path::Path;

use prost::Message;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::transport::Endpoint;
use tonic_prost::ProstCodec;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PodMetadata {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) uid: String,
    #[prost(string, tag = "3")]
    pub(crate) namespace: String,
}

/// Of namespaces: 0 is the pod's, 2 the host's.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct NamespaceOption {
    #[prost(int32, tag = "1")]
    pub(crate) network: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SecurityContext {
    #[prost(message, optional, tag = "1")]
    pub(crate) namespace_options: Option<NamespaceOption>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct LinuxPod {
    #[prost(string, tag = "1")]
    pub(crate) cgroup_parent: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) security_context: Option<SecurityContext>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PodConfig {
    #[prost(message, optional, tag = "1")]
    pub(crate) metadata: Option<PodMetadata>,
    #[prost(string, tag = "3")]
    pub(crate) log_directory: String,
    #[prost(map = "string, string", tag = "6")]
    pub(crate) labels: HashMap<String, String>,
    #[prost(map = "string, string", tag = "7")]
    pub(crate) annotations: HashMap<String, String>,
    #[prost(message, optional, tag = "8")]
    pub(crate) linux: Option<LinuxPod>,
}

#[derive(Clone, PartialEq, Message)]
struct RunPodRequest {
    #[prost(message, optional, tag = "1")]
    config: Option<PodConfig>,
}

/// An id, of a pod or of a container: requests and answers that have nothing else, and answers to both.
#[derive(Clone, PartialEq, Message)]
struct Id {
    #[prost(string, tag = "1")]
    id: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ContainerMetadata {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Image {
    #[prost(string, tag = "1")]
    pub(crate) image: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ContainerConfig {
    #[prost(message, optional, tag = "1")]
    pub(crate) metadata: Option<ContainerMetadata>,
    #[prost(message, optional, tag = "2")]
    pub(crate) image: Option<Image>,
    #[prost(string, repeated, tag = "3")]
    pub(crate) command: Vec<String>,
    #[prost(map = "string, string", tag = "9")]
    pub(crate) labels: HashMap<String, String>,
    #[prost(string, tag = "11")]
    pub(crate) log_path: String,
}

#[derive(Clone, PartialEq, Message)]
struct CreateContainerRequest {
    #[prost(string, tag = "1")]
    pod_id: String,
    #[prost(message, optional, tag = "2")]
    config: Option<ContainerConfig>,
    #[prost(message, optional, tag = "3")]
    pod_config: Option<PodConfig>,
}

#[derive(Clone, PartialEq, Message)]
struct Nothing {}

/// A kubelet's connection to a runtime.
pub(crate) struct CriClient(Channel);

// === impl CriClient ===

impl CriClient {
    pub(crate) async fn connect(socket: &Path) -> Self {
        let endpoint = Endpoint::from_shared(format!("unix://{}", socket.display()));
        let channel = endpoint.expect("an address").connect().await;
        Self(channel.expect("the runtime listens"))
    }

    /// The ids of a pod and of a container in it that runs; the runtime's reason where it runs none here.
    pub(crate) async fn run(
        &self,
        pod: PodConfig,
        container: ContainerConfig,
    ) -> Result<(String, String), tonic::Status> {
        let config = Some(pod.clone());
        let run = self.call("RunPodSandbox", RunPodRequest { config });
        let Id { id: pod_id } = run.await?;
        let create = CreateContainerRequest {
            pod_id: pod_id.clone(),
            config: Some(container),
            pod_config: Some(pod),
        };
        let container: Id = self.call("CreateContainer", create).await?;
        let Nothing {} = self.call("StartContainer", container.clone()).await?;
        Ok((pod_id, container.id))
    }

    /// Ends a pod and all that is in it.
    pub(crate) async fn remove(&self, pod_id: &str) -> Result<(), tonic::Status> {
        let id = Id {
            id: pod_id.to_owned(),
        };
        let Nothing {} = self.call("StopPodSandbox", id.clone()).await?;
        let Nothing {} = self.call("RemovePodSandbox", id).await?;
        Ok(())
    }

    async fn call<Request, Response>(
        &self,
        method: &str,
        request: Request,
    ) -> Result<Response, tonic::Status>
    where
        Request: Message + 'static,
        Response: Message + Default + 'static,
    {
        let path = format!("/runtime.v1.RuntimeService/{method}");
        let path = PathAndQuery::try_from(path).expect("a path");
        let mut client = tonic::client::Grpc::new(self.0.clone());
        let unready =
            |error: tonic::transport::Error| tonic::Status::unavailable(error.to_string());
        client.ready().await.map_err(unready)?;
        let codec = ProstCodec::<Request, Response>::default();
        let answer = client.unary(tonic::Request::new(request), path, codec);
        Ok(answer.await?.into_inner())
    }
}
