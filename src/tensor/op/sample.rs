//! Drawing from the segments of a vector of scores, and the scores of a draw in two steps. No gradients.
//!
//! A draw adds Gumbel noise to every open score of its segment and takes the largest: that is a draw from
//! the softmax of the scores. Dropped elements are put behind all others, not closed, so a segment with one
//! open element always gives it.

use crate::tensor::cpu::simd;
use crate::tensor::cuda::launch::arguments;
use crate::tensor::device::Backend;
use crate::tensor::error::{Result, expect_shape};
use crate::tensor::random::Key;
use crate::tensor::value::{Indices, Segments, Tensor};

/// What a draw gives for a segment with nothing open.
pub const NOTHING: u32 = u32::MAX;

/// How far behind the others a dropped element is put.
const BEHIND: f32 = 1e4;

// A warp for each draw; for the runs, the thread of a run's first element does all of it.
pub(crate) const KERNELS: &str = r#"
__device__ Key draw_key(Key key, u32 draw, u32 part) {
    u32 position = draw * 6 + 2 * part;
    return {bits_of(key.low, key.high, position), bits_of(key.low, key.high, position + 1)};
}
extern "C" __global__ void sample(const float* scores, const u32* starts, const u32* owners, const u32* closed, const u32* groups,
                                  u32 n, Key key, u32 limit, u32 group_limit, u32* out) {
    u32 draw = WARP;
    if (draw >= n) return;
    u32 segment = owners[draw], start = starts[segment], end = starts[segment + 1];
    Key noise = draw_key(key, draw, 0), drop = draw_key(key, draw, 1), drop_group = draw_key(key, draw, 2);
    float best = NEGATIVE_INFINITY;
    u32 at = 0xffffffffu;
    for (u32 i = start + LANE; i < end; i += 32) {
        float x = scores[i];
        if ((closed && closed[i]) || x == NEGATIVE_INFINITY) continue;
        float gumbel = -logf(-logf(uniform_of(noise, i - start)));
        bool dropped = bits_of(drop.low, drop.high, i - start) < limit
            || (groups && bits_of(drop_group.low, drop_group.high, groups[i]) < group_limit);
        x = x + gumbel - (dropped ? 1e4f : 0.0f);
        if (x > best || at == 0xffffffffu) { best = x; at = i; }
    }
    for (u32 offset = 16; offset; offset >>= 1) {
        float other = __shfl_xor_sync(0xffffffffu, best, offset);
        u32 other_at = __shfl_xor_sync(0xffffffffu, at, offset);
        if (other > best || (other == best && other_at < at)) { best = other; at = other_at; }
    }
    if (LANE == 0) out[draw] = at;
}
extern "C" __global__ void run_log_softmax(const float* scores, const u32* keys, const u32* owners, const u32* starts,
                                           const u32* closed, u32 n, float* out) {
    u32 i = THREAD;
    if (i >= n) return;
    u32 start = starts[owners[i]], end = starts[owners[i] + 1];
    if (i > start && keys[i - 1] == keys[i]) return;
    float largest = NEGATIVE_INFINITY, sum = 0.0f;
    u32 last = i;
    for (; last < end && keys[last] == keys[i]; last++)
        if (!(closed && closed[last])) largest = fmaxf(largest, scores ? scores[last] : 0.0f);
    for (u32 j = i; j < last; j++)
        if (!(closed && closed[j])) sum += expf((scores ? scores[j] : 0.0f) - largest);
    float total = largest + logf(sum);
    for (u32 j = i; j < last; j++)
        out[j] = largest == NEGATIVE_INFINITY || (closed && closed[j]) ? NEGATIVE_INFINITY : (scores ? scores[j] : 0.0f) - total;
}
"#;

/// How to draw.
#[derive(Clone, Copy, Debug)]
pub struct Sampling<'a> {
    /// Ones where an element is closed.
    pub closed: Option<&'a Indices>,
    /// The part of elements that each draw drops.
    pub drop: f32,
    /// A group (relation) for each element, and the part of groups that each draw drops.
    pub groups: Option<(&'a Indices, f32)>,
    /// Which random numbers.
    pub key: Key,
}

/// Draws `draws[s]` elements from every segment `s`, given as the segments of the draws. Gives the drawn
/// positions, segment by segment, [`NOTHING`] for a segment without an open element.
pub fn sample(scores: &Tensor, segments: &Segments, draws: &Segments, sampling: Sampling) -> Result<Indices> {
    let total = segments.total();
    expect_shape(
        scores.shape() == [total, 1],
        "sample",
        "scores and segments",
        &scores.shape(),
        &[total, 1],
    )?;
    expect_shape(
        segments.len() == draws.len(),
        "sample",
        "segments and draws",
        &[segments.len()],
        &[draws.len()],
    )?;
    let masks = [sampling.closed, sampling.groups.map(|(groups, _)| groups)];
    for mask in masks.into_iter().flatten() {
        expect_shape(mask.len() == total, "sample", "mask and segments", &[mask.len()], &[total])?;
    }
    let device = scores.device();
    let mut out = device.allocate::<u32>(draws.total())?;
    match device.backend() {
        Backend::Cpu(cpu) => {
            let (values, starts) = (scores.buffer().host(), segments.starts());
            let owners = draws.owners()?;
            let owners = owners.buffer().host();
            let closed = sampling.closed.map(|closed| closed.buffer().host());
            let groups = sampling.groups.map(|(groups, rate)| (groups.buffer().host(), limit(rate)));
            let chunks: Vec<_> = out.host_mut().chunks_mut(64).enumerate().collect();
            cpu.run(chunks, |(index, out)| {
                for (offset, out) in out.iter_mut().enumerate() {
                    let draw = index * 64 + offset;
                    let segment = owners[draw] as usize;
                    let range = starts[segment] as usize..starts[segment + 1] as usize;
                    *out = draw_one(draw as u32, range, values, closed, groups, sampling);
                }
            });
        }
        Backend::Cuda(cuda) => {
            let owners = draws.owners()?;
            let n = draws.total();
            let (closed, groups) =
                (sampling.closed.map(Indices::buffer), sampling.groups.map(|(groups, _)| groups.buffer()));
            let group_limit = sampling.groups.map_or(0, |(_, rate)| limit(rate));
            let arguments = arguments![
                scores.buffer(),
                segments.buffer(),
                owners.buffer(),
                closed,
                groups,
                n,
                sampling.key,
                limit(sampling.drop),
                group_limit,
                &mut out
            ];
            cuda.warps("sample", n, arguments)?;
        }
    }
    Ok(Indices::of(out))
}

/// Bits below this are dropped at `rate`.
fn limit(rate: f32) -> u32 {
    (f64::from(rate.clamp(0.0, 1.0)) * 4_294_967_295.0) as u32
}

/// The keys of a draw: for the noise, for dropped elements, for dropped groups.
fn keys_of(key: Key, draw: u32) -> [Key; 3] {
    [0, 1, 2].map(|part| {
        let position = draw.wrapping_mul(6).wrapping_add(2 * part);
        Key { low: key.bits(position), high: key.bits(position + 1) }
    })
}

fn draw_one(
    draw: u32,
    range: std::ops::Range<usize>,
    values: &[f32],
    closed: Option<&[u32]>,
    groups: Option<(&[u32], u32)>,
    sampling: Sampling,
) -> u32 {
    let [noise, drop, drop_group] = keys_of(sampling.key, draw);
    let drop_limit = limit(sampling.drop);
    let (mut best, mut at) = (f32::NEG_INFINITY, NOTHING);
    for position in range.clone() {
        let offset = (position - range.start) as u32;
        if closed.is_some_and(|closed| closed[position] != 0) || values[position] == f32::NEG_INFINITY {
            continue;
        }
        let gumbel = -simd::ln(-simd::ln(noise.uniform(offset)));
        let dropped = drop.bits(offset) < drop_limit
            || groups.is_some_and(|(groups, limit)| drop_group.bits(groups[position]) < limit);
        let score = values[position] + gumbel - if dropped { BEHIND } else { 0.0 };
        if score > best || at == NOTHING {
            (best, at) = (score, position as u32);
        }
    }
    at
}

/// `x − log Σ eˣ` within each run of equal keys of each segment (the candidates that one relation leads to);
/// without scores, minus the logarithm of the run's open elements. Closed elements become minus infinity.
pub fn run_log_softmax(
    scores: Option<&Tensor>,
    keys: &Indices,
    segments: &Segments,
    closed: Option<&Indices>,
) -> Result<Tensor> {
    let total = segments.total();
    expect_shape(keys.len() == total, "run_log_softmax", "keys and segments", &[keys.len()], &[total])?;
    if let Some(scores) = scores {
        let shape = scores.shape();
        expect_shape(shape == [total, 1], "run_log_softmax", "scores and segments", &shape, &[total, 1])?;
    }
    if let Some(closed) = closed {
        expect_shape(
            closed.len() == total,
            "run_log_softmax",
            "mask and segments",
            &[closed.len()],
            &[total],
        )?;
    }
    let device = keys.buffer().device();
    let mut out = device.allocate::<f32>(total)?;
    match device.backend() {
        Backend::Cpu(cpu) => {
            let (keys, starts) = (keys.buffer().host(), segments.starts());
            let scores = scores.map(|scores| scores.buffer().host());
            let closed = closed.map(|closed| closed.buffer().host());
            cpu.segments(out.host_mut(), starts, |range, out| {
                let offset = starts[range.start] as usize;
                for segment in range {
                    let end = starts[segment + 1] as usize;
                    let mut start = starts[segment] as usize;
                    while start < end {
                        let run = keys[start..end].iter().take_while(|key| **key == keys[start]).count();
                        let out = &mut out[start - offset..start + run - offset];
                        for (index, out) in out.iter_mut().enumerate() {
                            let open = closed.is_none_or(|closed| closed[start + index] == 0);
                            let score = scores.map_or(0.0, |scores| scores[start + index]);
                            *out = if open { score } else { f32::NEG_INFINITY };
                        }
                        let sum = super::segment::log_sum_exp(out);
                        if sum > f32::NEG_INFINITY {
                            out.iter_mut().for_each(|value| *value -= sum);
                        }
                        start += run;
                    }
                }
            });
        }
        Backend::Cuda(cuda) => {
            let owners = segments.owners()?;
            let (scores, closed) = (scores.map(Tensor::buffer), closed.map(Indices::buffer));
            let arguments = arguments![
                scores,
                keys.buffer(),
                owners.buffer(),
                segments.buffer(),
                closed,
                total,
                &mut out
            ];
            cuda.threads("run_log_softmax", total, arguments)?;
        }
    }
    Ok(Tensor::of(out, total, 1))
}
