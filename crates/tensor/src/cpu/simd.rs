//! Element-wise arithmetic for the CPU's vector units, chosen at run time.
//!
//! [`vectorise`] compiles its closure once for each instruction set that `pulp` supports and runs the best one the
//! machine has. The loops inside are plain, and the compiler vectorises them because the functions below have no
//! calls and no branches.
// Loops over lanes index several arrays at once; iterators would hide which lane is which.
#![allow(clippy::needless_range_loop)]

/// Runs `task` with the widest vector unit of this machine.
#[inline(always)]
pub(crate) fn vectorise<R>(task: impl FnOnce() -> R) -> R {
    struct Task<F>(F);
    impl<R, F: FnOnce() -> R> pulp::WithSimd for Task<F> {
        type Output = R;
        #[inline(always)]
        fn with_simd<S: pulp::Simd>(self, _simd: S) -> R {
            (self.0)()
        }
    }
    pulp::Arch::new().dispatch(Task(task))
}

/// `e^x`, within 2 units in the last place; 0 below -87.3 and 1.6e38 above 88.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    let clamped = if x < -87.3 { -87.3 } else { x };
    let clamped = if clamped > 88.0 { 88.0 } else { clamped };
    // Adding 1.5 * 2^23 rounds to the nearest integer, which then lies in the low bits.
    let shifted = clamped.mul_add(std::f32::consts::LOG2_E, 12_582_912.0);
    let whole = shifted - 12_582_912.0;
    let rest = whole.mul_add(-0.693_359_4, clamped);
    let rest = whole.mul_add(2.121_944_4e-4, rest);
    let mut sum = 1.987_569_1e-4f32;
    sum = sum.mul_add(rest, 1.398_199_9e-3);
    sum = sum.mul_add(rest, 8.333_452e-3);
    sum = sum.mul_add(rest, 4.166_579_6e-2);
    sum = sum.mul_add(rest, 1.666_666_5e-1);
    sum = sum.mul_add(rest, 0.5);
    sum = sum.mul_add(rest * rest, rest) + 1.0;
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23));
    if x < -87.3 { 0.0 } else { sum * power }
}

/// The Taylor coefficients of `e^x` from `x^13` down to `x^2`: enough for 53 bits where `|x| ≤ ln 2 / 2`.
const EXP: [f64; 12] = {
    let mut coefficients = [0.5; 12];
    let mut at = 11;
    while at > 0 {
        coefficients[at - 1] = coefficients[at] / (14 - at) as f64;
        at -= 1;
    }
    coefficients
};

/// `e^x` in double precision, within 2 units in the last place, for `x` up to 700; 0 below -708.
#[inline(always)]
pub(crate) fn exp_double(x: f64) -> f64 {
    let clamped = if x < -708.0 { -708.0 } else { x };
    // As in `exp`: adding 1.5 * 2^52 rounds to the nearest integer, which then lies in the low bits.
    let shifted = clamped.mul_add(std::f64::consts::LOG2_E, 6_755_399_441_055_744.0);
    let whole = shifted - 6_755_399_441_055_744.0;
    // ln 2 in two parts, the first with zeros at its end: its product with `whole` is exact.
    let rest = whole.mul_add(-0.693_147_180_369_123_8, clamped);
    let rest = whole.mul_add(-1.908_214_929_270_587_7e-10, rest);
    let mut sum = EXP[0];
    for at in 1..EXP.len() {
        sum = sum.mul_add(rest, EXP[at]);
    }
    sum = sum.mul_add(rest * rest, rest) + 1.0;
    let power = f64::from_bits((shifted.to_bits() << 52).wrapping_add(1023 << 52));
    if x < -708.0 { 0.0 } else { sum * power }
}

/// `ln x` for positive normal `x`, within 2 units in the last place.
#[inline(always)]
pub(crate) fn ln(x: f32) -> f32 {
    // x = 2^exponent * mantissa with the mantissa in [sqrt(1/2), sqrt(2)).
    let bits = x.to_bits().wrapping_sub(0x3f35_04f3);
    let exponent = (bits as i32 >> 23) as f32;
    let mantissa = f32::from_bits((bits & 0x007f_ffff).wrapping_add(0x3f35_04f3)) - 1.0;
    let square = mantissa * mantissa;
    let mut sum = 7.037_683_6e-2f32;
    sum = sum.mul_add(mantissa, -1.151_461e-1);
    sum = sum.mul_add(mantissa, 1.167_699_9e-1);
    sum = sum.mul_add(mantissa, -1.242_014_1e-1);
    sum = sum.mul_add(mantissa, 1.424_932_3e-1);
    sum = sum.mul_add(mantissa, -1.666_805_7e-1);
    sum = sum.mul_add(mantissa, 2.000_071_5e-1);
    sum = sum.mul_add(mantissa, -2.499_999_4e-1);
    sum = sum.mul_add(mantissa, 3.333_333e-1);
    sum = sum * mantissa * square;
    sum = exponent.mul_add(-2.121_944_4e-4, sum);
    sum = square.mul_add(-0.5, sum);
    exponent.mul_add(0.693_359_4, mantissa + sum)
}

/// `1 / (1 + e^-x)`.
#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// The hyperbolic tangent, computed from `e^-2|x|`, and from its series near zero.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    let magnitude = x.abs();
    let decay = exp(-2.0 * magnitude);
    let far = (1.0 - decay) / (1.0 + decay);
    let square = x * x;
    let mut near = -5.704_988_7e-3f32;
    near = near.mul_add(square, 2.063_909e-2);
    near = near.mul_add(square, -5.373_971_6e-2);
    near = near.mul_add(square, 1.333_144_2e-1);
    near = near.mul_add(square, -3.333_328e-1);
    let near = (near * square).mul_add(magnitude, magnitude);
    (if magnitude < 0.625 { near } else { far }).copysign(x)
}

/// The dot product of two slices of the same length, in a fixed order of addition that suits the vector units.
#[inline(always)]
pub(crate) fn dot(left: &[f32], right: &[f32]) -> f32 {
    const LANES: usize = 32;
    let mut sums = [0.0f32; LANES];
    let whole = left.len().min(right.len()) / LANES * LANES;
    for (left, right) in left[..whole].chunks_exact(LANES).zip(right[..whole].chunks_exact(LANES)) {
        for lane in 0..LANES {
            sums[lane] = left[lane].mul_add(right[lane], sums[lane]);
        }
    }
    for (lane, (left, right)) in left[whole..].iter().zip(&right[whole..]).enumerate() {
        sums[lane] = left.mul_add(*right, sums[lane]);
    }
    fold(sums)
}

/// The sum of a slice, in the same order as [`dot`].
#[inline(always)]
pub(crate) fn sum(values: &[f32]) -> f32 {
    const LANES: usize = 32;
    let mut sums = [0.0f32; LANES];
    let chunks = values.chunks_exact(LANES);
    for (lane, value) in chunks.remainder().iter().enumerate() {
        sums[lane] += value;
    }
    for chunk in chunks {
        for lane in 0..LANES {
            sums[lane] += chunk[lane];
        }
    }
    fold(sums)
}

/// The maximum of a slice; minus infinity if it is empty.
#[inline(always)]
pub(crate) fn max(values: &[f32]) -> f32 {
    const LANES: usize = 16;
    let mut best = [f32::NEG_INFINITY; LANES];
    let chunks = values.chunks_exact(LANES);
    for (lane, value) in chunks.remainder().iter().enumerate() {
        best[lane] = if *value > best[lane] { *value } else { best[lane] };
    }
    for chunk in chunks {
        for lane in 0..LANES {
            best[lane] = if chunk[lane] > best[lane] { chunk[lane] } else { best[lane] };
        }
    }
    best.into_iter().fold(f32::NEG_INFINITY, f32::max)
}

/// `target += factor * source`.
#[inline(always)]
pub(crate) fn add_scaled(target: &mut [f32], factor: f32, source: &[f32]) {
    for (target, source) in target.iter_mut().zip(source) {
        *target = source.mul_add(factor, *target);
    }
}

/// `target += source`.
#[inline(always)]
pub(crate) fn add(target: &mut [f32], source: &[f32]) {
    for (target, source) in target.iter_mut().zip(source) {
        *target += source;
    }
}

#[inline(always)]
fn fold(mut sums: [f32; 32]) -> f32 {
    for half in [16, 8, 4, 2, 1] {
        for lane in 0..half {
            sums[lane] += sums[lane + half];
        }
    }
    sums[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest relative error of `ours` compared with double precision.
    fn error(range: std::ops::Range<f32>, ours: fn(f32) -> f32, exact: fn(f64) -> f64) -> f64 {
        let steps = 100_000;
        (0..steps)
            .map(|step| range.start + (range.end - range.start) * step as f32 / steps as f32)
            .map(|x| {
                ((f64::from(ours(x)) - exact(f64::from(x))) / exact(f64::from(x)).abs().max(1e-30)).abs()
            })
            .fold(0.0, f64::max)
    }

    #[test]
    fn the_functions_are_exact_to_a_few_units() {
        assert!(error(-87.0..88.0, exp, f64::exp) < 3e-7);
        assert!(error(1e-6..50.0, ln, f64::ln) < 1e-5);
        assert!(error(-30.0..30.0, sigmoid, |x| 1.0 / (1.0 + (-x).exp())) < 4e-7);
        assert!(error(-9.0..9.0, tanh, f64::tanh) < 4e-7);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert!(exp(f32::NAN).is_nan());
        assert_eq!(tanh(100.0), 1.0);
        assert!(sigmoid(-100.0) < 1e-37);
    }

    #[test]
    fn the_exponential_in_double_precision_is_exact_to_two_units() {
        for step in 0..200_000 {
            let x = -707.0 + f64::from(step) * 0.0036;
            let (ours, exact) = (exp_double(x), x.exp());
            assert!((ours - exact).abs() <= 2.0 * f64::EPSILON * exact, "{x}: {ours} {exact}");
        }
        assert_eq!((exp_double(0.0), exp_double(f64::NEG_INFINITY)), (1.0, 0.0));
        assert!(exp_double(f64::NAN).is_nan());
    }

    #[test]
    fn sums_take_every_element() {
        for len in [0, 1, 5, 31, 32, 33, 200] {
            let ones = vec![1.0; len];
            assert_eq!(dot(&ones, &ones), len as f32);
            assert_eq!(sum(&ones), len as f32);
            let rising: Vec<f32> = (0..len).map(|x| x as f32).collect();
            assert_eq!(max(&rising), if len == 0 { f32::NEG_INFINITY } else { (len - 1) as f32 });
        }
    }
}
