//! What the tests of answers share.

use std::path::Path;
use std::sync::Arc;

use candela_model::FrameKind;
use candela_model::LabelValue;
use candela_model::Labels;
use candela_model::Location;
use candela_model::Mapping;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use candela_model::SampleLabel;
use candela_query::Engine;
use candela_query::Query;
use candela_store::ManualClock;
use candela_store::Store;
use candela_store::StoreOptions;
use candela_store::SyncMode;

pub(crate) const NOON_NS: i64 = 1_732_190_400_000_000_000;
pub(crate) const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";

/// A clock that stands still, and merges only when a test asks for them.
pub(crate) fn options(directory: &Path) -> StoreOptions {
    StoreOptions {
        sync: SyncMode::Os,
        segment_bytes: 1 << 20,
        max_age: None,
        compaction_cpu_percent: 0,
        clock: Arc::new(ManualClock::at(NOON_NS)),
        ..StoreOptions::new(directory)
    }
}

/// A profile with an inlined function, an address, a number label and a mapping.
pub(crate) fn profile(service: &str, profile_type: &str, value: i64) -> Profile {
    let mut profile = Profile::default();
    let symbols = &mut profile.symbols;
    let file = symbols.strings.intern("/usr/bin/demo");
    let build_id = symbols.strings.intern("c0ffee");
    let mapping = symbols.intern_mapping(Mapping {
        memory_start: 0x1000,
        memory_limit: 0x2000,
        file_offset: 0x10,
        file,
        build_id,
    });
    let outer = symbols.intern_function("outer", "_Z5outer", "a.c", 10);
    let inner = symbols.intern_function("inner", "", "a.c", 20);
    let place = Location::new(FrameKind::Rust, 0x1234).in_mapping(mapping);
    let symbolized = symbols.intern_location(&place, &[(inner, 21, 3), (outer, 12, 0)]);
    let place = Location::new(FrameKind::Native, 0x1500).in_mapping(mapping);
    let bare = symbols.intern_location(&place, &[]);
    let key = symbols.strings.intern("request_bytes");
    let unit = symbols.strings.intern("bytes");
    let value_label = LabelValue::Number { value: 512, unit };
    let stack = profile.stacks.intern(&[symbolized, bare]);
    let label_set = profile.label_sets.intern(vec![SampleLabel {
        key,
        value: value_label,
    }]);
    let labels = Labels::from_pairs([("service_name", service), ("host", "h1")]);
    let mut series = ProfileSeries::new(labels, profile_type.parse().expect("a type"));
    series.start_ns = NOON_NS;
    series.duration_ns = 10_000_000_000;
    series.period = 10;
    series.samples.push(Sample {
        label_set,
        ..Sample::new(stack, value)
    });
    profile.series.push(series);
    profile
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime")
        .block_on(future)
}

pub(crate) fn engine(
    directory: &Path,
    profiles: Vec<Profile>,
    is_flushed: bool,
) -> (Engine, Store) {
    let store = Store::open(options(directory)).expect("opens");
    block_on(async {
        for profile in profiles {
            store.append("t", profile).await.expect("appends");
            if is_flushed {
                store.flush().await.expect("flushes");
            }
        }
    });
    (Engine::new(store.clone()), store)
}

pub(crate) fn query(selector: &str, profile_type: &str) -> Query {
    Query {
        selector: selector.parse().expect("a selector"),
        profile_type: profile_type.to_owned(),
        ..Query::new("t")
    }
}
