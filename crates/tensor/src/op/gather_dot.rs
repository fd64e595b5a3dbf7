//! Ragged candidates against states: the dot product of each candidate's embedding with the state of its segment.

use super::scatter::Scatter;
use crate::cpu::simd;
use crate::cuda::launch::arguments;
use crate::device::Backend;
use crate::error::{Result, expect_shape};
use crate::random::Dropout;
use crate::tape::{Flow, Operation, Tape, Var};
use crate::value::{Indices, Segments, Tensor};

struct GatherDot {
    states: Var,
    table: Var,
    indices: Indices,
    segments: Segments,
    dropout: Dropout,
    output: Var,
}

impl Tape<'_> {
    /// For every position `p` in segment `s`: the dot product of row `s` of `states` with row `indices[p]` of
    /// `table`, to which dropout is applied as if it had been gathered. Returns a vector.
    pub fn gather_dot(
        &mut self,
        states: Var,
        table: Var,
        indices: &Indices,
        segments: &Segments,
        dropout: f32,
    ) -> Result<Var> {
        let dropout = self.dropout_of(dropout);
        let (left, right) = (self.input("gather_dot", states)?, self.at(table));
        let columns = left.columns();
        let (states_shape, table_shape) = (left.shape(), right.shape());
        expect_shape(
            columns == right.columns(),
            "gather_dot",
            "states and table",
            &states_shape,
            &table_shape,
        )?;
        expect_shape(
            segments.len() == left.rows(),
            "gather_dot",
            "segments and states",
            &[segments.len()],
            &states_shape,
        )?;
        let total = segments.total();
        expect_shape(
            total == indices.len(),
            "gather_dot",
            "segments and indices",
            &[total],
            &[indices.len()],
        )?;
        indices.expect_below(right.rows(), "gather_dot")?;
        let mut out = self.device().allocate::<f32>(total)?;
        match self.device().backend() {
            Backend::Cpu(cpu) => {
                let (states, table) = (left.buffer().host(), right.buffer().host());
                let (indices, starts) = (indices.buffer().host(), segments.starts());
                // The work is candidates × width, so chunks are smaller than for plain segments.
                cpu.segments_of(out.host_mut(), starts, columns, |range, out| {
                    simd::vectorise(
                        #[inline(always)]
                        || {
                            let offset = starts[range.start] as usize;
                            for segment in range {
                                let state = &states[segment * columns..(segment + 1) * columns];
                                for position in starts[segment] as usize..starts[segment + 1] as usize {
                                    let from = indices[position] as usize * columns;
                                    let row = &table[from..from + columns];
                                    out[position - offset] = if dropout.is_none() {
                                        simd::dot(state, row)
                                    } else {
                                        dot_dropped(state, row, dropout, position * columns)
                                    };
                                }
                            }
                        },
                    )
                });
            }
            Backend::Cuda(cuda) => {
                let owners = segments.owners()?;
                let (states, table, indices, owners) =
                    (left.buffer(), right.buffer(), indices.buffer(), owners.buffer());
                let arguments = arguments![states, table, indices, owners, &mut out, total, columns, dropout];
                cuda.warps("gather_dot", total, arguments)?;
            }
        }
        let output = Tensor::of(out, total, 1);
        let (indices, segments) = (indices.clone(), segments.clone());
        Ok(self.record(output, &[states, table], |output| GatherDot {
            states,
            table,
            indices,
            segments,
            dropout,
            output,
        }))
    }
}

/// The dot product of `state` with a row after dropout.
#[inline(always)]
fn dot_dropped(state: &[f32], row: &[f32], dropout: Dropout, first: usize) -> f32 {
    const LANES: usize = 16;
    let mut sums = [0.0f32; LANES];
    let whole = state.len() / LANES * LANES;
    for start in (0..whole).step_by(LANES) {
        let (state, row) = (&state[start..start + LANES], &row[start..start + LANES]);
        for lane in 0..LANES {
            let factor = dropout.factor((first + start + lane) as u32);
            sums[lane] = (state[lane] * factor).mul_add(row[lane], sums[lane]);
        }
    }
    for (lane, k) in (whole..state.len()).enumerate() {
        let factor = dropout.factor((first + k) as u32);
        sums[lane] = (state[k] * factor).mul_add(row[k], sums[lane]);
    }
    sums.iter().sum()
}

impl Operation for GatherDot {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let gradient = flow.output(self.output)?;
        let (states, table) = (flow.value(self.states), flow.value(self.table));
        let columns = states.columns();
        if let Some(mut target) = flow.target(self.states)? {
            match flow.device().backend() {
                Backend::Cpu(cpu) => {
                    let (table, indices, starts) =
                        (table.buffer().host(), self.indices.buffer().host(), self.segments.starts());
                    let (gradient, fresh) = (gradient.host(), target.fresh);
                    cpu.zip([(target.buffer.host_mut(), columns)], 16, |first, [target]| {
                        simd::vectorise(
                            #[inline(always)]
                            || {
                                for (index, target) in target.chunks_exact_mut(columns).enumerate() {
                                    let segment = first + index;
                                    if fresh {
                                        target.fill(0.0);
                                    }
                                    for position in starts[segment] as usize..starts[segment + 1] as usize {
                                        let from = indices[position] as usize * columns;
                                        let row = &table[from..from + columns];
                                        let derivative = gradient[position];
                                        if self.dropout.is_none() {
                                            simd::add_scaled(target, derivative, row);
                                        } else {
                                            let first = position * columns;
                                            super::scatter::add_dropped(
                                                target,
                                                derivative,
                                                row,
                                                self.dropout,
                                                first,
                                            );
                                        }
                                    }
                                }
                            },
                        )
                    });
                }
                Backend::Cuda(cuda) => {
                    let threads = columns.next_multiple_of(32).clamp(32, 256);
                    let arguments = arguments![
                        table.buffer(),
                        self.indices.buffer(),
                        self.segments.buffer(),
                        &gradient,
                        &mut target.buffer,
                        columns,
                        self.dropout,
                        target.fresh
                    ];
                    cuda.blocks("gather_dot_states", (self.segments.len(), 1), threads, arguments)?;
                }
            }
            flow.put(self.states, target.buffer, None);
        }
        let Some((mut target, mut touched)) = flow.target_rows(self.table)? else { return Ok(()) };
        let scatter = Scatter {
            indices: &self.indices,
            source: states.buffer(),
            owners: Some(&self.segments.owners()?),
            scale: Some(&gradient),
            dropout: self.dropout,
            columns,
        };
        scatter.add_to(&mut target.buffer, touched.as_mut(), table.rows())?;
        flow.put(self.table, target.buffer, touched);
        Ok(())
    }
}
