//! Samples in two steps from shared states: first a group (relation), then an element (action) of that group.
//!
//! Every draw names the segment it draws from and the row of `groups` it uses, so many draws can share both. The
//! group is drawn from the row's softmax over the groups that have an element in the segment, the element from the
//! softmax of the segment's scores within the group. Each draw ignores a random part of the groups and of the
//! elements; if that would leave nothing, it ignores nothing. Both steps take the maximum of score plus Gumbel noise.
//! No gradients.

use crate::cpu::simd;
use crate::cuda::launch::arguments;
use crate::device::Backend;
use crate::error::{Result, expect_shape};
use crate::random::Key;
use crate::value::{Indices, Segments, Tensor};

/// The result of a draw from an empty segment.
pub const NOTHING: u32 = u32::MAX;

/// What to draw from, and how.
#[derive(Clone, Copy, Debug)]
pub struct Choosing<'a> {
    /// Log-probabilities of groups, one row per head; `None` skips the first step.
    pub groups: Option<&'a Tensor>,
    /// A score for each element; `None` makes all elements of a group equally likely.
    pub scores: Option<&'a Tensor>,
    /// The group of each element; elements of one group are adjacent within a segment.
    pub group_of: &'a Indices,
    /// The elements of each segment.
    pub segments: &'a Segments,
    /// The share of groups that each draw ignores.
    pub drop_groups: f32,
    /// The share of elements that each draw ignores.
    pub drop: f32,
    /// The key of the random numbers.
    pub key: Key,
}

/// The inputs of a draw, as slices on the CPU.
struct Lists<'a> {
    groups: Option<(&'a [f32], usize)>,
    scores: Option<&'a [f32]>,
    group_of: &'a [u32],
    starts: &'a [u32],
    drop_groups: u32,
    drop: u32,
    key: Key,
}

/// The keys of one draw: group noise, element noise, ignored groups, ignored elements.
#[derive(Clone, Copy)]
struct DrawKeys {
    group: Key,
    element: Key,
    hide_group: Key,
    hide: Key,
}

/// Draws once from segment `from[i]` with row `rows[i]` of the groups, for every `i`. Returns positions of elements;
/// [`NOTHING`] for an empty segment.
pub fn choose(choosing: Choosing, from: &Indices, rows: &Indices) -> Result<Indices> {
    let Choosing { groups, scores, group_of, segments, .. } = choosing;
    let total = segments.total();
    expect_shape(group_of.len() == total, "choose", "groups and segments", &[group_of.len()], &[total])?;
    if let Some(scores) = scores {
        expect_shape(
            scores.shape() == [total, 1],
            "choose",
            "scores and segments",
            &scores.shape(),
            &[total, 1],
        )?;
    }
    expect_shape(
        from.len() == rows.len(),
        "choose",
        "segments and rows of the draws",
        &[from.len()],
        &[rows.len()],
    )?;
    from.expect_below(segments.len(), "choose")?;
    if let Some(groups) = groups {
        rows.expect_below(groups.rows(), "choose")?;
        group_of.expect_below(groups.columns(), "choose")?;
    }
    let device = group_of.buffer().device();
    let mut out = device.allocate::<u32>(from.len())?;
    match device.backend() {
        Backend::Cpu(cpu) => {
            let lists = Lists {
                groups: groups.map(|groups| (groups.buffer().host(), groups.columns())),
                scores: scores.map(|scores| scores.buffer().host()),
                group_of: group_of.buffer().host(),
                starts: segments.starts(),
                drop_groups: limit(choosing.drop_groups),
                drop: limit(choosing.drop),
                key: choosing.key,
            };
            let (from, rows) = (from.buffer().host(), rows.buffer().host());
            let chunks: Vec<_> = out.host_mut().chunks_mut(64).enumerate().collect();
            cpu.run(chunks, |(index, out)| {
                for (offset, out) in out.iter_mut().enumerate() {
                    let draw = index * 64 + offset;
                    *out = lists.draw(draw as u32, from[draw] as usize, rows[draw] as usize);
                }
            });
        }
        Backend::Cuda(cuda) => {
            let n = from.len();
            let arguments = arguments![
                groups.map(Tensor::buffer),
                scores.map(Tensor::buffer),
                group_of.buffer(),
                segments.buffer(),
                from.buffer(),
                rows.buffer(),
                n,
                groups.map_or(0, Tensor::columns),
                limit(choosing.drop_groups),
                limit(choosing.drop),
                choosing.key,
                &mut out
            ];
            cuda.warps("choose", n, arguments)?;
        }
    }
    // An empty segment gives NOTHING, which is not a valid index, so the maximum is unknown and uses as indices are
    // checked.
    Ok(Indices::of(out, None))
}

/// Elements whose bits are below this are ignored at `rate`.
fn limit(rate: f32) -> u32 {
    (f64::from(rate.clamp(0.0, 1.0)) * 4_294_967_295.0) as u32
}

fn gumbel(key: Key, position: u32) -> f32 {
    -simd::ln(-simd::ln(key.uniform(position)))
}

impl DrawKeys {
    fn new(key: Key, draw: u32) -> DrawKeys {
        let part = |part: u32| {
            let position = draw.wrapping_mul(8).wrapping_add(2 * part);
            Key { low: key.bits(position), high: key.bits(position + 1) }
        };
        DrawKeys { group: part(0), element: part(1), hide_group: part(2), hide: part(3) }
    }
}

impl Lists<'_> {
    fn draw(&self, draw: u32, segment: usize, row: usize) -> u32 {
        let range = self.starts[segment] as usize..self.starts[segment + 1] as usize;
        if range.is_empty() {
            return NOTHING;
        }
        let keys = DrawKeys::new(self.key, draw);
        let Some((groups, columns)) = self.groups else {
            return self.element(range.clone(), range.start, keys);
        };
        let run = self.group(range.clone(), &groups[row * columns..(row + 1) * columns], keys);
        self.element(run, range.start, keys)
    }

    /// The run of elements of the drawn group.
    fn group(
        &self,
        range: std::ops::Range<usize>,
        log_probs: &[f32],
        keys: DrawKeys,
    ) -> std::ops::Range<usize> {
        let (mut seen, mut hidden) = ((f32::NEG_INFINITY, range.clone()), (f32::NEG_INFINITY, range.clone()));
        let (mut any_seen, mut any) = (false, false);
        let mut start = range.start;
        while start < range.end {
            let group = self.group_of[start];
            let mut end = start;
            let mut visible = self.drop == 0;
            while end < range.end && self.group_of[end] == group {
                visible |= keys.hide.bits((end - range.start) as u32) >= self.drop;
                end += 1;
            }
            let score = log_probs[group as usize] + gumbel(keys.group, group);
            visible &= self.drop_groups == 0 || keys.hide_group.bits(group) >= self.drop_groups;
            if visible && (score > seen.0 || !any_seen) {
                (seen, any_seen) = ((score, start..end), true);
            }
            if score > hidden.0 || !any {
                (hidden, any) = ((score, start..end), true);
            }
            start = end;
        }
        if any_seen { seen.1 } else { hidden.1 }
    }

    /// The element drawn from a run; `origin` is where the segment starts.
    fn element(&self, run: std::ops::Range<usize>, origin: usize, keys: DrawKeys) -> u32 {
        let (mut seen, mut hidden) = ((f32::NEG_INFINITY, NOTHING), (f32::NEG_INFINITY, NOTHING));
        for position in run {
            let offset = (position - origin) as u32;
            let score = self.scores.map_or(0.0, |scores| scores[position]) + gumbel(keys.element, offset);
            let visible = self.drop == 0 || keys.hide.bits(offset) >= self.drop;
            if visible && (score > seen.0 || seen.1 == NOTHING) {
                seen = (score, position as u32);
            }
            if score > hidden.0 || hidden.1 == NOTHING {
                hidden = (score, position as u32);
            }
        }
        if seen.1 != NOTHING { seen.1 } else { hidden.1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;

    const GROUPS: [f32; 4] = [f32::NEG_INFINITY, -1.2, -0.7, -1.6]; // group 0 is not in the segment
    const GROUP_OF: [u32; 5] = [1, 1, 2, 3, 3];
    const SCORES: [f32; 5] = [-0.5, -2.0, -1.0, -3.0, -2.5];

    /// How often each element is drawn from the second of two segments.
    fn shares(groups: bool, scores: bool, drop_groups: f32, drop: f32, threads: usize) -> Vec<f64> {
        let device = Device::cpu(threads).unwrap();
        let log_probs = Tensor::new(&device, &[GROUPS, GROUPS].concat(), 2, 4).unwrap();
        let values = Tensor::vector(&device, &SCORES).unwrap();
        let count = 200_000;
        let drawn = choose(
            Choosing {
                groups: groups.then_some(&log_probs),
                scores: scores.then_some(&values),
                group_of: &Indices::new(&device, &GROUP_OF).unwrap(),
                segments: &Segments::from_lengths(&device, [0, 5, 0]).unwrap(),
                drop_groups,
                drop,
                key: Key::new(3, 5),
            },
            &Indices::new(&device, &vec![1; count]).unwrap(),
            &Indices::new(&device, &vec![1; count]).unwrap(),
        );
        let mut shares = vec![0.0; 5];
        drawn.unwrap().to_vec().unwrap().iter().for_each(|&at| shares[at as usize] += 1.0 / count as f64);
        shares
    }

    /// The same by enumerating all sets of ignored groups and elements.
    fn expected(groups: bool, scores: bool, drop_groups: f64, drop: f64) -> Vec<f64> {
        let mut shares = vec![0.0; 5];
        for hidden in 0u32..32 {
            for hidden_groups in 0u32..8 {
                let chance = |bits: u32, count: u32, rate: f64| {
                    rate.powi(bits.count_ones() as i32)
                        * (1.0 - rate).powi((count - bits.count_ones()) as i32)
                };
                let weight = chance(hidden, 5, drop) * chance(hidden_groups, 3, drop_groups);
                let sees = |at: usize| hidden & (1 << at) == 0;
                let weight_of = |at: usize| if scores { f64::from(SCORES[at]).exp() } else { 1.0 };
                let within = |run: &[usize], weight: f64, shares: &mut Vec<f64>| {
                    let seen: Vec<usize> = run.iter().copied().filter(|&at| sees(at)).collect();
                    let run = if seen.is_empty() { run.to_vec() } else { seen };
                    let total: f64 = run.iter().map(|&at| weight_of(at)).sum();
                    run.iter().for_each(|&at| shares[at] += weight * weight_of(at) / total);
                };
                if !groups {
                    within(&[0, 1, 2, 3, 4], weight, &mut shares);
                    continue;
                }
                let runs: [(usize, &[usize]); 3] = [(1, &[0, 1]), (2, &[2]), (3, &[3, 4])];
                let open: Vec<_> = runs
                    .iter()
                    .filter(|(group, run)| {
                        hidden_groups & (1 << (group - 1)) == 0 && run.iter().any(|&at| sees(at))
                    })
                    .collect();
                let open = if open.is_empty() { runs.iter().collect() } else { open };
                let total: f64 = open.iter().map(|(group, _)| f64::from(GROUPS[*group]).exp()).sum();
                for (group, run) in open {
                    within(run, weight * f64::from(GROUPS[*group]).exp() / total, &mut shares);
                }
            }
        }
        shares
    }

    #[test]
    fn draws_have_the_chances_of_their_two_steps() {
        for (groups, scores) in [(true, true), (true, false), (false, true)] {
            for (drop_groups, drop) in [(0.0, 0.0), (0.3, 0.0), (0.0, 0.4), (0.5, 0.5), (1.0, 1.0)] {
                let ours = shares(groups, scores, drop_groups, drop, 1);
                let theirs = expected(groups, scores, f64::from(drop_groups), f64::from(drop));
                for (ours, theirs) in ours.iter().zip(&theirs) {
                    assert!(
                        (ours - theirs).abs() < 0.006,
                        "{groups} {scores} {drop_groups} {drop}: {ours} {theirs}"
                    );
                }
            }
        }
        assert_eq!(shares(true, true, 0.3, 0.3, 1), shares(true, true, 0.3, 0.3, 2));
    }

    #[test]
    fn an_empty_segment_gives_nothing_and_wrong_shapes_are_named() {
        let device = Device::cpu(1).unwrap();
        let segments = Segments::from_lengths(&device, [0, 1]).unwrap();
        let group_of = Indices::new(&device, &[0]).unwrap();
        let choosing = Choosing {
            groups: None,
            scores: None,
            group_of: &group_of,
            segments: &segments,
            drop_groups: 0.0,
            drop: 0.0,
            key: Key::new(0, 0),
        };
        let from = Indices::new(&device, &[0, 1]).unwrap();
        assert_eq!(choose(choosing, &from, &from).unwrap().to_vec().unwrap(), [NOTHING, 0]);
        let beyond = Indices::new(&device, &[2]).unwrap();
        assert!(choose(choosing, &beyond, &beyond).is_err());
    }
}
