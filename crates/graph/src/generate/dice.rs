//! Random choices that are the same on every machine: integers only, drawn from one ChaCha8 stream per clan.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The random choices of one clan.
pub(super) struct Dice(ChaCha8Rng);

impl Dice {
    /// The random stream of clan `clan` in the world `seed`.
    pub(super) fn of(seed: u64, clan: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        bytes[8..14].copy_from_slice(b"family");
        let mut stream = ChaCha8Rng::from_seed(bytes);
        stream.set_stream(clan);
        Self(stream)
    }

    /// A number below `sides`, uniform.
    pub(super) fn below(&mut self, sides: u32) -> u32 {
        ((u64::from(self.0.next_u32()) * u64::from(sides)) >> 32) as u32
    }

    /// `true` with probability `per_mille` / 1000.
    pub(super) fn chance(&mut self, per_mille: u32) -> bool {
        self.below(1000) < per_mille
    }

    /// One of `choices`, which are not empty.
    pub(super) fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u32) as usize]
    }

    /// Shuffles `items`.
    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u32 + 1) as usize);
        }
    }
}
