//! From rows to nodes: a matrix with a value for every (query, node). Nodes without a row share one value per query.

use std::sync::Arc;

use crate::tensor::cuda::launch::arguments;
use crate::tensor::device::Backend;
use crate::tensor::error::{Result, expect_shape};
use crate::tensor::reach::Reach;
use crate::tensor::tape::{Flow, Operation, Tape, Var};
use crate::tensor::value::Tensor;

pub(crate) const KERNELS: &str = r#"
extern "C" __global__ void spread(const float* in, const u32* places, u32 nodes, u32 n, u32 rows, float* out) {
    u32 i = THREAD;
    if (i >= n) return;
    u32 row = places[i];
    out[i] = in[row < rows ? row : rows + i / nodes];
}
extern "C" __global__ void spread_back(const float* gradient, const u32* queries, const u32* row_nodes, u32 nodes, u32 rows, float* part) {
    u32 row = THREAD;
    if (row < rows) part[row] = gradient[(u64)queries[row] * nodes + row_nodes[row]];
}
// A block for each query adds up what its nodes without a row have.
extern "C" __global__ void spread_rest(const float* gradient, const u32* places, u32 nodes, u32 rows, float* part) {
    const float* from = gradient + (u64)blockIdx.x * nodes;
    const u32* at = places + (u64)blockIdx.x * nodes;
    float sum = 0.0f;
    for (u32 i = threadIdx.x; i < nodes; i += blockDim.x) if (at[i] >= rows) sum += from[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) part[rows + blockIdx.x] = sum;
}
"#;

struct Spread {
    input: Var,
    output: Var,
    reach: Arc<Reach>,
}

impl Tape<'_> {
    /// The values of [`Tape::judge`], one for each row of the last layer and then one for each query, as a matrix of
    /// queries × nodes.
    pub fn spread(&mut self, input: Var, reach: &Arc<Reach>) -> Result<Var> {
        let (rows, count, nodes) = (reach.rows(reach.layers()), reach.queries(), reach.mesh.nodes());
        let value = self.input("spread", input)?;
        let shape = value.shape();
        expect_shape(
            shape == [rows + count, 1],
            "spread",
            "values and rows reached",
            &shape,
            &[rows + count, 1],
        )?;
        let mut out = self.device().allocate::<f32>(count * nodes)?;
        let places = reach.places.buffer();
        match self.device().backend() {
            Backend::Cpu(cpu) => {
                let (values, places) = (value.buffer().host(), places.host());
                cpu.rows(out.host_mut(), 1, |first, out| {
                    for (index, out) in out.iter_mut().enumerate() {
                        let row = places[first + index] as usize;
                        *out = values[if row < rows { row } else { rows + (first + index) / nodes }];
                    }
                });
            }
            Backend::Cuda(cuda) => {
                let n = count * nodes;
                let arguments = arguments![value.buffer(), places, nodes, n, rows, &mut out];
                cuda.threads("spread", n, arguments)?;
            }
        }
        let output = Tensor::of(out, count, nodes);
        let reach = reach.clone();
        Ok(self.record(output, &[input], |output| Spread { input, output, reach }))
    }
}

impl Operation for Spread {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let gradient = flow.output(self.output)?;
        let reach = &self.reach;
        let (rows, count, nodes) = (reach.rows(reach.layers()), reach.queries(), reach.mesh.nodes());
        let mut part = flow.device().allocate::<f32>(rows + count)?;
        let lists = [&reach.places, &reach.row_queries, &reach.row_nodes].map(|list| list.buffer());
        match flow.device().backend() {
            Backend::Cpu(_) => {
                let [places, queries, row_nodes] = lists.map(|list| list.host());
                let (gradient, part) = (gradient.host(), part.host_mut());
                for row in 0..rows {
                    part[row] = gradient[queries[row] as usize * nodes + row_nodes[row] as usize];
                }
                for query in 0..count {
                    let range = query * nodes..(query + 1) * nodes;
                    let rest = gradient[range.clone()].iter().zip(&places[range]);
                    part[rows + query] = rest
                        .filter(|(_, place)| **place as usize >= rows)
                        .map(|(derivative, _)| derivative)
                        .sum();
                }
            }
            Backend::Cuda(cuda) => {
                let [places, queries, row_nodes] = lists;
                let arguments = arguments![&gradient, queries, row_nodes, nodes, rows, &mut part];
                cuda.threads("spread_back", rows, arguments)?;
                let arguments = arguments![&gradient, places, nodes, rows, &mut part];
                cuda.blocks("spread_rest", (count, 1), 1024, arguments)?;
            }
        }
        flow.add(self.input, part)
    }
}
