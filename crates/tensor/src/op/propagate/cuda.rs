//! The aggregation on CUDA: one warp per item of the edge index and group of 32 columns, one lane per column.
//!
//! ```text
//! forward    item ──propagate──▶ out            a row whose edges are one item
//!            item ──propagate──▶ slot ─┐
//!            item ──propagate──▶ slot ─┴─propagate_big──▶ out       a row of several items (a hub)
//!
//! backward   gradient of out ──propagate_derivatives──▶ a and b of each row: a message x gets a + b x
//!            per piece of a sender: ──propagate_back──▶ sum ──┬──▶ state
//!                                                             └──propagate_weights, propagate_kinds──▶ weights
//! ```
//!
//! An item has a bounded number of edges, so one hub with a million edges does not keep a single warp busy while all
//! others wait. Slots are added up in the order of their items: the result does not depend on which warp came first.

use super::{Derivatives, Masks, Sizes};
use crate::cuda::Cuda;
use crate::cuda::launch::{BLOCK, arguments};
use crate::error::Result;
use crate::memory::Buffer;
use crate::reach::Reach;

/// The inputs of the backward pass.
pub(super) struct Given<'a> {
    pub(super) gradient: Buffer<f32>,
    pub(super) output: &'a Buffer<f32>,
    pub(super) masks: &'a Masks,
}

/// The grid of a kernel with one warp per task and group of columns.
pub(super) fn grid(tasks: usize, sizes: Sizes) -> (usize, usize) {
    ((tasks * 32).div_ceil(BLOCK), sizes.words)
}

pub(super) fn forward(
    cuda: &Cuda,
    reach: &Reach,
    sizes: Sizes,
    [state, weights, start]: [&Buffer<f32>; 3],
    out: &mut Buffer<f32>,
    mut masks: Option<&mut Masks>,
) -> Result<()> {
    let Sizes { before, after, width, weight_step, .. } = sizes;
    let (net, device) = (reach.descriptor.as_ref(), state.device());
    // Sum, sum of squares, maximum and minimum of each item that is not alone; and the edges of the last two.
    let mut parts = device.allocate::<f32>(after.slots * 4 * width)?;
    let mut places = device.allocate::<u32>(after.slots * 2 * width)?;
    let (edges, starts) = masks.as_mut().map(|masks| (&mut masks.edges, &mut masks.starts)).unzip();
    let (edges, starts) = (edges.as_deref(), starts.as_deref());
    let arguments = arguments![
        net,
        state,
        weights,
        weight_step,
        start,
        before.rows,
        after.items,
        width,
        &mut *out,
        edges,
        starts,
        &mut parts,
        &mut places
    ];
    cuda.blocks("propagate", grid(after.items, sizes), BLOCK, arguments)?;
    if after.bigs > 0 {
        let arguments = arguments![net, after.bigs, width, &parts, &mut places, out, starts];
        cuda.blocks("propagate_big", grid(after.bigs, sizes), BLOCK, arguments)?;
        // Which edge won is known only now that the items are joined; the bits of the others stay zero.
        if edges.is_some() {
            let arguments = arguments![net, after.slots, width, &places, edges];
            cuda.blocks("propagate_marks", grid(after.slots, sizes), BLOCK, arguments)?;
        }
    }
    Ok(())
}

pub(super) fn backward(
    cuda: &Cuda,
    reach: &Reach,
    sizes: Sizes,
    [state, weights, start]: [&Buffer<f32>; 3],
    given: Given,
    derivatives: &mut Derivatives,
) -> Result<()> {
    let Sizes { before, after, width, weight_step, .. } = sizes;
    let (net, device, queries) = (reach.descriptor.as_ref(), state.device(), reach.queries());
    let Given { mut gradient, output, masks } = given;
    // In place: the gradient of the four aggregates becomes the factors from which each message's derivative is made.
    let n = after.rows * width;
    let arguments = arguments![reach.row_degrees.buffer(), n, width, output, &mut gradient];
    cuda.threads("propagate_derivatives", n, arguments)?;
    let arguments = arguments![queries, width, start, &gradient, &masks.starts, &mut derivatives.start];
    cuda.threads("propagate_start_back", queries * width, arguments)?;
    // Only explanations ask how much each edge mattered.
    if let Some(edges) = &mut derivatives.edges {
        let (rows, items, words) = (after.rows, before.items, sizes.words);
        let arguments = arguments![
            net,
            state,
            weights,
            weight_step,
            &gradient,
            &masks.edges,
            rows,
            items,
            width,
            words,
            edges
        ];
        cuda.warps("propagate_trace", items, arguments)?;
    }
    // All messages of a row along one kind of link are equal, so their derivatives are summed first (a piece); the sum
    // then serves the sender's state and the weights of the kind.
    let mut sums = device.allocate::<f32>(before.pieces * width)?;
    let mut parts = device.allocate::<f32>(before.slots * width)?;
    let arguments = arguments![
        net,
        state,
        weights,
        weight_step,
        &gradient,
        &masks.edges,
        after.rows,
        before.items,
        width,
        &mut sums,
        &mut derivatives.state,
        &mut parts
    ];
    cuda.blocks("propagate_back", grid(before.items, sizes), BLOCK, arguments)?;
    let arguments = arguments![net, before.bigs, width, &parts, &mut derivatives.state];
    cuda.blocks("propagate_big_back", grid(before.bigs, sizes), BLOCK, arguments)?;
    to_weights(cuda, reach, sizes, state, &sums, &mut derivatives.weights)
}

/// The derivatives of the weights, from the sums of the messages' derivatives.
pub(super) fn to_weights(
    cuda: &Cuda,
    reach: &Reach,
    sizes: Sizes,
    state: &Buffer<f32>,
    sums: &Buffer<f32>,
    out: &mut Buffer<f32>,
) -> Result<()> {
    let Sizes { before, width, weight_step, .. } = sizes;
    let (net, device, queries) = (reach.descriptor.as_ref(), state.device(), reach.queries());
    let (chunks, kinds) = (reach.edge_index.0.chunks(), reach.edge_index.kinds());
    // A frequent kind has many pieces: they are summed in chunks of fixed size, then the chunks of a kind in order.
    let mut parts = device.allocate::<f32>(queries * chunks * width)?;
    let arguments = arguments![net, state, sums, before.rows, width, &mut parts];
    cuda.blocks("propagate_weights", grid(queries * chunks, sizes), BLOCK, arguments)?;
    if weight_step > 0 {
        let arguments = arguments![net, width, &parts, out];
        return cuda.blocks("propagate_kinds", grid(queries * kinds, sizes), BLOCK, arguments);
    }
    // Weights that all queries share get the sum over the queries.
    let mut each = device.allocate::<f32>(queries * kinds * width)?;
    cuda.blocks(
        "propagate_kinds",
        grid(queries * kinds, sizes),
        BLOCK,
        arguments![net, width, &parts, &mut each],
    )?;
    let arguments = arguments![&each, queries, kinds * width, out, 1.0f32, false];
    cuda.threads("sum_parts", kinds * width, arguments)
}
