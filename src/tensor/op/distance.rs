//! RotatE's score: the distance of rotated heads from candidates, ragged for training, against all for ranking.
//!
//! `distance = Σₖ |qₖ − eₖ|` over complex numbers (real parts first, then imaginary parts).

use crate::tensor::cpu::simd;
use crate::tensor::device::Backend;
use crate::tensor::error::{Result, expect_shape};
use crate::tensor::tape::{Flow, Operation, Tape, Var};
use crate::tensor::value::{Indices, Segments, Tensor};

/// Keeps the slope finite where a query meets its candidate exactly.
const TINY: f32 = 1e-12;

struct GatherDistance {
    queries: Var,
    table: Var,
    indices: Indices,
    segments: Segments,
    output: Var,
}

impl Tape<'_> {
    /// For every position `p` in segment `s`: the distance of row `s` of `queries` from row `indices[p]` of
    /// `table`. Gives a vector.
    pub fn gather_distance(
        &mut self,
        queries: Var,
        table: Var,
        indices: &Indices,
        segments: &Segments,
    ) -> Result<Var> {
        let (left, right) = (self.input("gather_distance", queries)?, self.at(table));
        let columns = left.columns();
        let fits = columns == right.columns() && columns % 2 == 0;
        expect_shape(fits, "gather_distance", "queries and table", &left.shape(), &right.shape())?;
        let (count, total) = (segments.len(), segments.total());
        expect_shape(
            count == left.rows(),
            "gather_distance",
            "segments and queries",
            &[count],
            &left.shape(),
        )?;
        expect_shape(
            total == indices.len(),
            "gather_distance",
            "segments and indices",
            &[total],
            &[indices.len()],
        )?;
        indices.expect_below(right.rows(), "gather_distance")?;
        let mut out = self.device().allocate::<f32>(total)?;
        match self.device().backend() {
            Backend::Cpu(cpu) => {
                let (queries, table) = (left.buffer().host(), right.buffer().host());
                let (indices, starts) = (indices.buffer().host(), segments.starts());
                cpu.segments_of(out.host_mut(), starts, columns, |range, out| {
                    simd::vectorise(
                        #[inline(always)]
                        || {
                            let offset = starts[range.start] as usize;
                            for segment in range {
                                let query = &queries[segment * columns..(segment + 1) * columns];
                                for position in starts[segment] as usize..starts[segment + 1] as usize {
                                    let from = indices[position] as usize * columns;
                                    out[position - offset] = distance(query, &table[from..from + columns]);
                                }
                            }
                        },
                    )
                });
            }
        }
        let output = Tensor::of(out, total, 1);
        let (indices, segments) = (indices.clone(), segments.clone());
        Ok(self.record(output, &[queries, table], |output| GatherDistance {
            queries,
            table,
            indices,
            segments,
            output,
        }))
    }

    /// The distance of every query from every row of `table`, for ranking; no gradient flows.
    pub fn distance_against(&mut self, queries: Var, table: Var) -> Result<Var> {
        let (left, right) = (self.input("distance_against", queries)?, self.at(table));
        let ([rows, columns], count) = (left.shape(), right.rows());
        let fits = columns == right.columns() && columns % 2 == 0;
        expect_shape(fits, "distance_against", "queries and table", &left.shape(), &right.shape())?;
        let mut out = self.device().allocate::<f32>(rows * count)?;
        match self.device().backend() {
            Backend::Cpu(cpu) => {
                let (queries, table) = (left.buffer().host(), right.buffer().host());
                // Blocks of a query's row, so that one query alone keeps all threads busy.
                let block = 256;
                let mut chunks = Vec::new();
                for (row, out) in out.host_mut().chunks_exact_mut(count.max(1)).enumerate() {
                    chunks.extend(
                        out.chunks_mut(block).enumerate().map(|(index, out)| (row, index * block, out)),
                    );
                }
                cpu.run(chunks, |(row, first, out)| {
                    simd::vectorise(
                        #[inline(always)]
                        || {
                            let query = &queries[row * columns..(row + 1) * columns];
                            for (index, out) in out.iter_mut().enumerate() {
                                let from = (first + index) * columns;
                                *out = distance(query, &table[from..from + columns]);
                            }
                        },
                    )
                });
            }
        }
        self.constant(Tensor::of(out, rows, count))
    }
}

#[inline(always)]
fn distance(query: &[f32], row: &[f32]) -> f32 {
    const LANES: usize = 16;
    let half = query.len() / 2;
    let (query_real, query_imaginary) = query.split_at(half);
    let (row_real, row_imaginary) = row.split_at(half);
    let mut sums = [0.0f32; LANES];
    let whole = half / LANES * LANES;
    for start in (0..whole).step_by(LANES) {
        for lane in 0..LANES {
            let k = start + lane;
            let (x, y) = (query_real[k] - row_real[k], query_imaginary[k] - row_imaginary[k]);
            sums[lane] += x.mul_add(x, y.mul_add(y, TINY)).sqrt();
        }
    }
    for k in whole..half {
        let (x, y) = (query_real[k] - row_real[k], query_imaginary[k] - row_imaginary[k]);
        sums[k - whole] += x.mul_add(x, y.mul_add(y, TINY)).sqrt();
    }
    sums.iter().sum()
}

/// `target += slope · ∂ distance / ∂ query`.
#[inline(always)]
fn add_slopes(target: &mut [f32], slope: f32, query: &[f32], row: &[f32]) {
    let half = query.len() / 2;
    let (to_real, to_imaginary) = target.split_at_mut(half);
    let (query_real, query_imaginary) = query.split_at(half);
    let (row_real, row_imaginary) = row.split_at(half);
    for k in 0..half {
        let (x, y) = (query_real[k] - row_real[k], query_imaginary[k] - row_imaginary[k]);
        let factor = slope / x.mul_add(x, y.mul_add(y, TINY)).sqrt();
        to_real[k] += factor * x;
        to_imaginary[k] += factor * y;
    }
}

impl Operation for GatherDistance {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let gradient = flow.output(self.output)?;
        let (queries, table) = (flow.value(self.queries), flow.value(self.table));
        let columns = queries.columns();
        if let Some((mut target, _)) = flow.target_rows(self.queries)? {
            match flow.device().backend() {
                Backend::Cpu(cpu) => {
                    let (queries, table) = (queries.buffer().host(), table.buffer().host());
                    let (indices, starts) = (self.indices.buffer().host(), self.segments.starts());
                    let gradient = gradient.host();
                    cpu.zip([(target.buffer.host_mut(), columns)], 16, |first, [target]| {
                        simd::vectorise(
                            #[inline(always)]
                            || {
                                for (index, target) in target.chunks_exact_mut(columns).enumerate() {
                                    let segment = first + index;
                                    let query = &queries[segment * columns..(segment + 1) * columns];
                                    for position in starts[segment] as usize..starts[segment + 1] as usize {
                                        let from = indices[position] as usize * columns;
                                        add_slopes(
                                            target,
                                            gradient[position],
                                            query,
                                            &table[from..from + columns],
                                        );
                                    }
                                }
                            },
                        )
                    });
                }
            }
            flow.put(self.queries, target.buffer, None);
        }
        let Some((mut target, mut touched)) = flow.target_rows(self.table)? else { return Ok(()) };
        let rows = table.rows();
        match flow.device().backend() {
            Backend::Cpu(cpu) => {
                let groups = self.indices.groups(rows)?;
                let (starts, order) = (groups.starts.host(), groups.order.host());
                if let Some(touched) = &mut touched {
                    super::scatter::touch(touched.host_mut(), starts);
                }
                let owners = self.segments.owners()?;
                let (owners, gradient) = (owners.buffer().host(), gradient.host());
                let (queries, table) = (queries.buffer().host(), table.buffer().host());
                let chunks = super::scatter::split(target.buffer.host_mut(), starts, columns);
                cpu.run(chunks, |(first, chunk)| {
                    simd::vectorise(
                        #[inline(always)]
                        || {
                            for (index, target) in chunk.chunks_exact_mut(columns).enumerate() {
                                let row = first + index;
                                let own = &table[row * columns..(row + 1) * columns];
                                for &position in &order[starts[row] as usize..starts[row + 1] as usize] {
                                    let from = owners[position as usize] as usize * columns;
                                    // The distance is the same seen from the other side.
                                    add_slopes(
                                        target,
                                        gradient[position as usize],
                                        own,
                                        &queries[from..from + columns],
                                    );
                                }
                            }
                        },
                    )
                });
            }
        }
        flow.put(self.table, target.buffer, touched);
        Ok(())
    }
}
