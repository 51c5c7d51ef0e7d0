//! Sample labels: the thread, the context of Pyroscope's agent, the name of the span.

use candela_model::LabelSetId;
use candela_model::Profile;
use candela_model::SampleLabel;
use candela_model::StringId;
use hashbrown::HashMap;

use crate::jfr::losses::Losses;
use crate::jfr::snapshot::Snapshot;
use crate::options::Limits;

const THREAD_LABEL: &str = "thread_name";
const SPAN_NAME_LABEL: &str = "span_name";

/// What the labels of a sample are made from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct LabelKey {
    pub(crate) thread: StringId,
    /// The number of a context; 0 is none.
    pub(crate) context: i64,
    /// The number of the string that names the span; 0 is none.
    pub(crate) span_name: i64,
}

/// Makes each combination once.
#[derive(Debug)]
pub(crate) struct LabelMaker {
    snapshot: Snapshot,
    limits: Limits,
    known: HashMap<LabelKey, LabelSetId>,
}

impl LabelMaker {
    pub(crate) fn new(snapshot: Snapshot, limits: Limits) -> Self {
        Self {
            snapshot,
            limits,
            known: HashMap::new(),
        }
    }

    #[inline]
    pub(crate) fn label_set(
        &mut self,
        key: LabelKey,
        profile: &mut Profile,
        losses: &mut Losses,
    ) -> LabelSetId {
        if key == LabelKey::default() {
            return LabelSetId(0);
        }
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let made = self.make(key, profile, losses);
        self.known.insert(key, made);
        made
    }

    fn make(&self, key: LabelKey, profile: &mut Profile, losses: &mut Losses) -> LabelSetId {
        let mut labels = Vec::new();
        if key.context != 0 {
            self.push_context(key.context as u64, &mut labels, profile, losses);
        }
        if key.span_name != 0 {
            let name = self.intern(key.span_name as u64, profile, losses);
            let label = profile.symbols.strings.intern(SPAN_NAME_LABEL);
            labels.extend(name.map(|name| SampleLabel::text(label, name)));
        }
        // What the program itself says of its thread counts more than the thread's name.
        let label = profile.symbols.strings.intern(THREAD_LABEL);
        let is_given = labels.iter().any(|given| given.key == label);
        if key.thread != StringId(0) && !is_given {
            labels.push(SampleLabel::text(label, key.thread));
        }
        profile.label_sets.intern(labels)
    }

    fn push_context(
        &self,
        context: u64,
        labels: &mut Vec<SampleLabel>,
        profile: &mut Profile,
        losses: &mut Losses,
    ) {
        let Some(context) = self.snapshot.context(context) else {
            losses.unknown_labels += 1;
            return;
        };
        losses.budget.pay_labels(context.len());
        if losses.budget.check().is_err() {
            return;
        }
        for &(name, value) in context {
            let name = self.intern(name, profile, losses);
            let value = self.intern(value, profile, losses);
            if let (Some(name), Some(value)) = (name, value) {
                labels.push(SampleLabel::text(name, value));
            }
        }
    }

    fn intern(&self, number: u64, profile: &mut Profile, losses: &mut Losses) -> Option<StringId> {
        let Some(text) = self.snapshot.string(number, &self.limits) else {
            losses.unknown_labels += 1;
            return None;
        };
        let kept = self.limits.cut(&text);
        losses.cut_texts += u64::from(kept.len() < text.len());
        losses.budget.pay_text(kept.len());
        Some(profile.symbols.strings.intern(kept))
    }
}
