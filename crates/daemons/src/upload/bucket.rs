//! Buckets of S3 and of Google Cloud Storage.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use candela_fleet::BucketKind;
use candela_fleet::Destination;
use object_store::BackoffConfig;
use object_store::ClientOptions;
use object_store::Error as StoreError;
use object_store::ObjectStore;
use object_store::ObjectStoreExt;
use object_store::RetryConfig;
use object_store::aws::AmazonS3Builder;
use object_store::aws::AmazonS3ConfigKey;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::gcp::GoogleConfigKey;
use object_store::path::Path;

use crate::error::UploadError;
use crate::upload::ObjectSink;
use crate::upload::identity::Identity;
use crate::upload::identity::OfClient;

/// One try of an object with its answer: a hundred megabytes at four megabits a second.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(240);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Beyond two quick tries the outbox has the patience, which is longer and can be stopped.
const QUICK_RETRIES: usize = 2;

/// The longest text of a provider that is told: their errors have pages of XML.
const LONGEST_REASON: usize = 300;

/// What differs from what the environment says. By default everything is as the provider's tools have it.
///
/// S3: `AWS_REGION`, `AWS_ENDPOINT_URL`; keys from `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, else by web
/// identity (`AWS_WEB_IDENTITY_TOKEN_FILE` with `AWS_ROLE_ARN`: IRSA), else of the container or of the machine.
/// Google: `GOOGLE_APPLICATION_CREDENTIALS`, `GOOGLE_SERVICE_ACCOUNT`, the login of `gcloud`, else of the machine;
/// `GOOGLE_BASE_URL` is another service, and a key with `disable_oauth` is for one that does not ask who we are.
#[derive(Clone, Debug, Default)]
pub struct BucketOptions {
    /// URL of another service than the provider's, which speaks its protocol.
    pub endpoint: Option<String>,
    /// The region of S3.
    pub region: Option<String>,
    /// Keys of S3, for services that have nothing better.
    pub keys: Option<StaticKeys>,
    /// The JSON of a Google service account's key.
    pub service_account_key: Option<StaticKeys>,
}

/// A secret. Its `Debug` does not show it.
#[derive(Clone)]
pub struct StaticKeys {
    /// Who; empty where the secret says it itself.
    pub id: String,
    /// The proof.
    pub secret: String,
}

/// A bucket of a document.
#[derive(Debug)]
pub struct Bucket {
    /// As the document has it.
    name: String,
    client: Client,
}

#[derive(Debug)]
struct Client {
    store: Box<dyn ObjectStore>,
    /// `None` where requests say nothing of who we are.
    identity: Option<Box<dyn Identity>>,
}

impl fmt::Debug for StaticKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

impl Bucket {
    /// A client of a document's bucket. Nothing is asked yet.
    ///
    /// # Errors
    /// [`UploadError::Settings`].
    pub fn connect(
        destination: &Destination,
        options: &BucketOptions,
    ) -> Result<Self, UploadError> {
        let scheme = match destination.kind {
            BucketKind::S3 => "s3",
            BucketKind::Gcs => "gs",
        };
        let name = format!("{scheme}://{}", destination.bucket);
        if let Some(endpoint) = endpoint_without_scheme(destination.kind, options) {
            let reason = format!(
                "the endpoint {endpoint:?} has no scheme; write http://{endpoint} or https://{endpoint}"
            );
            return Err(UploadError::Settings {
                bucket: name,
                reason,
            });
        }
        let client = match destination.kind {
            BucketKind::S3 => s3(&destination.bucket, options),
            BucketKind::Gcs => gcs(&destination.bucket, options),
        };
        match client {
            Ok(client) => Ok(Self { name, client }),
            Err(error) => Err(UploadError::Settings {
                bucket: name,
                reason: in_one_line(&error.to_string()),
            }),
        }
    }

    /// Removes an object.
    ///
    /// # Errors
    /// [`UploadError`].
    pub(crate) async fn remove(&self, key: &str) -> Result<(), UploadError> {
        let (object, path) = self.object(key)?;
        let removed = self.client.store.delete(&path).await;
        removed.map_err(|error| told(object, &error))
    }

    /// What an object is called in messages, and its path.
    fn object(&self, key: &str) -> Result<(String, Path), UploadError> {
        let object = format!("{}/{key}", self.name);
        let path = Path::parse(key).map_err(|error| UploadError::Settings {
            bucket: object.clone(),
            reason: error.to_string(),
        })?;
        Ok((object, path))
    }
}

#[async_trait]
impl ObjectSink for Bucket {
    /// One request: both providers show an object when they have all of it.
    async fn put(&self, key: &str, bytes: Bytes) -> Result<(), UploadError> {
        let (object, path) = self.object(key)?;
        if let Some(identity) = &self.client.identity
            && let Err(error) = identity.prove().await
        {
            let reason = in_one_line(&error.to_string());
            return Err(UploadError::NoCredentials { object, reason });
        }
        let put = self.client.store.put(&path, bytes.into()).await;
        put.map(drop).map_err(|error| told(object, &error))
    }
}

/// What the client would panic at, with its first request.
fn endpoint_without_scheme(kind: BucketKind, options: &BucketOptions) -> Option<String> {
    let of_environment = || match kind {
        BucketKind::S3 => {
            AmazonS3Builder::from_env().get_config_value(&AmazonS3ConfigKey::Endpoint)
        }
        BucketKind::Gcs => {
            GoogleCloudStorageBuilder::from_env().get_config_value(&GoogleConfigKey::BaseUrl)
        }
    };
    let endpoint = options.endpoint.clone().or_else(of_environment);
    endpoint.filter(|endpoint| !endpoint.contains("://"))
}

fn s3(bucket: &str, options: &BucketOptions) -> Result<Client, StoreError> {
    let mut builder = match &options.keys {
        // What is in the environment may belong to other keys: a session token, say.
        Some(keys) => AmazonS3Builder::new()
            .with_access_key_id(&keys.id)
            .with_secret_access_key(&keys.secret),
        None => AmazonS3Builder::from_env(),
    };
    if let Some(region) = &options.region {
        builder = builder.with_region(region);
    }
    if let Some(endpoint) = &options.endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    let endpoint = builder.get_config_value(&AmazonS3ConfigKey::Endpoint);
    // No certificate covers a bucket's name with dots as a part of the host, and only AWS has such hosts for sure.
    let is_virtual_hosted = endpoint.is_none() && !bucket.contains('.');
    let is_signed = !is_said(builder.get_config_value(&AmazonS3ConfigKey::SkipSignature));
    let store = builder
        .with_bucket_name(bucket)
        .with_virtual_hosted_style_request(is_virtual_hosted)
        .with_client_options(client_options(endpoint.as_deref()))
        .with_retry(quick_retries())
        .build()?;
    let identity =
        is_signed.then(|| Box::new(OfClient::new(store.credentials())) as Box<dyn Identity>);
    Ok(Client {
        store: Box::new(store),
        identity,
    })
}

fn gcs(bucket: &str, options: &BucketOptions) -> Result<Client, StoreError> {
    let mut builder = match &options.service_account_key {
        Some(key) => GoogleCloudStorageBuilder::new().with_service_account_key(&key.secret),
        None => GoogleCloudStorageBuilder::from_env(),
    };
    if let Some(endpoint) = &options.endpoint {
        builder = builder.with_base_url(endpoint);
    }
    let endpoint = builder.get_config_value(&GoogleConfigKey::BaseUrl);
    let is_signed = !is_said(builder.get_config_value(&GoogleConfigKey::SkipSignature));
    let store = builder
        .with_bucket_name(bucket)
        .with_client_options(client_options(endpoint.as_deref()))
        .with_retry(quick_retries())
        .build()?;
    let identity =
        is_signed.then(|| Box::new(OfClient::new(store.credentials())) as Box<dyn Identity>);
    Ok(Client {
        store: Box::new(store),
        identity,
    })
}

/// Whether a flag is anything but off: `true`, `1`, `yes`.
fn is_said(flag: Option<String>) -> bool {
    flag.is_some_and(|flag| !matches!(flag.as_str(), "false" | "0" | "no" | "off" | "n"))
}

fn client_options(endpoint: Option<&str>) -> ClientOptions {
    let agent = concat!("candela/", env!("CARGO_PKG_VERSION"));
    ClientOptions::new()
        .with_timeout(REQUEST_TIMEOUT)
        .with_connect_timeout(CONNECT_TIMEOUT)
        // Whoever writes http:// means it.
        .with_allow_http(endpoint.is_some_and(|url| url.starts_with("http://")))
        .with_user_agent(object_store::HeaderValue::from_static(agent))
}

fn quick_retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(1),
            base: 2.0,
        },
        max_retries: QUICK_RETRIES,
        retry_timeout: REQUEST_TIMEOUT,
    }
}

fn told(object: String, error: &StoreError) -> UploadError {
    let reason = in_one_line(&error.to_string());
    match error {
        StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. } => {
            UploadError::NotAllowed { object, reason }
        }
        StoreError::NotFound { .. } => UploadError::NoBucket { object, reason },
        _ => UploadError::Unavailable { object, reason },
    }
}

fn in_one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    let end = line.floor_char_boundary(LONGEST_REASON);
    line[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let options = BucketOptions {
            keys: Some(StaticKeys {
                id: "hunter1".to_owned(),
                secret: "hunter2".to_owned(),
            }),
            ..BucketOptions::default()
        };
        let destination = Destination::parse("s3://profiles", None).expect("a bucket");
        let bucket = Bucket::connect(&destination, &options).expect("a client");
        assert!(!format!("{options:?}").contains("hunter"));
        assert!(!format!("{bucket:?}").contains("hunter2"), "{bucket:?}");
    }

    #[test]
    fn an_endpoint_without_a_scheme_is_refused_before_anything_is_asked() {
        let options = BucketOptions {
            endpoint: Some("127.0.0.1:9000".to_owned()),
            ..BucketOptions::default()
        };
        let destination = Destination::parse("s3://profiles", None).expect("a bucket");
        let error = Bucket::connect(&destination, &options).expect_err("it would panic");
        assert!(error.to_string().contains("no scheme"), "{error}");
    }

    /// Whoever gives credentials, and gives none.
    struct Nobody;

    #[async_trait]
    impl Identity for Nobody {
        async fn prove(&self) -> Result<(), StoreError> {
            Err(StoreError::Generic {
                store: "S3",
                source: "no token\n in /var/run".into(),
            })
        }
    }

    #[test]
    fn who_has_no_credentials_is_told_so_and_the_bucket_is_not_asked() {
        let bucket = Bucket {
            name: "s3://profiles".to_owned(),
            client: Client {
                store: Box::new(object_store::memory::InMemory::new()),
                identity: Some(Box::new(Nobody)),
            },
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.expect("a runtime");
        let put = runtime.block_on(bucket.put("a/b", Bytes::from_static(b"text")));
        let error = put.expect_err("nobody");
        assert!(
            matches!(error, UploadError::NoCredentials { .. }),
            "{error:?}"
        );
        let message = error.to_string();
        let begins = "s3://profiles/a/b is not uploaded yet: there are no credentials for it: ";
        assert!(
            message.starts_with(begins) && message.contains("no token in /var/run"),
            "{message}"
        );
        let path = Path::from("a/b");
        let head = runtime.block_on(bucket.client.store.head(&path));
        assert!(head.is_err(), "nothing was written");
    }

    #[test]
    fn a_key_that_is_none_is_refused() {
        let options = BucketOptions {
            service_account_key: Some(StaticKeys {
                id: String::new(),
                secret: "{".to_owned(),
            }),
            ..BucketOptions::default()
        };
        let destination = Destination::parse("gs://profiles", None).expect("a bucket");
        let error = Bucket::connect(&destination, &options).expect_err("no key");
        assert!(
            error
                .to_string()
                .starts_with("gs://profiles cannot be written to: "),
            "{error}"
        );
    }
}
