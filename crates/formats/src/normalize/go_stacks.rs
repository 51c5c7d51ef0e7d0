//! Stacks that Go's runtime cut: it keeps the innermost frames only, so that the same function stands
//! below `main` in one sample and below nothing in the next.

use candela_model::FrameKind;
use candela_model::LocationId;
use candela_model::Profile;
use candela_model::StackId;
use hashbrown::HashMap;
use hashbrown::HashSet;

use crate::normalize::names::is_go_file;
use crate::options::Limits;
use crate::report::Report;

/// How many frames the runtime keeps, until Go 1.22 and since.
const RUNTIME_LIMITS: [usize; 2] = [64, 128];

/// How many frames at the outer end of a cut stack must stand in a whole one, one behind the other,
/// to be the same place of the program.
const OVERLAP: usize = 16;

/// What a frame takes in the table of stacks.
const BYTES_PER_FRAME: usize = size_of::<LocationId>();

/// By how much the frames of a profile may grow: enough for stacks of 64 frames that were 512. A
/// request may have many profiles, so that a bound of each alone is none of all.
const MOST_GROWTH: usize = 8;

/// What stands outside of a run of frames in whole stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outside {
    /// In all of them the same: the whole stack and where its rest begins.
    One(StackId, usize),
    Several,
}

/// Where the callers that a cut stack misses stand in a whole one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Callers {
    whole: StackId,
    /// How many frames stand inside of them.
    rest: usize,
}

impl Callers {
    /// Leaf first.
    pub(crate) fn of(self, profile: &Profile) -> &[LocationId] {
        &profile.stacks.get(self.whole)[self.rest..]
    }
}

/// The stacks that were cut and the callers that they miss. A stack stays as it is when whole ones
/// tell different callers, as those of recursive functions do, when it would be deeper than the
/// limit, and when the callers of others took the memory there is: a deep stack and many short ones
/// that end in it take far less before than after.
pub(crate) fn mended_stacks(
    profile: &Profile,
    limits: &Limits,
    report: &mut Report,
) -> HashMap<StackId, Callers> {
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
            outermost.is_some_and(|&outermost| {
                !roots.contains(&outermost) && is_of_go(profile, outermost)
            })
        })
        .collect();
    let mut wanted: HashMap<&[LocationId], Option<Outside>> = HashMap::new();
    // Most runs of whole stacks end elsewhere, and looking at one frame is less than hashing sixteen.
    let mut ends_wanted = vec![false; profile.symbols.locations().len()];
    for &stack in &cut {
        if let Some(run) = profile.stacks.get(stack).last_chunk::<OVERLAP>() {
            wanted.insert(run, None);
            ends_wanted[run[OVERLAP - 1].index()] = true;
        }
    }
    if wanted.is_empty() {
        return mended;
    }
    for &stack in &whole {
        let locations = profile.stacks.get(stack);
        for (start, run) in locations.windows(OVERLAP).enumerate() {
            if !ends_wanted[run[OVERLAP - 1].index()] {
                continue;
            }
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
    let frames: usize = all().map(|stack| profile.stacks.get(stack).len()).sum();
    let mut frames_left = frames
        .saturating_mul(MOST_GROWTH)
        .min(limits.inflated_bytes() / BYTES_PER_FRAME);
    for &stack in &cut {
        let locations = profile.stacks.get(stack);
        let run = locations.last_chunk::<OVERLAP>();
        let outside = run.and_then(|run| wanted.get(&run[..]).copied().flatten());
        let Some(Outside::One(whole, rest)) = outside else {
            continue;
        };
        let callers = Callers { whole, rest };
        let depth = locations.len() + callers.of(profile).len();
        // Each mended stack is a copy of its own, inner frames and all.
        if depth <= limits.max_stack_depth
            && let Some(left) = frames_left.checked_sub(depth)
        {
            frames_left = left;
            mended.insert(stack, callers);
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

/// Whether a frame is of Go: other runtimes have stacks of as many frames, and cut none.
fn is_of_go(profile: &Profile, location: LocationId) -> bool {
    let symbols = &profile.symbols;
    let mut functions = symbols.lines(location).iter();
    symbols.location(location).kind == FrameKind::Go
        || functions.any(|line| {
            let function = symbols.function(line.function);
            is_go_file(symbols.strings.get(function.file))
        })
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
        let mended = mended_stacks(&profile, &Limits::default(), &mut report);
        let callers = mended[&StackId(2)].of(&profile);
        let addresses = callers
            .iter()
            .map(|&id| profile.symbols.location(id).address);
        assert!(addresses.eq(81..=100));
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
            let mended = mended_stacks(&profile(&stacks), &Limits::default(), &mut report);
            assert!(mended.is_empty());
            assert_eq!(report.count("go_stacks_cut"), 1);
        }
    }

    #[test]
    fn a_whole_stack_of_just_the_limit_stays() {
        let whole: Vec<u64> = (60..=100).collect();
        let as_long: Vec<u64> = (37..=100).collect();
        let mut report = Report::default();
        let profile = profile(&[whole, as_long]);
        assert!(mended_stacks(&profile, &Limits::default(), &mut report).is_empty());
        assert_eq!(report.notes, []);
    }

    #[test]
    fn what_mended_stacks_take_is_bounded() {
        // A hundred stacks that differ in their leaf alone and miss the same callers.
        let mended = |root, max_inflated_bytes, max_stack_depth| {
            let whole: Vec<u64> = (60..=root).collect();
            let cut = (0..100).map(|leaf| std::iter::once(2000 + leaf).chain(18..=80).collect());
            let stacks: Vec<Vec<u64>> = std::iter::once(whole).chain(cut).collect();
            let limits = Limits {
                max_inflated_bytes,
                max_stack_depth,
                ..Limits::default()
            };
            let mut report = Report::default();
            let mended = mended_stacks(&profile(&stacks), &limits, &mut report);
            let left = report.count("go_stacks_cut");
            assert_eq!(left, 100 - mended.len() as u64);
            mended.len()
        };
        const DEPTH: usize = 64 + 320;
        assert_eq!(mended(400, 1 << 20, DEPTH), 100);
        assert_eq!(mended(400, 1 << 20, DEPTH - 1), 0);
        assert_eq!(mended(400, DEPTH * 4 * 7, DEPTH), 7);
        assert_eq!(mended(400, DEPTH * 4 * 7 - 1, DEPTH), 6);
        // All frames, 941 of the whole one and 64 of each cut one, eight times.
        assert_eq!(mended(1000, 1 << 20, 1000), (941 + 6400) * 8 / (64 + 920));
    }
}
