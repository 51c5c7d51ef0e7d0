//! Servers that speak the protocols of buckets, and a bucket that fails when it is told to.

pub(crate) mod faults;
pub(crate) mod gcs;
pub(crate) mod moto;
pub(crate) mod s3;
pub(crate) mod serve;
