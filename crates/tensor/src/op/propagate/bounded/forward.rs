//! The aggregation of a step's messages, a block of receivers at a time.
#![allow(unsafe_code)]

use pulp::{Simd, WithSimd};

use super::super::cpu::{First, Found, Incoming};
use super::super::{LANES, Masks};
use super::Sizes;
use crate::cpu::Cpu;
use crate::cpu::disjoint::Disjoint;
use crate::memory::Buffer;
use crate::op::update::RowUpdate;
use crate::reach::FrontierStep;

/// Receivers that are processed at a time: their aggregates stay in the cache.
const ROWS: usize = 256;
/// The same where their aggregates are kept: they differ in how many messages they receive.
const KEPT_ROWS: usize = 32;

/// The inputs, as slices.
struct View<'a> {
    step: &'a FrontierStep,
    sizes: Sizes,
    state: &'a [f32],
    weights: &'a [f32],
    start: &'a [f32],
}

impl<'a> View<'a> {
    fn new(step: &'a FrontierStep, sizes: Sizes, [state, weights, start]: [&'a Buffer<f32>; 3]) -> Self {
        View { step, sizes, state: state.host(), weights: weights.host(), start: start.host() }
    }
}

/// Marks of the edges that attain maximum and minimum.
struct Marks<'a> {
    edges: Disjoint<'a, u32>,
    starts: Disjoint<'a, u32>,
}

pub(super) fn aggregate(
    cpu: &Cpu,
    step: &FrontierStep,
    sizes: Sizes,
    inputs: [&Buffer<f32>; 3],
    out: &mut Buffer<f32>,
    masks: Option<&mut Masks>,
) {
    let view = View::new(step, sizes, inputs);
    let marks = masks.map(|masks| Marks {
        edges: Disjoint::new(masks.edges.host_mut()),
        starts: Disjoint::new(masks.starts.host_mut()),
    });
    cpu.zip([(out.host_mut(), 4 * sizes.width)], KEPT_ROWS, |first, [out]| {
        pulp::Arch::new().dispatch(Rows { view: &view, marks: marks.as_ref(), first, out });
    });
}

/// A layer without a gradient: from messages to the new states of the receivers.
pub(super) fn layer(
    cpu: &Cpu,
    step: &FrontierStep,
    sizes: Sizes,
    inputs: [&Buffer<f32>; 3],
    update: &RowUpdate,
    out: &mut Buffer<f32>,
) {
    let view = View::new(step, sizes, inputs);
    cpu.zip([(out.host_mut(), sizes.width)], ROWS, |first, [out]| {
        let mut aggregates = cpu.floats().take(4 * out.len());
        pulp::Arch::new().dispatch(Rows { view: &view, marks: None, first, out: &mut aggregates });
        update.rows(cpu, first, &aggregates, out);
        cpu.floats().give(aggregates);
    });
}

/// A range of receivers, processed in order.
struct Rows<'a> {
    view: &'a View<'a>,
    marks: Option<&'a Marks<'a>>,
    first: usize,
    out: &'a mut [f32],
}

impl WithSimd for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match self.marks {
            Some(_) => self.run::<S, true>(simd),
            None => self.run::<S, false>(simd),
        }
    }
}

impl Rows<'_> {
    #[inline(always)]
    fn run<S: Simd, const MARKS: bool>(self, simd: S) {
        let Rows { view, marks, first, out } = self;
        let Sizes { width, words, .. } = view.sizes;
        let (mut found, mut part) = (Found::neutral(), Found::neutral());
        for (index, out) in (first..).zip(out.chunks_exact_mut(4 * width)) {
            let query = view.step.receiver_query(index);
            let is_start = view.step.starts[query] as usize == index;
            for word in 0..words {
                let columns = (word * LANES, LANES.min(width - word * LANES));
                view.gather::<S, MARKS>(simd, (index, query, is_start), columns, [&mut found, &mut part]);
                found.finish(view.step.degree(index), out, width, columns);
                if let Some(Marks { edges, starts }) = marks {
                    let range = view.step.messages_of(index);
                    // SAFETY: the messages of receivers are disjoint, and a query has one start.
                    let edges = unsafe { edges.part(range.start * words * 2..range.end * words * 2) };
                    let starts =
                        is_start.then(|| unsafe { starts.part(query * words * 2..(query + 1) * words * 2) });
                    found.mark(edges, starts, (words, word), columns.1);
                }
            }
        }
    }
}

impl View<'_> {
    /// Aggregates all items of a receiver into the first of `found`.
    #[inline(always)]
    fn gather<S: Simd, const MARKS: bool>(
        &self,
        simd: S,
        (index, query, is_start): (usize, usize, bool),
        columns: (usize, usize),
        [found, part]: [&mut Found; 2],
    ) {
        let Sizes { width, weight_step, .. } = self.sizes;
        let weights = &self.weights[query * weight_step..];
        let mut first = match is_start {
            true => First::Start(&self.start[query * width..][..width]),
            false => First::Nothing,
        };
        for (number, item) in self.step.items_of(index).iter().enumerate() {
            let senders = &self.step.senders[item.first as usize..item.end as usize];
            let incoming = Incoming { state: self.state, weights, width, senders, first, idle: item.idle };
            match number {
                0 => found.gather::<S, MARKS>(simd, &incoming, columns),
                _ => {
                    part.gather::<S, MARKS>(simd, &incoming, columns);
                    found.combine(part);
                }
            }
            first = First::No;
        }
    }
}
