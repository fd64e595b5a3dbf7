//! The forward pass: items are distributed over all threads.
#![allow(unsafe_code)]

use pulp::{Simd, WithSimd};

use super::super::{LANES, Masks, Sizes};
use super::found::Found;
use super::{ITEMS, Item, View};
use crate::cpu::Cpu;
use crate::cpu::disjoint::Disjoint;
use crate::memory::Buffer;
use crate::op::update::RowUpdate;
use crate::reach::{NONE, Reach};

/// Rows that a layer without a gradient processes at a time: their aggregates stay in the cache.
const ROWS: usize = 256;

/// Where the forward pass writes; the parts are disjoint, as argued where they are taken.
struct Output<'a> {
    aggregates: Disjoint<'a, f32>,
    slots: Disjoint<'a, Found>,
    marks: Option<(Disjoint<'a, u32>, Disjoint<'a, u32>)>,
}

/// A range of items, processed in order.
struct Items<'a> {
    view: &'a View<'a>,
    output: &'a Output<'a>,
    range: std::ops::Range<usize>,
}

pub(in super::super) fn forward(
    cpu: &Cpu,
    reach: &Reach,
    sizes: Sizes,
    inputs: [&Buffer<f32>; 3],
    out: &mut Buffer<f32>,
    masks: Option<&mut Masks>,
) {
    let view = View::new(reach, sizes, inputs);
    let Sizes { words, after, .. } = sizes;
    let mut parts = vec![Found::neutral(); after.slots * words];
    let output = Output {
        aggregates: Disjoint::new(out.host_mut()),
        slots: Disjoint::new(&mut parts),
        marks: masks
            .map(|masks| (Disjoint::new(masks.edges.host_mut()), Disjoint::new(masks.starts.host_mut()))),
    };
    cpu.each(after.items.div_ceil(ITEMS), |task| {
        let range = task * ITEMS..((task + 1) * ITEMS).min(after.items);
        pulp::Arch::new().dispatch(Items { view: &view, output: &output, range });
    });
    let (big_rows, big_slots) = (reach.big_rows.buffer().host(), reach.big_slots.buffer().host());
    cpu.each(after.bigs, |big| {
        for word in 0..words {
            let mut all = Found::neutral();
            for slot in big_slots[big] as usize..big_slots[big + 1] as usize {
                // SAFETY: all items have written their results, and one task reads those of a row.
                all.combine(&unsafe { output.slots.part(slot * words + word..slot * words + word + 1) }[0]);
            }
            output.finish(&view, big_rows[big] as usize, &all, word);
        }
    });
}

/// A layer without a gradient: a block of rows at a time, from messages to new states.
pub(in super::super) fn layer(
    cpu: &Cpu,
    reach: &Reach,
    sizes: Sizes,
    inputs: [&Buffer<f32>; 3],
    update: &RowUpdate,
    out: &mut Buffer<f32>,
) {
    let view = View::new(reach, sizes, inputs);
    let Sizes { width, words, after, .. } = sizes;
    let mut parts = vec![Found::neutral(); after.slots * words];
    let output = Output { aggregates: Disjoint::new(&mut []), slots: Disjoint::new(&mut parts), marks: None };
    let slot_items = reach.slot_items.buffer().host();
    cpu.each(after.slots, |slot| {
        let item = slot_items[slot] as usize;
        pulp::Arch::new().dispatch(Items { view: &view, output: &output, range: item..item + 1 });
    });
    cpu.zip([(out.host_mut(), width)], ROWS, |first, [out]| {
        let mut aggregates = cpu.floats().take(4 * out.len());
        pulp::Arch::new().dispatch(Rows { view: &view, parts: &parts, first, out: &mut aggregates });
        update.rows(cpu, first, &aggregates, out);
        cpu.floats().give(aggregates);
    });
}

/// A range of rows, processed in order; `parts` are the results of the items of rows with several.
struct Rows<'a> {
    view: &'a View<'a>,
    parts: &'a [Found],
    first: usize,
    out: &'a mut [f32],
}

impl WithSimd for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Rows { view, parts, first, out } = self;
        let Sizes { width, words, after, .. } = view.sizes;
        let bigs = &view.reach.big_rows.buffer().host()[..after.bigs];
        let big_slots = view.reach.big_slots.buffer().host();
        let (mut senders, mut found) = (Vec::new(), Found::neutral());
        for (row, out) in (first..).zip(out.chunks_exact_mut(4 * width)) {
            let big = match view.items_of(row) {
                1 => None,
                _ => Some(bigs.partition_point(|&big| (big as usize) < row)),
            };
            let item = view.only_item(row);
            let idle = big.is_none() && view.senders(&item, &mut senders);
            for word in 0..words {
                let columns = (word * LANES, LANES.min(width - word * LANES));
                match big {
                    None => view.gather::<S, false>(simd, &item, (&senders, idle), columns, &mut found),
                    Some(big) => {
                        found = Found::neutral();
                        let slots = big_slots[big] as usize..big_slots[big + 1] as usize;
                        slots.for_each(|slot| found.combine(&parts[slot * words + word]));
                    }
                }
                found.finish(view.row_degrees[row], out, width, columns);
            }
        }
    }
}

impl Output<'_> {
    /// Writes the result of a row in one group of columns.
    #[inline(always)]
    fn finish(&self, view: &View, row: usize, found: &Found, word: usize) {
        let Sizes { width, words, .. } = view.sizes;
        let len = LANES.min(width - word * LANES);
        // SAFETY, for all parts: only one item, or one task for a row of several items, finishes a row.
        let out = unsafe { self.aggregates.part(row * 4 * width..(row + 1) * 4 * width) };
        found.finish(view.row_degrees[row], out, width, (word * LANES, len));
        let Some((edges, starts)) = &self.marks else { return };
        let first = view.row_edges[row] as usize;
        let count = view.edges.edges_of(view.row_nodes[row] as usize).len();
        let edges = unsafe { edges.part(first * words * 2..(first + count) * words * 2) };
        let query = view.row_queries[row] as usize;
        let starts = (row < view.reach.queries())
            .then(|| unsafe { starts.part(query * words * 2..(query + 1) * words * 2) });
        found.mark(edges, starts, (words, word), len);
    }

    /// Clears the masks of an item's edges.
    #[inline(always)]
    fn clear_marks(&self, view: &View, item: &Item) {
        if let Some((edges, _)) = &self.marks {
            let first = view.row_edges[item.row] as usize + item.range.start - item.first;
            let step = view.sizes.words * 2;
            // SAFETY: the edges of items are disjoint.
            unsafe { edges.part(first * step..(first + item.range.len()) * step) }.fill(0);
        }
    }
}

impl WithSimd for Items<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match self.output.marks {
            Some(_) => self.run::<S, true>(simd),
            None => self.run::<S, false>(simd),
        }
    }
}

impl Items<'_> {
    #[inline(always)]
    fn run<S: Simd, const MARKS: bool>(self, simd: S) {
        let Items { view, output, range } = self;
        let Sizes { width, words, .. } = view.sizes;
        let (mut senders, mut found) = (Vec::new(), Found::neutral());
        for at in range {
            let item = view.item(at);
            output.clear_marks(view, &item);
            let idle = view.senders(&item, &mut senders);
            for word in 0..words {
                let columns = (word * LANES, LANES.min(width - word * LANES));
                view.gather::<S, MARKS>(simd, &item, (&senders, idle), columns, &mut found);
                match item.slot {
                    NONE => output.finish(view, item.row, &found, word),
                    slot => {
                        let slot = slot as usize * words + word;
                        // SAFETY: an item has its own slot.
                        let place = unsafe { output.slots.part(slot..slot + 1) };
                        place[0] = found;
                    }
                }
            }
        }
    }
}
