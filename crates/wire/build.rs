//! Makes the messages of `proto/`, and their JSON, which is that of protobuf.

use std::error::Error;
use std::path::PathBuf;

use prost::Message;

const FILES: [&str; 10] = [
    "adhocprofiles/v1/adhocprofiles.proto",
    "capabilities/v1/feature_flags.proto",
    "chalk/manager/v1/observability.proto",
    "google/v1/profile.proto",
    "parca/profilestore/v1alpha1/profilestore.proto",
    "push/v1/push.proto",
    "querier/v1/querier.proto",
    "settings/v1/settings.proto",
    "types/v1/types.proto",
    "version/v1/version.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(FILES, ["proto"])?;
    let packages: Vec<String> = descriptors
        .file
        .iter()
        .map(|file| format!(".{}", file.package()))
        .collect();
    let encoded = descriptors.encode_to_vec();
    let folder = PathBuf::from(std::env::var("OUT_DIR")?);
    // Clients make theirs of it, and a test compares.
    std::fs::write(folder.join("descriptors.bin"), &encoded)?;
    prost_build::Config::new()
        .bytes([
            ".parca.profilestore.v1alpha1.RawSample.raw_profile",
            ".push.v1.RawSample.raw_profile",
        ])
        .compile_fds(descriptors)?;
    pbjson_build::Builder::new()
        .register_descriptors(&encoded)?
        // As upstream does: clients are newer than servers at times.
        .ignore_unknown_fields()
        .build(&packages)?;
    Ok(())
}
