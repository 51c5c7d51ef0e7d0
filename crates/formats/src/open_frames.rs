//! Profiles of events: frames that open and close at points of time.

use candela_model::LocationId;
use hashbrown::HashMap;

use crate::error::ReadError;
use crate::options::Limits;
use crate::report::Report;

/// The frames that are open, and how long each combination was.
#[derive(Debug)]
pub(crate) struct OpenFrames<'a> {
    limits: &'a Limits,
    /// Each distinct stack: its last frame, the stack before it and its depth. The first is empty.
    stacks: Vec<(u32, usize, usize)>,
    /// How long each of the stacks was the one.
    pub(crate) durations: Vec<f64>,
    children: HashMap<(usize, u32), usize>,
    /// The open frames, each with the stack that it makes.
    open: Vec<(u32, usize)>,
    now: f64,
}

/// Steps that events out of order may still take: each makes the frames above it stand elsewhere. All
/// threads of an input share them.
#[derive(Debug)]
pub(crate) struct Disorder {
    left: usize,
    limit: usize,
}

impl Disorder {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            left: limits.max_messages,
            limit: limits.max_messages,
        }
    }

    fn step(&mut self) -> Result<(), ReadError> {
        self.left = self.left.checked_sub(1).ok_or(ReadError::TooLarge {
            what: "the number of frames that are open over frames closed out of order",
            limit: self.limit,
        })?;
        Ok(())
    }
}

impl<'a> OpenFrames<'a> {
    pub(crate) fn new(start: f64, limits: &'a Limits) -> Self {
        Self {
            limits,
            stacks: vec![(0, 0, 0)],
            durations: vec![0.0],
            children: HashMap::new(),
            open: Vec::new(),
            now: start,
        }
    }

    /// Lets time pass, to the end or the next event.
    pub(crate) fn pass(&mut self, until: f64, report: &mut Report) {
        if until < self.now {
            report.note(
                "times_out_of_order",
                "events before their predecessors were taken as simultaneous with them",
            );
            return;
        }
        if let Some(&(_, stack)) = self.open.last() {
            self.durations[stack] += until - self.now;
        }
        self.now = until;
    }

    pub(crate) fn open(&mut self, frame: u32) -> Result<(), ReadError> {
        let parent = self.open.last().map_or(0, |&(_, stack)| stack);
        let stack = self.child(parent, frame)?;
        self.open.push((frame, stack));
        Ok(())
    }

    /// Closes the innermost frame of this function. Others may be open inside of it: they stay open,
    /// and stand on what is below it from now on, for which events out of order pay.
    pub(crate) fn close(
        &mut self,
        frame: u32,
        disorder: &mut Disorder,
        report: &mut Report,
    ) -> Result<(), ReadError> {
        if self.open.last().is_some_and(|&(open, _)| open == frame) {
            self.open.pop();
            return Ok(());
        }
        let mut above = 0;
        let place = loop {
            disorder.step()?;
            above += 1;
            let Some(place) = self.open.len().checked_sub(above) else {
                report.note(
                    "closed_without_open",
                    "ends of frames that had not begun were left out",
                );
                return Ok(());
            };
            if self.open[place].0 == frame {
                break place;
            }
        };
        report.note(
            "closed_out_of_order",
            "frames ended before the frames they had called; those went on below their caller",
        );
        let moved = self.open.split_off(place);
        for (frame, _) in moved.into_iter().skip(1) {
            self.open(frame)?;
        }
        Ok(())
    }

    /// How many frames are open.
    pub(crate) fn open_count(&self) -> usize {
        self.open.len()
    }

    /// The frames of a stack, root first.
    pub(crate) fn path(
        &self,
        stack: usize,
        frames: &[LocationId],
        root_first: &mut Vec<LocationId>,
    ) {
        root_first.clear();
        let mut at = stack;
        while at != 0 {
            let (frame, parent, _) = self.stacks[at];
            root_first.push(frames[frame as usize]);
            at = parent;
        }
        root_first.reverse();
    }

    fn child(&mut self, parent: usize, frame: u32) -> Result<usize, ReadError> {
        let depth = self.stacks[parent].2 + 1;
        // One more than may be, so that the cut is seen where stacks are cut.
        if depth > self.limits.max_stack_depth.saturating_add(1) {
            return Ok(parent);
        }
        if let Some(&known) = self.children.get(&(parent, frame)) {
            return Ok(known);
        }
        // Each may become a sample. An event out of order can make as many as frames are open.
        if self.stacks.len() > self.limits.max_samples {
            return Err(ReadError::TooLarge {
                what: "the number of distinct stacks of events",
                limit: self.limits.max_samples,
            });
        }
        self.stacks.push((frame, parent, depth));
        self.durations.push(0.0);
        let made = self.stacks.len() - 1;
        self.children.insert((parent, frame), made);
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_that_disorder_makes_are_bounded() {
        let limits = Limits {
            max_samples: 9,
            ..Limits::default()
        };
        let mut open = OpenFrames::new(0.0, &limits);
        let mut report = Report::default();
        let mut disorder = Disorder::new(&limits);
        for frame in 0..5 {
            assert!(open.open(frame).is_ok());
        }
        // Four frames stand elsewhere, then three more.
        assert!(open.close(0, &mut disorder, &mut report).is_ok());
        let error = open
            .close(1, &mut disorder, &mut report)
            .expect_err("too many");
        let expected = "the number of distinct stacks of events exceeds the limit of 9";
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}
