//! Drawing from the segments of a vector of scores, and the scores of a draw in two steps. No gradients.
//!
//! A draw adds Gumbel noise to every open score of its segment and takes the largest: that is a draw from
//! the softmax of the scores. Dropped elements are put behind all others, not closed, so a segment with one
//! open element always gives it.

use crate::tensor::cpu::simd;
use crate::tensor::device::Backend;
use crate::tensor::error::{Result, expect_shape};
use crate::tensor::random::Key;
use crate::tensor::value::{Indices, Segments, Tensor};

/// What a draw gives for a segment with nothing open.
pub const NOTHING: u32 = u32::MAX;

/// How far behind the others a dropped element is put.
const BEHIND: f32 = 1e4;

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
    }
    Ok(Tensor::of(out, total, 1))
}
