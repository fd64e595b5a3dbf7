//! The result of an item in 32 columns: sums, extremes, and which edges attain them.
//!
//! The incoming messages of an item are listed once ([`View::senders`]); then every pair of vectors is run along the
//! list with its sums in registers.

use pulp::Simd;

use super::super::{LANES, LEAST_VARIANCE};
use super::{Item, View};
use crate::reach::{NONE, Sender};

/// The position of an extreme that no edge attains: a zero, or the query's start.
const ZERO: u32 = NONE - 1;
const START: u32 = NONE;

/// The result of an item in some columns.
#[derive(Clone, Copy)]
pub(in super::super) struct Found {
    sum: [f32; LANES],
    squares: [f32; LANES],
    most: [f32; LANES],
    least: [f32; LANES],
    most_at: [u32; LANES],
    least_at: [u32; LANES],
}

impl View<'_> {
    /// Lists the incoming messages of an item. Returns whether some edge comes from a node that is not reached.
    #[inline(always)]
    pub(super) fn senders(&self, item: &Item, list: &mut Vec<Sender>) -> bool {
        list.clear();
        let places = self.places_of(item.query);
        let concerned = self.reach.missing(item.query).concerns(item.node as u32);
        let others = &self.edges.others.host[item.range.clone()];
        let links = &self.edges.links.host[item.range.clone()];
        let mut idle = false;
        for (at, (&other, &link)) in others.iter().zip(links).enumerate() {
            let row = places[other as usize];
            let silent = row as usize >= self.sizes.before.rows;
            if concerned && self.is_gone(item, item.range.start + at) {
                continue;
            }
            idle |= silent;
            if !silent {
                list.push(Sender { row, kind: link ^ 1, at: (item.range.start - item.first + at) as u32 });
            }
        }
        idle
    }

    /// Aggregates the messages of an item in `len` columns from `column` on.
    #[inline(always)]
    pub(super) fn gather<S: Simd, const MARKS: bool>(
        &self,
        simd: S,
        item: &Item,
        (senders, idle): (&[Sender], bool),
        (column, len): (usize, usize),
        found: &mut Found,
    ) {
        let width = self.sizes.width;
        let begins = self.edges.item_starts.host[item.node] as usize == item.id;
        let starts_here = item.row < self.reach.queries();
        let first = match (begins, starts_here) {
            (false, _) => First::No,
            (true, false) => First::Nothing,
            (true, true) => First::Start(&self.start[item.query * width..][..width]),
        };
        let weights = &self.weights[item.query * self.sizes.weight_step..];
        let incoming =
            Incoming { state: self.state, weights, width, senders, first, idle: starts_here && idle };
        found.gather::<S, MARKS>(simd, &incoming, (column, len));
    }
}

/// What a row gets beside the messages: the item that comes first begins with it.
#[derive(Clone, Copy)]
pub(in super::super) enum First<'a> {
    /// Another item has it.
    No,
    /// The query starts elsewhere: a zero.
    Nothing,
    /// What the query starts with.
    Start(&'a [f32]),
}

/// All that an item aggregates.
pub(in super::super) struct Incoming<'a> {
    pub(in super::super) state: &'a [f32],
    /// The weights of all kinds for the item's query.
    pub(in super::super) weights: &'a [f32],
    pub(in super::super) width: usize,
    pub(in super::super) senders: &'a [Sender],
    pub(in super::super) first: First<'a>,
    /// Whether the zeros of silent neighbours count beside the start of the query.
    pub(in super::super) idle: bool,
}

impl Found {
    pub(in super::super) fn neutral() -> Found {
        Found {
            sum: [0.0; LANES],
            squares: [0.0; LANES],
            most: [f32::NEG_INFINITY; LANES],
            least: [f32::INFINITY; LANES],
            most_at: [ZERO; LANES],
            least_at: [ZERO; LANES],
        }
    }

    /// Aggregates the messages of an item in `len` columns from `column` on.
    #[inline(always)]
    pub(in super::super) fn gather<S: Simd, const MARKS: bool>(
        &mut self,
        simd: S,
        incoming: &Incoming,
        (column, len): (usize, usize),
    ) {
        let &Incoming { state, weights, width, senders, first, idle } = incoming;
        *self = Found::neutral();
        match first {
            First::No => {}
            First::Nothing => (self.most, self.least) = ([0.0; LANES], [0.0; LANES]),
            First::Start(start) => {
                let start = &start[column..][..len];
                for lane in 0..len {
                    self.sum[lane] = start[lane];
                    self.squares[lane] = start[lane] * start[lane];
                    (self.most[lane], self.least[lane]) = (start[lane], start[lane]);
                    (self.most_at[lane], self.least_at[lane]) = (START, START);
                }
            }
        }
        let mut lane = 0;
        while lane + 2 * S::F32_LANES <= len {
            self.pair::<S, MARKS>(simd, state, weights, senders, width, column, lane);
            lane += 2 * S::F32_LANES;
        }
        for sender in senders {
            let state = &state[sender.row as usize * width + column..][..len];
            let weight = &weights[sender.kind as usize * width + column..][..len];
            (lane..len).for_each(|lane| self.take(lane, state[lane] * weight[lane], sender.at));
        }
        // Where the query starts, the zeros from unreached nodes count in addition to the start.
        if idle {
            self.combine(&Found { most: [0.0; LANES], least: [0.0; LANES], ..Found::neutral() });
        }
    }

    /// All messages, in two vectors of lanes from `lane` on.
    #[allow(clippy::too_many_arguments, reason = "an inner loop, inlined")]
    #[inline(always)]
    fn pair<S: Simd, const MARKS: bool>(
        &mut self,
        simd: S,
        state: &[f32],
        weights: &[f32],
        senders: &[Sender],
        width: usize,
        column: usize,
        lane: usize,
    ) {
        let (column, both) = (column + lane, 2 * S::F32_LANES);
        let load = |values: &[f32; LANES]| pair::<S>(&values[lane..lane + both]);
        let mut sum = load(&self.sum);
        let mut squares = load(&self.squares);
        let mut most = load(&self.most);
        let mut least = load(&self.least);
        let indices = |values: &[u32; LANES]| {
            let vectors = S::as_simd_u32s(&values[lane..lane + both]).0;
            [vectors[0], vectors[1]]
        };
        let (mut most_at, mut least_at) = (indices(&self.most_at), indices(&self.least_at));
        for sender in senders {
            let state = pair::<S>(&state[sender.row as usize * width + column..][..both]);
            let weight = pair::<S>(&weights[sender.kind as usize * width + column..][..both]);
            let at = simd.splat_u32s(sender.at);
            for half in 0..2 {
                let x = simd.mul_f32s(state[half], weight[half]);
                sum[half] = simd.add_f32s(sum[half], x);
                squares[half] = simd.mul_add_f32s(x, x, squares[half]);
                if MARKS {
                    let more = simd.greater_than_f32s(x, most[half]);
                    let less = simd.less_than_f32s(x, least[half]);
                    most_at[half] = simd.select_u32s(more, at, most_at[half]);
                    least_at[half] = simd.select_u32s(less, at, least_at[half]);
                }
                most[half] = simd.max_f32s(x, most[half]);
                least[half] = simd.min_f32s(x, least[half]);
            }
        }
        let lists = [
            (&mut self.sum, sum),
            (&mut self.squares, squares),
            (&mut self.most, most),
            (&mut self.least, least),
        ];
        for (list, values) in lists {
            S::as_mut_simd_f32s(&mut list[lane..lane + both]).0.copy_from_slice(&values);
        }
        if MARKS {
            S::as_mut_simd_u32s(&mut self.most_at[lane..lane + both]).0.copy_from_slice(&most_at);
            S::as_mut_simd_u32s(&mut self.least_at[lane..lane + both]).0.copy_from_slice(&least_at);
        }
    }

    /// Adds one message in one lane.
    #[inline(always)]
    fn take(&mut self, lane: usize, x: f32, at: u32) {
        self.sum[lane] += x;
        self.squares[lane] = x.mul_add(x, self.squares[lane]);
        if x > self.most[lane] {
            (self.most[lane], self.most_at[lane]) = (x, at);
        }
        if x < self.least[lane] {
            (self.least[lane], self.least_at[lane]) = (x, at);
        }
    }

    /// Combines with the result of a later item of the same row.
    pub(in super::super) fn combine(&mut self, later: &Found) {
        for lane in 0..LANES {
            self.sum[lane] += later.sum[lane];
            self.squares[lane] += later.squares[lane];
            if later.most[lane] > self.most[lane] {
                (self.most[lane], self.most_at[lane]) = (later.most[lane], later.most_at[lane]);
            }
            if later.least[lane] < self.least[lane] {
                (self.least[lane], self.least_at[lane]) = (later.least[lane], later.least_at[lane]);
            }
        }
    }

    /// Writes the aggregates of a row with `degree` messages.
    #[inline(always)]
    pub(in super::super) fn finish(
        &self,
        degree: u32,
        out: &mut [f32],
        width: usize,
        (column, len): (usize, usize),
    ) {
        let share = 1.0 / degree as f32;
        let (mean, rest) = out.split_at_mut(width);
        let (most, rest) = rest.split_at_mut(width);
        let (least, deviation) = rest.split_at_mut(width);
        most[column..column + len].copy_from_slice(&self.most[..len]);
        least[column..column + len].copy_from_slice(&self.least[..len]);
        let (mean, deviation) = (&mut mean[column..][..len], &mut deviation[column..][..len]);
        for lane in 0..len {
            mean[lane] = self.sum[lane] * share;
            let variance = self.squares[lane] * share - mean[lane] * mean[lane];
            deviation[lane] = (if variance > LEAST_VARIANCE { variance } else { LEAST_VARIANCE }).sqrt();
        }
    }

    /// Records which edges of a row attain its maximum and minimum; `edges` are the row's masks.
    pub(in super::super) fn mark(
        &self,
        edges: &mut [u32],
        starts: Option<&mut [u32]>,
        (words, word): (usize, usize),
        len: usize,
    ) {
        let mut start = [0, 0];
        for (which, places) in [&self.most_at, &self.least_at].into_iter().enumerate() {
            for (lane, &at) in places[..len].iter().enumerate() {
                match at {
                    START => start[which] |= 1 << lane,
                    ZERO => {}
                    edge => edges[(edge as usize * words + word) * 2 + which] |= 1 << lane,
                }
            }
        }
        if let Some(starts) = starts {
            starts[2 * word..2 * word + 2].copy_from_slice(&start);
        }
    }
}

/// Two vectors of values.
#[inline(always)]
pub(in super::super) fn pair<S: Simd>(values: &[f32]) -> [S::f32s; 2] {
    let vectors = S::as_simd_f32s(values).0;
    [vectors[0], vectors[1]]
}
