//! A runtime of the test answers over a socket, by tonic's own server.

use std::convert::Infallible;
use std::future::Future;
use std::future::ready;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;

use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::Request;
use tonic::Response;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::codegen::http;
use tonic::server::Grpc;
use tonic::server::NamedService;
use tonic::server::UnaryService;
use tonic::transport::Server;

use super::*;

const ID: &str = "3f1c9a1de2b5c0a7e88f2a6d1b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e";
const SANDBOX: &str = "sandbox-1";

/// A runtime with one container in one pod.
#[derive(Clone)]
struct Runtime;

impl NamedService for Runtime {
    const NAME: &'static str = "runtime.v1.RuntimeService";
}

impl Service<http::Request<Body>> for Runtime {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(async move {
            let answer = match request.uri().path() {
                LIST_CONTAINERS => {
                    let codec = ProstCodec::default();
                    Grpc::new(codec).unary(Containers, request).await
                }
                LIST_SANDBOXES => {
                    let codec = ProstCodec::default();
                    Grpc::new(codec).unary(Sandboxes, request).await
                }
                _ => Status::unimplemented("not of this test").into_http(),
            };
            Ok(answer)
        })
    }
}

struct Containers;

impl UnaryService<ListRequest> for Containers {
    type Response = ListContainersResponse;
    type Future = std::future::Ready<Result<Response<Self::Response>, Status>>;

    fn call(&mut self, request: Request<ListRequest>) -> Self::Future {
        let asked = request.into_inner().filter.unwrap_or_default().id;
        if asked != ID {
            return ready(Ok(Response::new(ListContainersResponse::default())));
        }
        let labels = [
            ("io.kubernetes.container.name", "web"),
            ("io.kubernetes.pod.name", "web-7d9f-x2"),
            ("io.kubernetes.pod.namespace", "shop"),
        ];
        let container = Container {
            id: ID.to_owned(),
            pod_sandbox_id: SANDBOX.to_owned(),
            metadata: Some(ContainerMetadata {
                name: "web".to_owned(),
            }),
            image: Some(ImageSpec {
                image: "sha256:0123".to_owned(),
                user_specified_image: "r.example/shop/web:v7".to_owned(),
            }),
            labels: owned(&labels),
        };
        ready(Ok(Response::new(ListContainersResponse {
            containers: vec![container],
        })))
    }
}

struct Sandboxes;

impl UnaryService<ListRequest> for Sandboxes {
    type Response = ListSandboxesResponse;
    type Future = std::future::Ready<Result<Response<Self::Response>, Status>>;

    fn call(&mut self, request: Request<ListRequest>) -> Self::Future {
        let asked = request.into_inner().filter.unwrap_or_default().id;
        let sandbox = Sandbox {
            labels: owned(&[("app.kubernetes.io/name", "shop-web"), ("team", "checkout")]),
            annotations: owned(&[("example.org/revision", "17")]),
        };
        let items = match asked == SANDBOX {
            true => vec![sandbox],
            false => Vec::new(),
        };
        ready(Ok(Response::new(ListSandboxesResponse { items })))
    }
}

fn owned(pairs: &[(&str, &str)]) -> HashMap<String, String> {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

#[tokio::test]
async fn containers_and_their_pods_are_told() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("cri.sock");
    let listener = UnixListener::bind(&path).expect("a socket");
    let server = Server::builder().add_service(Runtime);
    tokio::spawn(server.serve_with_incoming(UnixListenerStream::new(listener)));
    let options = KubernetesOptions {
        pod_labels: vec!["team".to_owned(), "absent".to_owned()],
        pod_annotations: vec!["example.org/revision".to_owned()],
        ..KubernetesOptions::default()
    };
    let facts = ask(&path, ID, &options)
        .await
        .expect("an answer")
        .expect("it");
    let pod = facts.pod.clone().expect("a pod");
    assert_eq!(pod.pod, "web-7d9f-x2");
    assert_eq!(pod.namespace, "shop");
    assert_eq!(pod.container, "web");
    assert_eq!(facts.image, "r.example/shop/web:v7");
    assert_eq!(facts.app.as_deref(), Some("shop-web"));
    let chosen = [
        ("k8s.pod.label.team", "checkout"),
        ("k8s.pod.annotation.example.org/revision", "17"),
    ];
    let chosen = chosen.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(facts.labels, chosen);
    let other = ID.replace('3', "4");
    let answer = ask(&path, &other, &options).await;
    assert_eq!(answer.expect("an answer"), None);
}

#[tokio::test]
async fn a_runtime_that_is_away_is_an_error() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let options = KubernetesOptions::default();
    let error = ask(&directory.path().join("cri.sock"), ID, &options).await;
    let error = error.expect_err("nobody is there").to_string();
    assert!(error.contains("cannot connect"), "{error}");
}
