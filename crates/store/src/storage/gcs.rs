//! A bucket of Google Cloud Storage.

use std::sync::Arc;

use object_store::ObjectStore;
use object_store::gcp::GoogleCloudStorageBuilder;

use super::client;
use super::secret::Secret;

/// A bucket of Google Cloud Storage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GcsOptions {
    /// The bucket.
    pub bucket_name: String,
    /// The JSON of a service account's key, or the path of its file. By default Google's usual
    /// places: `GOOGLE_APPLICATION_CREDENTIALS`, the login of `gcloud`, the machine.
    pub service_account: Option<Secret>,
    /// The folder of the bucket; empty for all of it.
    pub prefix: String,
}

impl GcsOptions {
    /// The client.
    pub(super) fn connect(&self) -> Result<Arc<dyn ObjectStore>, String> {
        if self.bucket_name.is_empty() {
            return Err("store.gcs.bucket_name is not set".to_owned());
        }
        let mut is_plain = false;
        let builder = match self.service_account.as_ref().map(Secret::expose) {
            None => GoogleCloudStorageBuilder::from_env(),
            Some(key) if key.starts_with('{') => {
                is_plain = is_plain_service(key);
                GoogleCloudStorageBuilder::new().with_service_account_key(key)
            }
            Some(path) => {
                let key = std::fs::read_to_string(path).map_err(|error| {
                    format!(
                        "store.gcs.service_account is neither JSON nor a file that can be read: {error}"
                    )
                })?;
                is_plain = is_plain_service(&key);
                GoogleCloudStorageBuilder::new().with_service_account_key(key)
            }
        };
        let client = builder
            .with_bucket_name(&self.bucket_name)
            .with_client_options(client::options().with_allow_http(is_plain))
            .with_retry(client::retries())
            .build();
        let client = client.map_err(|error| format!("store.gcs: {error}"))?;
        Ok(Arc::new(client))
    }
}

/// Whether a key is for a service of another place without TLS (`gcs_base_url`): emulators are, and
/// what is in front of a service inside a cluster.
fn is_plain_service(key: &str) -> bool {
    let key: Option<serde_json::Value> = serde_json::from_str(key).ok();
    let url = key.as_ref().and_then(|key| key["gcs_base_url"].as_str());
    url.is_some_and(|url| url.starts_with("http://"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_a_key_is_refused_without_showing_it() {
        let options = |text: &str| GcsOptions {
            bucket_name: "profiles".to_owned(),
            service_account: Some(Secret::new(text)),
            ..GcsOptions::default()
        };
        let error = options(r#"{"private_key": "hunter2""#).connect();
        let error = error.expect_err("no JSON");
        assert!(error.starts_with("store.gcs: "), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
        let error = options("/nonexistent/hunter2").connect();
        let error = error.expect_err("no file");
        assert!(error.contains("neither JSON nor a file"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
        let error = GcsOptions::default().connect().expect_err("no bucket");
        assert!(error.contains("bucket_name is not set"), "{error}");
    }
}
