//! Profiles that are large by their labels.

use candela_model::LabelValue;
use candela_model::Profile;
use candela_model::Sample;
use candela_model::SampleLabel;

use crate::common::CPU;
use crate::common::profile;

/// One stack, each sample with a label of its own.
pub(crate) fn labeled(service: &str, samples: i64) -> Profile {
    let mut profile = profile(service, CPU, 1);
    let strings = &mut profile.symbols.strings;
    let (key, unit) = (strings.intern("request_bytes"), strings.intern("bytes"));
    let stack = profile.series[0].samples[0].stack;
    for value in 0..samples {
        let value = LabelValue::Number { value, unit };
        let label_set = profile.label_sets.intern(vec![SampleLabel { key, value }]);
        profile.series[0].samples.push(Sample {
            label_set,
            ..Sample::new(stack, 1)
        });
    }
    profile
}
