//! Rows of a table by index: the embedding of each item of a list, with dropout fused.

use super::scatter::Scatter;
use crate::cpu::simd;
use crate::cuda::launch::arguments;
use crate::device::Backend;
use crate::error::Result;
use crate::random::Dropout;
use crate::tape::{Flow, Operation, Tape, Var};
use crate::value::{Indices, Tensor};

struct Gather {
    table: Var,
    indices: Indices,
    dropout: Dropout,
    output: Var,
}

impl Tape<'_> {
    /// Row `indices[i]` of `table` as row `i`. `table` may be a parameter or any variable (rows of a state).
    pub fn gather(&mut self, table: Var, indices: &Indices, dropout: f32) -> Result<Var> {
        let dropout = self.dropout_of(dropout);
        let value = self.input("gather", table)?;
        let columns = value.columns();
        indices.expect_below(value.rows(), "gather")?;
        let mut out = self.device().allocate::<f32>(indices.len() * columns)?;
        match self.device().backend() {
            Backend::Cpu(cpu) => {
                let (source, indices) = (value.buffer().host(), indices.buffer().host());
                cpu.rows(out.host_mut(), columns, |first, out| {
                    simd::vectorise(
                        #[inline(always)]
                        || {
                            for (index, out) in out.chunks_exact_mut(columns).enumerate() {
                                let from = indices[first + index] as usize * columns;
                                out.copy_from_slice(&source[from..from + columns]);
                                if !dropout.is_none() {
                                    dropout.apply(out, (first + index) * columns);
                                }
                            }
                        },
                    )
                });
            }
            Backend::Cuda(cuda) => {
                let n = indices.len() * columns;
                let arguments = arguments![value.buffer(), indices.buffer(), &mut out, n, columns, dropout];
                cuda.threads("gather", n, arguments)?;
            }
        }
        let output = Tensor::of(out, indices.len(), columns);
        let indices = indices.clone();
        Ok(self.record(output, &[table], |output| Gather { table, indices, dropout, output }))
    }
}

impl Operation for Gather {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let gradient = flow.output(self.output)?;
        let [rows, columns] = flow.value(self.table).shape();
        let Some((mut target, mut touched)) = flow.target_rows(self.table)? else { return Ok(()) };
        let scatter = Scatter {
            indices: &self.indices,
            source: &gradient,
            owners: None,
            scale: None,
            dropout: self.dropout,
            columns,
        };
        scatter.add_to(&mut target.buffer, touched.as_mut(), rows)?;
        flow.put(self.table, target.buffer, touched);
        Ok(())
    }
}
