//! The Container Runtime Interface of Kubernetes, `runtime.v1.RuntimeService`: containerd and CRI-O.
//!
//! The messages are those of `k8s.io/cri-api/pkg/apis/runtime/v1/api.proto`, with the fields that are read.

use std::collections::HashMap;
use std::path::Path;

use prost::Message;
use tonic::Code;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::transport::Endpoint;
use tonic_prost::ProstCodec;

use crate::containers::error::RuntimeError;
use crate::containers::facts::ContainerFacts;
use crate::containers::kubernetes::KubernetesOptions;

const LIST_CONTAINERS: &str = "/runtime.v1.RuntimeService/ListContainers";
const LIST_SANDBOXES: &str = "/runtime.v1.RuntimeService/ListPodSandbox";

/// Of containers and of sandboxes: both have one filter with an id in it.
#[derive(Clone, PartialEq, Message)]
struct ListRequest {
    #[prost(message, optional, tag = "1")]
    filter: Option<IdFilter>,
}

#[derive(Clone, PartialEq, Message)]
struct IdFilter {
    #[prost(string, tag = "1")]
    id: String,
}

#[derive(Clone, PartialEq, Message)]
struct ListContainersResponse {
    #[prost(message, repeated, tag = "1")]
    containers: Vec<Container>,
}

#[derive(Clone, PartialEq, Message)]
struct Container {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(string, tag = "2")]
    pod_sandbox_id: String,
    #[prost(message, optional, tag = "3")]
    metadata: Option<ContainerMetadata>,
    #[prost(message, optional, tag = "4")]
    image: Option<ImageSpec>,
    #[prost(map = "string, string", tag = "8")]
    labels: HashMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
struct ContainerMetadata {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct ImageSpec {
    /// The name, or what it is known by to the runtime.
    #[prost(string, tag = "1")]
    image: String,
    #[prost(string, tag = "18")]
    user_specified_image: String,
}

#[derive(Clone, PartialEq, Message)]
struct ListSandboxesResponse {
    #[prost(message, repeated, tag = "1")]
    items: Vec<Sandbox>,
}

#[derive(Clone, PartialEq, Message)]
struct Sandbox {
    /// With those of the pod.
    #[prost(map = "string, string", tag = "5")]
    labels: HashMap<String, String>,
    /// Those of the pod, and the runtime's own.
    #[prost(map = "string, string", tag = "6")]
    annotations: HashMap<String, String>,
}

/// Asks for a container by its full id; `None` when the runtime has no such one.
pub(super) async fn ask(
    path: &Path,
    id: &str,
    options: &KubernetesOptions,
) -> Result<Option<ContainerFacts>, RuntimeError> {
    let endpoint = Endpoint::from_shared(format!("unix://{}", path.display()))?;
    let channel = endpoint.connect().await?;
    let listed: ListContainersResponse = list(channel.clone(), LIST_CONTAINERS, id).await?;
    let Some(container) = listed.containers.into_iter().find(|found| found.id == id) else {
        return Ok(None);
    };
    let image = container.image.unwrap_or_default();
    let image = match image.user_specified_image.as_str() {
        "" => image.image.as_str(),
        given => given,
    };
    let name = container.metadata.unwrap_or_default().name;
    let mut facts = ContainerFacts::new(&name, image, &container.labels);
    let sandbox_id = &container.pod_sandbox_id;
    // Without an id the filter would be none.
    if sandbox_id.is_empty() {
        return Ok(Some(facts));
    }
    let sandboxes: ListSandboxesResponse = list(channel, LIST_SANDBOXES, sandbox_id).await?;
    if let Some(sandbox) = sandboxes.items.first() {
        facts.set_app(&sandbox.labels);
        facts.labels = options.chosen(
            |key| sandbox.labels.get(key),
            |key| sandbox.annotations.get(key),
        );
    }
    Ok(Some(facts))
}

async fn list<Response>(
    channel: Channel,
    method: &'static str,
    id: &str,
) -> Result<Response, RuntimeError>
where
    Response: Message + Default + 'static,
{
    let filter = IdFilter { id: id.to_owned() };
    let request = ListRequest {
        filter: Some(filter),
    };
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await?;
    let codec = ProstCodec::<ListRequest, Response>::default();
    let path = PathAndQuery::from_static(method);
    match client
        .unary(tonic::Request::new(request), path, codec)
        .await
    {
        Ok(response) => Ok(response.into_inner()),
        // Some runtimes say so rather than to answer with an empty list.
        // And some have no containers of Kubernetes.
        Err(status) if matches!(status.code(), Code::NotFound | Code::Unimplemented) => {
            Ok(Response::default())
        }
        Err(status) => Err(RuntimeError::Refused(Box::new(status))),
    }
}

#[cfg(test)]
mod tests;
