//! Messages of the protocols that clients of others speak, most of them Pyroscope's: made of `proto/` at build time, in
//! protobuf and in protobuf's JSON. Field numbers are facts of the wire; the files are ours.
//!
//! Nothing here knows a profile, a store or a request.
#![forbid(unsafe_code)]
#![expect(
    clippy::allow_attributes,
    reason = "what is generated allows what its generators do"
)]

macro_rules! package {
    ($(#[$what:meta])* $name:ident, $file:literal) => {
        package!($(#[$what])* $name, v1, $file);
    };
    ($(#[$what:meta])* $name:ident, $version:ident, $file:literal) => {
        $(#[$what])*
        // Generated: its lints are those of its generators.
        #[allow(clippy::all, clippy::pedantic, clippy::nursery, missing_docs, unused_qualifications)]
        pub mod $name {
            /// The first version, which is the only one.
            pub mod $version {
                include!(concat!(env!("OUT_DIR"), "/", $file, ".rs"));
                include!(concat!(env!("OUT_DIR"), "/", $file, ".serde.rs"));
            }
        }
    };
}

package!(
    /// Profiles to look at.
    adhocprofiles,
    "adhocprofiles.v1"
);
package!(
    /// What a server can do.
    capabilities,
    "capabilities.v1"
);
/// What clients of Chalk call.
pub mod chalk {
    package!(
        /// How they take snapshots of a fleet.
        manager,
        "chalk.manager.v1"
    );
}
package!(
    /// The pprof profile.
    google,
    "google.v1"
);
/// What clients of Parca call.
pub mod parca {
    package!(
        /// How they push.
        profilestore,
        v1alpha1,
        "parca.profilestore.v1alpha1"
    );
}
package!(
    /// How the SDKs push.
    push,
    "push.v1"
);
package!(
    /// What Grafana asks.
    querier,
    "querier.v1"
);
package!(
    /// Settings by tenant.
    settings,
    "settings.v1"
);
package!(
    /// What the services share.
    types,
    "types.v1"
);
package!(
    /// The version of the API.
    version,
    "version.v1"
);

/// The descriptors of all messages and services, a `FileDescriptorSet`.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

#[cfg(test)]
mod tests {
    use prost::Message;

    use crate::querier::v1::SelectMergeStacktracesRequest;
    use crate::types::v1::LabelNamesRequest;
    use crate::types::v1::Point;

    #[test]
    fn json_is_that_of_protobuf() {
        let text = r#"{"profileTypeID":"a","label_selector":"{}","start":"12","end":13,"maxNodes":5,"new":[1]}"#;
        let read: SelectMergeStacktracesRequest = serde_json::from_str(text).expect("JSON");
        assert_eq!(read.profile_type_id, "a");
        assert_eq!(read.label_selector, "{}");
        assert_eq!((read.start, read.end, read.max_nodes), (12, 13, Some(5)));
        let point = Point {
            value: 1.5,
            timestamp: 1_700_000_000_000,
            ..Point::default()
        };
        let written = serde_json::to_string(&point).expect("JSON");
        assert_eq!(written, r#"{"value":1.5,"timestamp":"1700000000000"}"#);
    }

    #[test]
    fn numbers_of_fields_are_those_of_the_wire() {
        let request = LabelNamesRequest {
            matchers: vec!["{}".to_owned()],
            start: 1,
            end: 2,
        };
        assert_eq!(request.encode_to_vec(), b"\x0a\x02{}\x10\x01\x18\x02");
    }
}
