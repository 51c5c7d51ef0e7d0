//! Changes of sound inputs that depend on a seed alone.

/// Numbers that are the same in each run (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

/// Values at which lengths and signs turn over.
const INTERESTING: [u8; 8] = [0, 1, 0x7f, 0x80, 0xff, 0x0a, 0x22, 0x2a];
/// Inputs do not grow without bound.
const MAX_BYTES: usize = 64 << 10;

impl Random {
    /// The numbers of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below the bound; 0 for a bound of 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// One of the seeds with one to eight changes.
#[must_use]
pub fn mutated(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut input = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(8) {
        change(&mut input, seeds, random);
    }
    input.truncate(MAX_BYTES);
    input
}

fn change(input: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    let position = random.below(input.len());
    let length = 1 + random.below(16);
    let end = (position + length).min(input.len());
    match random.below(8) {
        0 => {
            if let Some(byte) = input.get_mut(position) {
                *byte ^= 1 << random.below(8);
            }
        }
        1 => {
            if let Some(byte) = input.get_mut(position) {
                *byte = INTERESTING[random.below(INTERESTING.len())];
            }
        }
        2 => {
            if let Some(byte) = input.get_mut(position) {
                *byte = byte.wrapping_add(random.below(9) as u8).wrapping_sub(4);
            }
        }
        3 => drop(input.drain(position..end)),
        4 => {
            let piece: Vec<u8> = input[position..end].to_vec();
            let target = random.below(input.len() + 1);
            input.splice(target..target, piece);
        }
        5 => {
            let bytes: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
            input.splice(position..position, bytes);
        }
        6 => input.truncate(position),
        _ => {
            let other = &seeds[random.below(seeds.len())];
            let from = random.below(other.len());
            let to = (from + random.below(64)).min(other.len());
            input.splice(position..end, other[from..to].iter().copied());
        }
    }
}
