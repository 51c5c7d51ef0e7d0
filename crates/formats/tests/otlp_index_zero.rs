//! OTLP dictionaries without an entry that stands for nothing.

use crate::common::folded_lines;
use candela_formats::ExportProfilesServiceRequest;
use candela_formats::Format;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_formats::decode_otlp;
use candela_formats::detect;
use candela_model::LinkId;
use candela_model::Profile;
use candela_model::StringId;
use opentelemetry_proto::tonic::profiles::v1development as wire;
use prost::Message;

fn decode(request: &ExportProfilesServiceRequest) -> (Profile, Report) {
    decode_otlp(request, &ReadOptions::default()).unwrap()
}

/// What the Collector's pdata v0.165.0 writes when it merges two profiles into an empty one: the entries that are used, in
/// the order in which they are met, and none that stands for nothing.
fn merged_request() -> ExportProfilesServiceRequest {
    let line = |function_index| wire::Line {
        function_index,
        ..wire::Line::default()
    };
    let profile = |stack_index| wire::Profile {
        sample_type: Some(wire::ValueType {
            type_strindex: 1,
            unit_strindex: 2,
        }),
        period_type: Some(wire::ValueType::default()),
        samples: vec![wire::Sample {
            stack_index,
            values: vec![700],
            ..wire::Sample::default()
        }],
        time_unix_nano: 1_700_000_000_000_000_000,
        duration_nano: 10_000_000_000,
        ..wire::Profile::default()
    };
    let strings = ["first", "inuse_space", "bytes", "second"];
    ExportProfilesServiceRequest {
        resource_profiles: vec![wire::ResourceProfiles {
            scope_profiles: vec![wire::ScopeProfiles {
                profiles: vec![profile(0), profile(1)],
                ..wire::ScopeProfiles::default()
            }],
            ..wire::ResourceProfiles::default()
        }],
        dictionary: Some(wire::ProfilesDictionary {
            string_table: strings.map(str::to_owned).to_vec(),
            function_table: [0, 3]
                .map(|name_strindex| wire::Function {
                    name_strindex,
                    ..wire::Function::default()
                })
                .to_vec(),
            location_table: [0, 1]
                .map(|function| wire::Location {
                    lines: vec![line(function)],
                    ..wire::Location::default()
                })
                .to_vec(),
            stack_table: [0, 1]
                .map(|location| wire::Stack {
                    location_indices: vec![location],
                })
                .to_vec(),
            ..wire::ProfilesDictionary::default()
        }),
    }
}

/// Go's encoder of the Collector writes fields from the last to the first.
#[test]
fn a_request_that_starts_with_its_dictionary_is_told() {
    let request = merged_request();
    let only = |resource_profiles, dictionary| ExportProfilesServiceRequest {
        resource_profiles,
        dictionary,
    };
    let dictionary = only(Vec::new(), request.dictionary.clone()).encode_to_vec();
    let rest = only(request.resource_profiles.clone(), None).encode_to_vec();
    let whole = [dictionary.clone(), rest].concat();
    assert_eq!(detect(&whole), Some(Format::Otlp));
    assert_eq!(
        detect(&dictionary[..dictionary.len() - 2]),
        Some(Format::Otlp)
    );
    // A sample of pprof has lists in its first fields, too.
    assert_eq!(
        detect(b"\x12\x07\x0a\x01\x01\x12\x02\x80\x01"),
        Some(Format::Pprof)
    );
}

#[test]
fn index_0_is_an_entry_where_it_stands_for_something() {
    let mut request = merged_request();
    let (profile, report) = decode(&request);
    assert_eq!(report.rejected, []);
    let head = "{service_name=\"unknown_service\"} memory:inuse_space:bytes:space:bytes []";
    let expected = ["first", "second"].map(|name| format!("{head} {name} 700"));
    assert_eq!(folded_lines(&profile), expected);
    let files = profile.symbols.functions().iter();
    assert!(
        files
            .map(|function| function.file)
            .all(|file| file == StringId(0))
    );

    // A span that is not there costs less than a wrong one.
    let dictionary = request.dictionary.as_mut().unwrap();
    dictionary.link_table = vec![wire::Link {
        trace_id: vec![1; 16],
        span_id: vec![2; 8],
    }];
    let (profile, _) = decode(&request);
    let mut samples = profile.series.iter().flat_map(|series| &series.samples);
    assert!(samples.all(|sample| sample.link == LinkId(0)));

    // Of mappings, an address needs the one that it is in; a frame with names does not.
    let dictionary = request.dictionary.as_mut().unwrap();
    dictionary.mapping_table = vec![wire::Mapping {
        filename_strindex: 3,
        ..wire::Mapping::default()
    }];
    dictionary.location_table[0].lines.clear();
    dictionary.location_table[0].address = 0x1000;
    let (profile, _) = decode(&request);
    let symbols = &profile.symbols;
    let files = symbols.locations().iter().map(|location| {
        let mapping = symbols.mapping(location.mapping);
        (location.address, symbols.strings.get(mapping.file))
    });
    assert_eq!(files.collect::<Vec<_>>(), [(0x1000, "second"), (0, "")]);

    // What a profile refers to and is not there costs that profile alone.
    request.dictionary.as_mut().unwrap().function_table.pop();
    let (profile, report) = decode(&request);
    assert_eq!(profile.series.len(), 1);
    assert_eq!(report.rejected_profiles(), 1);
    request.dictionary.as_mut().unwrap().string_table.clear();
    let (profile, report) = decode(&request);
    assert_eq!(profile.series, []);
    assert_eq!(report.rejected_profiles(), 2);
}
