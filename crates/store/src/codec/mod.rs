//! The canonical, versioned encoding of a [`Profile`](candela_model::Profile): what the log holds.
//!
//! Numbers are LEB128 varints, signed ones in zig-zag; strings are a length and UTF-8. The tables
//! stand in the order in which they refer to each other: strings, functions, mappings, locations,
//! stacks, label sets, links, series. The first byte is the version.

mod decode;
mod encode;
mod varint;

pub(crate) use decode::decode_profile;
pub(crate) use encode::encode_profile;

/// The version written. A reader refuses later ones.
pub(crate) const PAYLOAD_VERSION: u8 = 1;

/// Bytes that are no encoded profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CodecError {
    /// The bytes end inside a value.
    #[error("the payload ends after {0} bytes, in the middle of a value")]
    Truncated(usize),
    /// A value that cannot be.
    #[error("{what} at byte {offset} of the payload is out of range")]
    OutOfRange {
        /// Which value.
        what: &'static str,
        /// Where it ends.
        offset: usize,
    },
    /// A payload of a later version.
    #[error("payload version {found} is newer than {PAYLOAD_VERSION}; run a newer candela")]
    Newer {
        /// The version found.
        found: u8,
    },
}

#[cfg(test)]
mod tests {
    use candela_model::FrameKind;
    use candela_model::LabelValue;
    use candela_model::Labels;
    use candela_model::Link;
    use candela_model::Location;
    use candela_model::Mapping;
    use candela_model::Profile;
    use candela_model::ProfileSeries;
    use candela_model::Sample;
    use candela_model::SampleLabel;
    use candela_model::ValidationError;

    use super::*;

    fn rich_profile() -> Profile {
        let mut profile = Profile::default();
        let symbols = &mut profile.symbols;
        let file = symbols.strings.intern("/usr/bin/demo");
        let build_id = symbols.strings.intern("c0ffee");
        let mapping = symbols.intern_mapping(Mapping {
            memory_start: 0x40_0000,
            memory_limit: u64::MAX,
            file_offset: 0x1000,
            file,
            build_id,
        });
        let outer = symbols.intern_function("outer", "_Z5outer", "a.c", 10);
        let inner = symbols.intern_function("inner", "", "a.c", 20);
        let location = Location::new(FrameKind::Native, 0xffff_ffff_8000_0000).in_mapping(mapping);
        let inlined = symbols.intern_location(&location, &[(inner, 21, 3), (outer, 12, 0)]);
        let bare = symbols.intern_location(&Location::new(FrameKind::Kernel, 7), &[]);
        let unit = symbols.strings.intern("bytes");
        let stack = profile.stacks.intern(&[inlined, bare]);
        let label_set = profile.label_sets.intern(vec![
            SampleLabel::text(file, build_id),
            SampleLabel {
                key: build_id,
                value: LabelValue::Number { value: -5, unit },
            },
        ]);
        let link = profile.intern_link(Link {
            trace_id: [7; 16],
            span_id: [9; 8],
        });
        let profile_type = "memory:inuse_space:bytes:space:bytes"
            .parse()
            .expect("a type");
        let labels = Labels::from_pairs([("service_name", "demo"), ("pod", "p-1")]);
        let mut series = ProfileSeries::new(labels, profile_type);
        series.start_ns = 1_700_000_000_000_000_000;
        series.duration_ns = 10_000_000_000;
        series.period = 524_288;
        series.samples.push(Sample {
            stack,
            value: i64::MIN,
            label_set,
            link,
            time_ns: 1_700_000_000_500_000_000,
        });
        series.samples.push(Sample::new(stack, i64::MAX));
        profile.series.push(series);
        profile
    }

    #[test]
    fn everything_round_trips() {
        let profile = rich_profile();
        let bytes = encode_profile(&profile);
        let decoded = decode_profile(&bytes).expect("own encoding");
        assert_eq!(decoded.series, profile.series);
        assert_eq!(decoded.links, profile.links);
        assert_eq!(decoded.symbols.functions(), profile.symbols.functions());
        assert_eq!(decoded.symbols.mappings(), profile.symbols.mappings());
        assert_eq!(decoded.symbols.locations(), profile.symbols.locations());
        assert!(
            decoded
                .symbols
                .strings
                .iter()
                .eq(profile.symbols.strings.iter())
        );
        assert!(decoded.stacks.iter().eq(profile.stacks.iter()));
        assert!(decoded.label_sets.iter().eq(profile.label_sets.iter()));
        assert_eq!(encode_profile(&decoded), bytes, "the encoding is canonical");
    }

    #[test]
    fn every_prefix_is_an_error_and_no_panic() {
        let bytes = encode_profile(&rich_profile());
        for end in 0..bytes.len() {
            assert!(decode_profile(&bytes[..end]).is_err(), "{end} bytes");
        }
    }

    #[test]
    fn flipped_bytes_never_make_dangling_ids() {
        let bytes = encode_profile(&rich_profile());
        for position in 0..bytes.len() {
            for flip in [1, 0x80, 0xff] {
                let mut broken = bytes.clone();
                broken[position] ^= flip;
                let Ok(profile) = decode_profile(&broken) else {
                    continue;
                };
                let has_dangling_id = matches!(
                    profile.validate(),
                    Err(ValidationError::DanglingId { .. }
                        | ValidationError::DanglingLocation { .. })
                );
                assert!(!has_dangling_id, "byte {position} ^ {flip:#x}");
            }
        }
    }

    #[test]
    fn later_versions_are_refused() {
        let mut bytes = encode_profile(&rich_profile());
        bytes[0] = PAYLOAD_VERSION + 1;
        let error = decode_profile(&bytes).expect_err("a later version");
        assert_eq!(error, CodecError::Newer { found: 2 });
    }
}
