//! A profile with all that traces of Perfetto keep.

use candela_model::FrameKind;
use candela_model::LabelSetId;
use candela_model::Labels;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::Mapping;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use candela_model::SampleLabel;

/// A profile with what the format has a place for.
pub(crate) fn example(samples: &[(u8, i64, u8, i64)]) -> Profile {
    let mut profile = Profile::default();
    let symbols = &mut profile.symbols;
    let file = symbols.strings.intern("/usr/lib/libwork.so");
    let build_id = symbols.strings.intern("00ff12");
    let mapping = symbols.intern_mapping(Mapping {
        file,
        build_id,
        ..Mapping::default()
    });
    let locations: Vec<LocationId> = (0..8_u8)
        .map(|number| {
            let function = symbols.intern_function(&format!("f{number}"), "", "work.rs", 0);
            let kind = FrameKind::from_number(number);
            let line = (function, u32::from(number) * 3, 0);
            let lines = if number == 7 { vec![] } else { vec![line] };
            let location = Location::new(kind, 0x100 + u64::from(number)).in_mapping(mapping);
            symbols.intern_location(&location, &lines)
        })
        .collect();
    let label_sets: Vec<LabelSetId> = (0..3)
        .map(|number| {
            let strings = &mut profile.symbols.strings;
            let unit = candela_model::StringId(0);
            let mut labels = Vec::new();
            if number > 0 {
                for (key, value) in [("pid", 7), ("thread_id", 10 + number)] {
                    let key = strings.intern(key);
                    let value = candela_model::LabelValue::Number { value, unit };
                    labels.push(SampleLabel { key, value });
                }
                let name = strings.intern(&format!("thread-{number}"));
                labels.push(SampleLabel::text(strings.intern("thread_name"), name));
                let name = strings.intern("app");
                let key = strings.intern("process_executable_name");
                labels.push(SampleLabel::text(key, name));
            }
            profile.label_sets.intern(labels)
        })
        .collect();
    for (id, period) in [
        ("process_cpu:cpu:nanoseconds:cpu:nanoseconds", 10_000_000),
        ("memory:alloc_space:bytes:space:bytes", 512 << 10),
        ("block:contentions:count:contentions:count", 0),
    ] {
        let mut series = ProfileSeries::new(Labels::default(), id.parse().unwrap());
        series.start_ns = 1_700_000_000_000_000_000;
        series.duration_ns = 60_000_000_000;
        series.period = period;
        for &(stack, value, labels, offset) in samples {
            let depth = usize::from(stack % 5);
            let first = usize::from(stack) % locations.len();
            let leaf_first: Vec<LocationId> = (0..depth)
                .map(|level| locations[(first + 3 * level) % locations.len()])
                .collect();
            let time_ns = if offset == 0 {
                0
            } else {
                series.start_ns + offset
            };
            series.samples.push(Sample {
                label_set: label_sets[usize::from(labels) % 3],
                time_ns,
                ..Sample::new(profile.stacks.intern(&leaf_first), value)
            });
        }
        profile.series.push(series);
    }
    profile
}
