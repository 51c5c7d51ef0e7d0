//! Buckets that are tried before daemons write to them.

use crate::support;
use crate::support::NOBODY;
use crate::support::block_on;
use crate::support::moto::BUCKET;
use crate::support::moto::Moto;
use candela_daemons::BucketCheck;
use candela_daemons::BucketCheckError;
use candela_daemons::BucketOptions;
use candela_daemons::StaticKeys;
use candela_daemons::check_bucket;
use candela_fleet::Destination;

fn check(bucket: &str, options: &BucketOptions) -> Result<BucketCheck, BucketCheckError> {
    let destination = Destination::parse(bucket, Some("perf-data")).expect("a bucket");
    block_on(check_bucket(&destination, options))
}

fn options(endpoint: &str) -> BucketOptions {
    BucketOptions {
        endpoint: Some(endpoint.to_owned()),
        region: Some("us-east-1".to_owned()),
        keys: Some(StaticKeys {
            id: "testing".to_owned(),
            secret: "testing".to_owned(),
        }),
        ..BucketOptions::default()
    }
}

#[test]
fn a_service_that_is_not_there_is_named() {
    let error = check(&format!("s3://{BUCKET}"), &options(NOBODY)).expect_err("nobody is there");
    assert!(
        matches!(error, BucketCheckError::Unreachable { .. }),
        "{error:?}"
    );
    let message = error.to_string();
    assert!(message.contains(NOBODY), "{message}");
    assert!(
        message.contains("look at the network") && !message.contains('\n'),
        "{message}"
    );
    let without_scheme = options("127.0.0.1:9000");
    let error = check(&format!("s3://{BUCKET}"), &without_scheme).expect_err("no URL");
    assert!(
        matches!(error, BucketCheckError::Settings { .. }),
        "{error:?}"
    );
}

mod host {
    use super::*;

    #[test]
    fn a_bucket_that_is_there_is_left_as_it_was() {
        let Some(moto) = Moto::start(false) else {
            support::skipped("`scripts/install-deps test` installs moto");
            return;
        };
        let checked = check(&format!("s3://{BUCKET}"), &options(&moto.endpoint()));
        assert_eq!(checked, Ok(BucketCheck::Removed));
        assert_eq!(moto.keys(), [""; 0]);
        let error =
            check("s3://nowhere-at-all", &options(&moto.endpoint())).expect_err("no bucket");
        assert!(
            matches!(error, BucketCheckError::NoBucket { .. }),
            "{error:?}"
        );
        let message = error.to_string();
        let begins = "s3://nowhere-at-all/perf-data/candela-bucket-check/written-by-a-check.txt has no bucket: ";
        assert!(message.starts_with(begins), "{message}");
        assert!(
            message.ends_with("make it, or correct export_to"),
            "{message}"
        );
    }

    #[test]
    fn keys_that_are_nobodys_are_refused() {
        let Some(moto) = Moto::start(true) else {
            support::skipped("`scripts/install-deps test` installs moto");
            return;
        };
        let error = check(&format!("s3://{BUCKET}"), &options(&moto.endpoint()));
        let error = error.expect_err("nobody made these keys");
        assert!(
            matches!(error, BucketCheckError::NotAllowed { .. }),
            "{error:?}"
        );
        let message = error.to_string();
        assert!(message.contains("status code: 403"), "{message}");
        assert!(
            message.contains("set the credentials of one that has it"),
            "{message}"
        );
    }
}
