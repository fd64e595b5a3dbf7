//! The derivatives of the weights: sums over the pieces of every kind, in their order.

use super::super::{Derivatives, Sizes};
use super::View;
use crate::cpu::{Cpu, simd};

/// The derivatives of the weights, from the sums of the messages' derivatives.
pub(in super::super) fn to_weights(cpu: &Cpu, view: &View, sums: &[f32], derivatives: &mut Derivatives) {
    let Sizes { width, before, weight_step, .. } = view.sizes;
    let (chunks, queries, edges) = (view.edges.chunks(), view.reach.queries(), view.edges);
    let mut parts = cpu.floats().take(queries * chunks * width);
    cpu.zip([(&mut parts, width)], 16, |first, [parts]| {
        simd::vectorise(
            #[inline(always)]
            || {
                for (index, part) in parts.chunks_exact_mut(width).enumerate() {
                    let (query, chunk) = ((first + index) / chunks, (first + index) % chunks);
                    let places = view.places_of(query);
                    part.fill(0.0);
                    let range =
                        edges.chunk_starts.host[chunk] as usize..edges.chunk_starts.host[chunk + 1] as usize;
                    for at in range {
                        let row = places[edges.kind_nodes.host[at] as usize] as usize;
                        if row >= before.rows {
                            continue;
                        }
                        let piece = view.row_pieces[row] as usize + edges.kind_pieces.host[at] as usize;
                        let (sum, state) =
                            (&sums[piece * width..][..width], &view.state[row * width..][..width]);
                        for column in 0..width {
                            part[column] = sum[column].mul_add(state[column], part[column]);
                        }
                    }
                }
            },
        )
    });
    let bounds = &edges.kind_chunks.host;
    let kinds = edges.kinds;
    cpu.zip([(derivatives.weights.host_mut(), width)], 64, |first, [derivatives]| {
        for (index, derivative) in derivatives.chunks_exact_mut(width).enumerate() {
            let (own, kind) = ((first + index) / kinds, (first + index) % kinds);
            let asked = if weight_step > 0 { own..own + 1 } else { 0..queries };
            derivative.fill(0.0);
            for query in asked {
                for chunk in bounds[kind] as usize..bounds[kind + 1] as usize {
                    simd::add(derivative, &parts[(query * chunks + chunk) * width..][..width]);
                }
            }
        }
    });
    cpu.floats().give(parts);
}
