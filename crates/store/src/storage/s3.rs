//! A bucket of S3, or of what speaks its protocol.

use std::sync::Arc;

use object_store::ObjectStore;
use object_store::aws::AmazonS3Builder;

use super::client;
use super::secret::Secret;

/// What AWS calls its hosts.
const AWS_DOMAIN: &str = ".amazonaws.com";

/// A bucket of S3. Without keys they come from where AWS programs look: the environment, a web
/// identity token (`AWS_WEB_IDENTITY_TOKEN_FILE`), the container, the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct S3Options {
    /// The bucket.
    pub bucket_name: String,
    /// Its region; by default `AWS_REGION`, else that of the endpoint, else `us-east-1`.
    pub region: Option<String>,
    /// `host:port` or URL of the service; by default that of AWS in the region.
    pub endpoint: Option<String>,
    /// Who we are.
    pub access_key_id: Option<String>,
    /// The proof of it.
    pub secret_access_key: Option<Secret>,
    /// Plain HTTP.
    pub insecure: bool,
    /// `host/bucket` also where `bucket.host` is usual.
    pub force_path_style: bool,
    /// The folder of the bucket; empty for all of it.
    pub prefix: String,
}

/// How requests find the bucket.
#[derive(Debug, PartialEq, Eq)]
struct Address {
    /// `None` is what AWS has in the region.
    endpoint: Option<String>,
    is_virtual_hosted: bool,
    is_plain: bool,
}

impl S3Options {
    /// The client.
    pub(super) fn connect(&self) -> Result<Arc<dyn ObjectStore>, String> {
        if self.bucket_name.is_empty() {
            return Err("store.s3.bucket_name is not set".to_owned());
        }
        let address = self.address()?;
        let mut builder = match (&self.access_key_id, &self.secret_access_key) {
            // What is in the environment may belong to other keys: a session token, say.
            (Some(id), Some(secret)) => AmazonS3Builder::new()
                .with_access_key_id(id)
                .with_secret_access_key(secret.expose()),
            (None, None) => AmazonS3Builder::from_env(),
            (Some(_), None) => return Err("store.s3.secret_access_key is not set".to_owned()),
            (None, Some(_)) => return Err("store.s3.access_key_id is not set".to_owned()),
        };
        if let Some(region) = self.region.as_deref().or(self.region_of_endpoint()) {
            builder = builder.with_region(region);
        }
        if let Some(endpoint) = &address.endpoint {
            builder = builder.with_endpoint(endpoint);
        }
        let client = builder
            .with_bucket_name(&self.bucket_name)
            .with_virtual_hosted_style_request(address.is_virtual_hosted)
            .with_client_options(client::options().with_allow_http(address.is_plain))
            .with_retry(client::retries())
            .build();
        let client = client.map_err(|error| error.to_string())?;
        Ok(Arc::new(client))
    }

    fn address(&self) -> Result<Address, String> {
        let (scheme, host) = match self.endpoint.as_deref() {
            None => ("https", None),
            Some(endpoint) => match endpoint.split_once("://") {
                None => (if self.insecure { "http" } else { "https" }, Some(endpoint)),
                Some(("https", _)) if self.insecure => {
                    return Err(format!(
                        "store.s3.endpoint {endpoint} is https and store.s3.insecure asks for plain HTTP; drop one"
                    ));
                }
                Some(("http", host)) => ("http", Some(host)),
                Some(("https", host)) => ("https", Some(host)),
                Some((other, _)) => {
                    return Err(format!(
                        "store.s3.endpoint {endpoint} has scheme {other}, which is none of http and https"
                    ));
                }
            },
        };
        let host = host.map(|host| host.trim_end_matches('/'));
        let is_aws = host.is_none_or(|host| host.ends_with(AWS_DOMAIN));
        // No certificate covers a bucket's name with dots as a part of the host.
        let is_virtual_hosted = is_aws && !self.force_path_style && !self.bucket_name.contains('.');
        let endpoint = host.map(|host| {
            if is_virtual_hosted {
                format!("{scheme}://{}.{host}", self.bucket_name)
            } else {
                format!("{scheme}://{host}")
            }
        });
        Ok(Address {
            endpoint,
            is_virtual_hosted,
            is_plain: scheme == "http",
        })
    }

    /// `eu-central-1` of `s3.eu-central-1.amazonaws.com`.
    fn region_of_endpoint(&self) -> Option<&str> {
        let endpoint = self.endpoint.as_deref()?;
        let host = endpoint
            .split_once("://")
            .map_or(endpoint, |(_, host)| host);
        let name = host.trim_end_matches('/').strip_suffix(AWS_DOMAIN)?;
        let region = name.rsplit('.').next()?;
        region.contains('-').then_some(region)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(endpoint: &str) -> S3Options {
        S3Options {
            bucket_name: "profiles".to_owned(),
            endpoint: (!endpoint.is_empty()).then(|| endpoint.to_owned()),
            ..S3Options::default()
        }
    }

    #[test]
    fn aws_is_addressed_by_host_and_others_by_path() {
        let cases = [
            ("", None, true),
            (
                "s3.eu-central-1.amazonaws.com",
                Some("https://profiles.s3.eu-central-1.amazonaws.com"),
                true,
            ),
            ("https://minio:9000/", Some("https://minio:9000"), false),
            ("http://minio:9000", Some("http://minio:9000"), false),
        ];
        for (given, endpoint, is_virtual_hosted) in cases {
            let address = options(given).address().expect(given);
            assert_eq!(address.endpoint.as_deref(), endpoint);
            assert_eq!(address.is_virtual_hosted, is_virtual_hosted, "{given}");
            assert_eq!(address.is_plain, given.starts_with("http:"), "{given}");
        }
        let with_dots = S3Options {
            bucket_name: "my.profiles".to_owned(),
            ..options("")
        };
        assert!(!with_dots.address().expect("valid").is_virtual_hosted);
        let forced = S3Options {
            force_path_style: true,
            ..options("")
        };
        assert!(!forced.address().expect("valid").is_virtual_hosted);
        let plain = S3Options {
            insecure: true,
            ..options("minio:9000")
        };
        let address = plain.address().expect("valid");
        assert_eq!(address.endpoint.as_deref(), Some("http://minio:9000"));
        assert!(address.is_plain);
    }

    #[test]
    fn the_region_of_an_endpoint_of_aws_is_its_region() {
        let region = |endpoint| options(endpoint).region_of_endpoint().map(str::to_owned);
        let of_aws = "https://s3.dualstack.eu-west-1.amazonaws.com";
        assert_eq!(region(of_aws).as_deref(), Some("eu-west-1"));
        assert_eq!(region("s3.amazonaws.com"), None);
        assert_eq!(region("minio.eu-west-1.example"), None);
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let only_id = S3Options {
            access_key_id: Some("id".to_owned()),
            ..options("")
        };
        let both = S3Options {
            insecure: true,
            ..options("https://minio:9000")
        };
        let nameless = S3Options::default();
        let cases = [
            (only_id, "secret_access_key is not set"),
            (both, "drop one"),
            (options("ftp://minio"), "none of http and https"),
            (nameless, "bucket_name is not set"),
        ];
        for (options, part) in cases {
            let error = options.connect().expect_err(part);
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn secrets_are_not_printed() {
        let options = S3Options {
            secret_access_key: Some(Secret::new("hunter2")),
            ..options("")
        };
        assert!(!format!("{options:?}").contains("hunter2"));
    }
}
