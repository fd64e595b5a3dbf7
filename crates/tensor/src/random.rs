//! Random numbers that depend only on a key and a position.
//!
//! Dropout and sampling draw the number of element `i` by hashing `i` with the key of the operation. The numbers are
//! therefore the same for any number of threads and on any device, and the backward pass can recompute them instead
//! of storing a mask. Initial weights come from ChaCha streams, one per parameter name.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use ruleguider_support::fnv::fnv;

/// The key of one random operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    pub(crate) low: u32,
    pub(crate) high: u32,
}

impl Key {
    /// The key of operation `number` of the computation `seed`.
    pub fn new(seed: u64, number: u64) -> Key {
        let mut mixed = seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9).wrapping_add(number);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        Key { low: mixed as u32, high: (mixed >> 32) as u32 }
    }

    /// 32 random bits for `position`.
    #[inline(always)]
    pub(crate) fn bits(self, position: u32) -> u32 {
        let mut mixed = position.wrapping_mul(0x9e37_79b9) ^ self.low;
        mixed = (mixed ^ (mixed >> 16)).wrapping_mul(0x7feb_352d);
        mixed = (mixed ^ (mixed >> 15)).wrapping_add(self.high).wrapping_mul(0x846c_a68b);
        mixed ^ (mixed >> 16)
    }

    /// A number strictly between 0 and 1 for `position`.
    #[inline(always)]
    pub(crate) fn uniform(self, position: u32) -> f32 {
        between_0_and_1(self.bits(position))
    }
}

/// The largest number below 1.
const BELOW_1: f32 = 1.0 - f32::EPSILON / 2.0;

/// The number strictly between 0 and 1 that `bits` stand for. The last of 2²⁴ values would be rounded to 1, of which
/// the logarithm of the logarithm does not exist.
#[inline(always)]
fn between_0_and_1(bits: u32) -> f32 {
    (((bits >> 8) as f32 + 0.5) * (1.0 / 16_777_216.0)).min(BELOW_1)
}

/// The dropout of one operation: which elements are kept, and how much they are scaled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dropout {
    pub(crate) key: Key,
    /// Elements with bits below this are dropped; 0 drops none.
    pub(crate) threshold: u32,
    pub(crate) scale: f32,
}

impl Dropout {
    /// Drops nothing.
    pub(crate) const NONE: Dropout = Dropout { key: Key { low: 0, high: 0 }, threshold: 0, scale: 1.0 };

    pub(crate) fn new(rate: f32, key: Key) -> Dropout {
        let rate = rate.clamp(0.0, 0.999);
        if rate == 0.0 {
            return Dropout::NONE;
        }
        Dropout { key, threshold: (f64::from(rate) * 4_294_967_296.0) as u32, scale: 1.0 / (1.0 - rate) }
    }

    pub(crate) fn is_none(&self) -> bool {
        self.threshold == 0
    }

    /// The factor on element `position`.
    #[inline(always)]
    pub(crate) fn factor(&self, position: u32) -> f32 {
        if self.key.bits(position) >= self.threshold { self.scale } else { 0.0 }
    }

    /// Applies dropout to consecutive elements, the first of which has `position`.
    #[inline(always)]
    pub(crate) fn apply(&self, values: &mut [f32], position: usize) {
        for (offset, value) in values.iter_mut().enumerate() {
            *value *= self.factor((position + offset) as u32);
        }
    }
}

/// The initial values of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Initial {
    /// All zero.
    Zeros,
    /// All one.
    Ones,
    /// Uniform in `-limit..limit`.
    Uniform(f32),
    /// Normal with this standard deviation.
    Normal(f32),
    /// Normal with standard deviation `sqrt(2 / (rows + columns))`.
    XavierNormal,
    /// Uniform within `sqrt(6 / (rows + columns))`.
    XavierUniform,
}

impl Initial {
    /// `rows × columns` values from the stream of `seed` and `name`.
    pub(crate) fn values(self, rows: usize, columns: usize, seed: u64, name: &str) -> Vec<f32> {
        // The hash of the name gives every parameter its own stream.
        let stream = fnv(name.as_bytes());
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(stream);
        let sides = (rows + columns).max(1) as f32;
        let len = rows * columns;
        match self {
            Initial::Zeros => vec![0.0; len],
            Initial::Ones => vec![1.0; len],
            Initial::Uniform(limit) => {
                (0..len).map(|_| (uniform(&mut random) * 2.0 - 1.0) as f32 * limit).collect()
            }
            Initial::Normal(deviation) => (0..len).map(|_| normal(&mut random) * deviation).collect(),
            Initial::XavierNormal => (0..len).map(|_| normal(&mut random) * (2.0 / sides).sqrt()).collect(),
            Initial::XavierUniform => {
                let limit = (6.0 / sides).sqrt();
                (0..len).map(|_| (uniform(&mut random) * 2.0 - 1.0) as f32 * limit).collect()
            }
        }
    }
}

fn uniform(random: &mut ChaCha8Rng) -> f64 {
    use rand::Rng;
    (((random.next_u64() >> 11) as f64 + 0.5) / 9_007_199_254_740_992.0).min(1.0 - f64::EPSILON / 2.0)
}

/// A normally distributed number, by the Box–Muller transform.
fn normal(random: &mut ChaCha8Rng) -> f32 {
    let radius = (-2.0 * uniform(random).ln()).sqrt();
    (radius * (std::f64::consts::TAU * uniform(random)).cos()) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_look_random() {
        for number in 0..20 {
            let key = Key::new(7, number);
            let mean = (0..100_000).map(|i| f64::from(key.uniform(i))).sum::<f64>() / 100_000.0;
            assert!((mean - 0.5).abs() < 0.005, "mean {mean}");
            // Neighbouring positions and neighbouring keys are uncorrelated.
            let other = Key::new(7, number + 1);
            for (a, b) in [(key, key), (key, other)] {
                let product: f64 = (0..100_000)
                    .map(|i| (f64::from(a.uniform(i)) - 0.5) * (f64::from(b.uniform(i + 1)) - 0.5))
                    .sum();
                assert!((product / 100_000.0).abs() < 0.002, "{product}");
            }
        }
    }

    #[test]
    fn no_number_is_0_or_1_and_only_the_last_is_not_what_it_was() {
        for bits in [0, 1 << 8, u32::MAX / 2, u32::MAX - (1 << 8), u32::MAX] {
            let number = between_0_and_1(bits);
            assert!(number > 0.0 && number < 1.0, "{bits}: {number}");
            let rounded = ((bits >> 8) as f32 + 0.5) * (1.0 / 16_777_216.0);
            assert_eq!(number == rounded, bits != u32::MAX, "{bits}");
        }
    }

    #[test]
    fn dropout_keeps_the_mean() {
        let dropout = Dropout::new(0.3, Key::new(1, 2));
        let mean = (0..200_000).map(|i| f64::from(dropout.factor(i))).sum::<f64>() / 200_000.0;
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
        assert!(Dropout::new(0.0, Key::new(1, 2)).is_none());
    }

    #[test]
    fn first_values_have_the_promised_spread_and_differ_by_name() {
        let values = Initial::XavierNormal.values(100, 100, 3, "a");
        let variance = values.iter().map(|x| x * x).sum::<f32>() / 10_000.0;
        assert!((variance - 0.01).abs() < 0.001, "{variance}");
        assert_ne!(values, Initial::XavierNormal.values(100, 100, 3, "b"));
        assert_eq!(values, Initial::XavierNormal.values(100, 100, 3, "a"));
        let limit = (6.0f32 / 200.0).sqrt();
        assert!(Initial::XavierUniform.values(100, 100, 3, "a").iter().all(|x| x.abs() <= limit));
    }
}
