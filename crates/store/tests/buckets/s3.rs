//! S3 over HTTP with signatures checked, its objects in a directory.

use std::fs;
use std::path::Path;

use candela_store::Backend;
use candela_store::S3Options;
use candela_store::Secret;
use hyper_util::rt::TokioExecutor;
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto::Builder;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;

use super::serve::BUCKET;
use super::serve::serve;

pub(crate) const KEY_ID: &str = "AKIDTEST";
pub(crate) const SECRET: &str = "a secret of tests";

/// A server whose bucket is a folder of `root`.
pub(crate) fn start(root: &Path) -> S3Options {
    fs::create_dir_all(root.join(BUCKET)).expect("makes the bucket");
    let files = FileSystem::new(root).expect("a directory");
    let mut service = S3ServiceBuilder::new(files);
    service.set_auth(SimpleAuth::from_single(KEY_ID, SECRET));
    let service = service.build();
    let address = serve(async move |listener| {
        loop {
            let Ok((socket, _)) = listener.accept().await else {
                continue;
            };
            let service = service.clone();
            tokio::spawn(async move {
                let builder = Builder::new(TokioExecutor::new());
                // A client that goes away is none of our business.
                let _ = builder
                    .serve_connection(TokioIo::new(socket), service)
                    .await;
            });
        }
    });
    S3Options {
        bucket_name: BUCKET.to_owned(),
        endpoint: Some(address.to_string()),
        region: Some("eu-central-1".to_owned()),
        access_key_id: Some(KEY_ID.to_owned()),
        secret_access_key: Some(Secret::new(SECRET)),
        insecure: true,
        prefix: "prod/eu".to_owned(),
        ..S3Options::default()
    }
}

pub(crate) fn backend(root: &Path) -> Backend {
    Backend::S3(start(root))
}
