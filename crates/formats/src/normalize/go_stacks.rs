//! Stacks that Go's runtime cut: it keeps the innermost frames only, so that the same function stands
//! below `main` in one sample and below nothing in the next.

use candela_model::LocationId;
use candela_model::Profile;
use candela_model::StackId;
use hashbrown::HashMap;
use hashbrown::HashSet;

use crate::report::Report;

/// How many frames the runtime keeps, until Go 1.22 and since.
const RUNTIME_LIMITS: [usize; 2] = [64, 128];

/// How many frames at the outer end of a cut stack must stand in a whole one, one behind the other,
/// to be the same place of the program.
const OVERLAP: usize = 16;

/// What stands outside of a run of frames in whole stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outside {
    /// In all of them the same: the whole stack and where its rest begins.
    One(StackId, usize),
    Several,
}

/// The stacks that were cut and what they were, leaf first. A stack stays as it is when whole ones tell
/// different callers, as those of recursive functions do.
pub(crate) fn mended_stacks(
    profile: &Profile,
    report: &mut Report,
) -> HashMap<StackId, Vec<LocationId>> {
    let mut mended = HashMap::new();
    let all = || (0..profile.stacks.len()).map(StackId::from_index);
    let (candidates, whole): (Vec<StackId>, Vec<StackId>) =
        all().partition(|&stack| has_runtime_limit(profile, stack));
    // A stack may have just as many frames as the limit without being cut.
    let roots: HashSet<LocationId> = whole
        .iter()
        .filter_map(|&stack| profile.stacks.get(stack).last().copied())
        .collect();
    let cut: Vec<StackId> = candidates
        .into_iter()
        .filter(|&stack| {
            let outermost = profile.stacks.get(stack).last();
            outermost.is_some_and(|outermost| !roots.contains(outermost))
        })
        .collect();
    let mut wanted: HashMap<&[LocationId], Option<Outside>> = HashMap::new();
    for &stack in &cut {
        if let Some(run) = profile.stacks.get(stack).last_chunk::<OVERLAP>() {
            wanted.insert(run, None);
        }
    }
    if wanted.is_empty() {
        return mended;
    }
    for &stack in &whole {
        let locations = profile.stacks.get(stack);
        for (start, run) in locations.windows(OVERLAP).enumerate() {
            if let Some(known) = wanted.get_mut(run) {
                let rest = start + OVERLAP;
                *known = Some(match *known {
                    None => Outside::One(stack, rest),
                    Some(Outside::One(other, other_rest))
                        if profile.stacks.get(other)[other_rest..] == locations[rest..] =>
                    {
                        Outside::One(other, other_rest)
                    }
                    Some(_) => Outside::Several,
                });
            }
        }
    }
    for &stack in &cut {
        let locations = profile.stacks.get(stack);
        let run = locations.last_chunk::<OVERLAP>();
        let outside = run.and_then(|run| wanted.get(&run[..]).copied().flatten());
        if let Some(Outside::One(other, rest)) = outside {
            let missing = &profile.stacks.get(other)[rest..];
            mended.insert(stack, [locations, missing].concat());
        }
    }
    report.note_many(
        "go_stacks_mended",
        "stacks that the Go runtime had cut got their callers from whole ones",
        mended.len() as u64,
    );
    report.note_many(
        "go_stacks_cut",
        "stacks that the Go runtime had cut stay without their callers",
        (cut.len() - mended.len()) as u64,
    );
    mended
}

/// Whether a stack has as many frames as the runtime keeps. Old versions count locations, newer ones
/// what is inlined as well.
fn has_runtime_limit(profile: &Profile, stack: StackId) -> bool {
    let locations = profile.stacks.get(stack);
    if locations.len() < OVERLAP {
        return false;
    }
    let frames = locations
        .iter()
        .map(|&location| profile.symbols.lines(location).len().max(1));
    RUNTIME_LIMITS.contains(&locations.len()) || RUNTIME_LIMITS.contains(&frames.sum())
}

#[cfg(test)]
mod tests {
    use candela_model::FrameKind;
    use candela_model::Location;

    use super::*;

    /// Stacks of addresses, leaf first.
    fn profile(stacks: &[Vec<u64>]) -> Profile {
        let mut profile = Profile::default();
        for stack in stacks {
            let locations: Vec<LocationId> = stack
                .iter()
                .map(|&address| {
                    let location = Location::new(FrameKind::Go, address);
                    profile.symbols.intern_location(&location, &[])
                })
                .collect();
            profile.stacks.intern(&locations);
        }
        profile
    }

    #[test]
    fn cut_stacks_get_their_callers_back() {
        // Frame 100 is the root; the cut stack misses 81 to 100.
        let whole: Vec<u64> = (60..=100).collect();
        let cut: Vec<u64> = (17..=80).collect();
        let profile = profile(&[whole, cut]);
        let mut report = Report::default();
        let mended = mended_stacks(&profile, &mut report);
        let stack = &mended[&StackId(2)];
        let addresses = stack.iter().map(|&id| profile.symbols.location(id).address);
        assert!(addresses.eq(17..=100));
        assert_eq!(report.count("go_stacks_mended"), 1);
    }

    #[test]
    fn what_is_not_sure_stays() {
        let cut: Vec<u64> = (17..=80).collect();
        let one: Vec<u64> = (60..=100).collect();
        let other: Vec<u64> = (60..=80).chain(200..=210).collect();
        let unrelated: Vec<u64> = (300..=340).collect();
        for stacks in [vec![cut.clone(), one, other], vec![cut, unrelated]] {
            let mut report = Report::default();
            assert!(mended_stacks(&profile(&stacks), &mut report).is_empty());
            assert_eq!(report.count("go_stacks_cut"), 1);
        }
    }

    #[test]
    fn a_whole_stack_of_just_the_limit_stays() {
        let whole: Vec<u64> = (60..=100).collect();
        let as_long: Vec<u64> = (37..=100).collect();
        let mut report = Report::default();
        assert!(mended_stacks(&profile(&[whole, as_long]), &mut report).is_empty());
        assert_eq!(report.notes, []);
    }
}
