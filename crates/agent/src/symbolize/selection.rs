//! Which of a window's samples are in its profile.

use std::sync::Arc;

use candela_model::Labels;
use hashbrown::HashMap;

use crate::filters::SampleFilters;
use crate::window::Window;

/// What the rules leave of a window.
#[derive(Debug)]
pub(crate) struct Selection {
    /// By stack; none when all are kept.
    kept: Option<Vec<bool>>,
    /// Samples of series that nobody wants.
    pub(crate) excluded: u64,
    /// Samples of series that have too few of them.
    pub(crate) below_min: u64,
}

// === impl Selection ===

impl Selection {
    pub(crate) fn of(window: &Window, filters: &SampleFilters) -> Self {
        let mut selection = Self {
            kept: None,
            excluded: 0,
            below_min: 0,
        };
        if filters.keep_all_series() {
            return selection;
        }
        let mut samples_of_series: HashMap<&Arc<Labels>, u64> = HashMap::new();
        for stack in &window.stacks {
            let labels = &window.processes[stack.process as usize].labels;
            *samples_of_series.entry(labels).or_default() += stack.samples;
        }
        // Processes are fewer than stacks, and rules dearer than counts.
        let processes = window.processes.iter();
        let wanted: Vec<bool> = processes.map(|it| filters.wants(&it.labels)).collect();
        let mut kept = Vec::with_capacity(window.stacks.len());
        for stack in &window.stacks {
            let process = stack.process as usize;
            let labels = &window.processes[process].labels;
            let is_rare = samples_of_series[labels] < filters.min_samples;
            match (wanted[process], is_rare) {
                (false, _) => selection.excluded += stack.samples,
                (true, true) => selection.below_min += stack.samples,
                (true, false) => {}
            }
            kept.push(wanted[process] && !is_rare);
        }
        selection.kept = Some(kept);
        selection
    }

    /// Whether the samples of a stack are kept.
    pub(crate) fn has(&self, stack: usize) -> bool {
        self.kept.as_ref().is_none_or(|kept| kept[stack])
    }

    /// Whether something may be missing.
    pub(crate) fn is_partial(&self) -> bool {
        self.kept.is_some()
    }

    /// By place, whether a stack that is kept goes through it: nothing else is named.
    pub(crate) fn places(&self, window: &Window) -> Vec<bool> {
        let Some(kept) = &self.kept else {
            return vec![true; window.places.len()];
        };
        let mut places = vec![false; window.places.len()];
        let stacks = window.stacks.iter().zip(kept).filter(|(_, kept)| **kept);
        for (stack, _) in stacks {
            for &place in window.places_of(stack) {
                places[place as usize] = true;
            }
        }
        places
    }
}
