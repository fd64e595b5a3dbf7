//! Rows of a table by index: the embedding of each item of a list, with dropout fused.

use super::scatter::Scatter;
use crate::tensor::cpu::simd;
use crate::tensor::cuda::launch::arguments;
use crate::tensor::device::Backend;
use crate::tensor::error::Result;
use crate::tensor::random::Dropout;
use crate::tensor::tape::{Flow, Operation, Tape, Var};
use crate::tensor::value::{Indices, Tensor};

pub(crate) const KERNELS: &str = r#"
extern "C" __global__ void gather(const float* table, const u32* indices, float* out, u32 n, u32 columns, Dropout dropout) {
    u32 i = THREAD;
    if (i >= n) return;
    out[i] = table[(u64)indices[i / columns] * columns + i % columns] * kept(dropout, i);
}
"#;

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
