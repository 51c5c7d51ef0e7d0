//! How the rounds end: at random moments, and at each place that the store names.

use std::time::Duration;

/// One round: load, a death, maybe a second one while the server starts again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    pub(crate) death: Death,
    pub(crate) death_at_start: Option<Place>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Death {
    /// `kill -9` after so long under load.
    After(Duration),
    At(Place),
}

/// A failpoint and the visit, from 1, at which the server ends there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) name: &'static str,
    pub(crate) visit: u64,
}

/// Numbers that depend on the seed alone (SplitMix64).
#[derive(Debug)]
pub(crate) struct Random(pub(crate) u64);

#[cfg(feature = "failpoints")]
const FAILPOINTS: &[&str] = candela_store::FAILPOINTS;
#[cfg(not(feature = "failpoints"))]
const FAILPOINTS: &[&str] = &[];

impl Place {
    pub(crate) fn variable(self) -> String {
        format!("{}:{}", self.name, self.visit)
    }
}

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.next() % (to - from)
    }
}

/// So many rounds; random moments and failpoints take turns, and no failpoint comes a second time
/// before all have.
pub(crate) fn rounds(count: usize, random: &mut Random) -> Vec<Round> {
    let mut places: Vec<&'static str> = Vec::new();
    let mut rounds = Vec::new();
    for number in 0..count {
        if number % 2 == 0 || FAILPOINTS.is_empty() {
            rounds.push(Round {
                death: Death::After(Duration::from_millis(random.between(5, 700))),
                death_at_start: None,
            });
            continue;
        }
        if places.is_empty() {
            // Merging comes too seldom to wait for it; the tests of the store call it.
            let often = |name: &&&str| !name.starts_with("compact.");
            places.extend(FAILPOINTS.iter().filter(often));
        }
        let name = places.swap_remove(random.between(0, places.len() as u64) as usize);
        rounds.push(round_at(name, random));
    }
    rounds
}

/// A start comes to some places only after a certain death.
fn round_at(name: &'static str, random: &mut Random) -> Round {
    let at = |name, visit| Death::At(Place { name, visit });
    let death = match name {
        "recover.take_back.manifest" | "recover.take_back.after" => at("catalog.publish.before", 1),
        "replay.each" => at("log.apply.after", 50),
        "replay.cut.after" => at("log.write.torn", 20),
        "recover.before" | "recover.settle.after" | "recover.after" => {
            Death::After(Duration::from_millis(random.between(5, 300)))
        }
        _ => {
            return Round {
                death: at(name, random.between(1, 4)),
                death_at_start: None,
            };
        }
    };
    Round {
        death,
        death_at_start: Some(Place { name, visit: 1 }),
    }
}
