//! Sample labels that belong to a stack of the window: what its threads waited for and worked on.

use candela_model::LabelSetId;
use candela_model::Profile;
use candela_model::SampleLabel;
use hashbrown::HashMap;

use crate::symbolize::kernel::KernelNames;
use crate::symbolize::off_cpu_reason::OffCpuReason;
use crate::window::Space;
use crate::window::Window;
use crate::window::WindowStack;

/// The labels of each stack, by its position in the window.
pub(crate) fn stack_labels(
    window: &Window,
    has_reasons: bool,
    kernel: &mut KernelNames,
    profile: &mut Profile,
) -> Vec<LabelSetId> {
    let mut sets = if has_reasons {
        reason_labels(window, kernel, profile)
    } else if window.locks.is_empty() {
        vec![LabelSetId::default(); window.stacks.len()]
    } else {
        lock_labels(window, profile)
    };
    add_work_labels(window, profile, &mut sets);
    sets
}

/// What programs label their work with, beside what is there.
fn add_work_labels(window: &Window, profile: &mut Profile, sets: &mut [LabelSetId]) {
    let strings = &mut profile.symbols.strings;
    let contexts = window.contexts.list().iter().map(|context| {
        let labels = context.labels.iter();
        let labels = labels
            .map(|(key, value)| SampleLabel::text(strings.intern(key), strings.intern(value)));
        labels.collect()
    });
    let contexts: Vec<Vec<SampleLabel>> = contexts.collect();
    let mut merged: HashMap<(LabelSetId, u32), LabelSetId> = HashMap::new();
    for (stack, set) in window.stacks.iter().zip(sets) {
        let Some(context) = stack.context else {
            continue;
        };
        *set = *merged.entry((*set, context)).or_insert_with(|| {
            let mut labels = contexts[context as usize].clone();
            labels.extend(profile.label_sets.get(*set));
            profile.label_sets.intern(labels)
        });
    }
}

fn reason_labels(
    window: &Window,
    kernel: &mut KernelNames,
    profile: &mut Profile,
) -> Vec<LabelSetId> {
    let places: Vec<Option<OffCpuReason>> = window
        .places
        .iter()
        .map(|place| match window.spaces[place.space as usize] {
            Space::Kernel => {
                let symbol = kernel.find(place.address);
                symbol.and_then(|symbol| OffCpuReason::of_function(symbol.name))
            }
            Space::Object(_) | Space::Process { .. } | Space::Separator => None,
        })
        .collect();
    let reason = |stack: &WindowStack| {
        if stack.was_preempted {
            return OffCpuReason::Preempted;
        }
        let mut from_inside = window.own_places_of(stack).iter();
        let found = from_inside.find_map(|&place| places[place as usize]);
        found.unwrap_or(OffCpuReason::Other)
    };
    let key = profile.symbols.strings.intern("off_cpu_reason");
    let mut sets: HashMap<OffCpuReason, LabelSetId> = HashMap::new();
    let mut set_of = |stack| {
        let reason = reason(stack);
        *sets.entry(reason).or_insert_with(|| {
            let name = profile.symbols.strings.intern(reason.name());
            let labels = vec![SampleLabel::text(key, name)];
            profile.label_sets.intern(labels)
        })
    };
    window.stacks.iter().map(&mut set_of).collect()
}

fn lock_labels(window: &Window, profile: &mut Profile) -> Vec<LabelSetId> {
    let strings = &mut profile.symbols.strings;
    let (address_key, holder_key) = (
        strings.intern("lock_address"),
        strings.intern("lock_holder"),
    );
    let mut sets = Vec::new();
    for lock in &window.locks {
        let strings = &mut profile.symbols.strings;
        let address = strings.intern(&format!("{:#x}", lock.address));
        let mut labels = vec![SampleLabel::text(address_key, address)];
        if let Some(holder) = &lock.holder {
            labels.push(SampleLabel::text(holder_key, strings.intern(holder)));
        }
        sets.push(profile.label_sets.intern(labels));
    }
    let set_of = |stack: &WindowStack| match stack.lock {
        Some(lock) => sets[lock as usize],
        None => LabelSetId::default(),
    };
    window.stacks.iter().map(set_of).collect()
}
