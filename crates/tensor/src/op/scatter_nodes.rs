//! From rows to nodes: a matrix with a value for every (query, node). Nodes without a row share one value per query.

use std::sync::Arc;

use crate::cuda::launch::arguments;
use crate::device::Backend;
use crate::error::{Result, expect_shape};
use crate::reach::Reach;
use crate::tape::{Flow, Operation, Tape, Var};
use crate::value::Tensor;

struct Spread {
    input: Var,
    output: Var,
    reach: Arc<Reach>,
}

impl Tape<'_> {
    /// The values of [`Tape::mlp_score`], one for each row of the last layer and then one for each query, as a matrix of
    /// queries × nodes.
    pub fn scatter_nodes(&mut self, input: Var, reach: &Arc<Reach>) -> Result<Var> {
        let (rows, count, nodes) = (reach.rows(reach.layers()), reach.queries(), reach.edge_index.nodes());
        let value = self.input("scatter_nodes", input)?;
        let shape = value.shape();
        expect_shape(
            shape == [rows + count, 1],
            "scatter_nodes",
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
                cuda.threads("scatter_nodes", n, arguments)?;
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
        let (rows, count, nodes) = (reach.rows(reach.layers()), reach.queries(), reach.edge_index.nodes());
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
                cuda.threads("scatter_nodes_back", rows, arguments)?;
                let arguments = arguments![&gradient, places, nodes, rows, &mut part];
                cuda.blocks("scatter_nodes_rest", (count, 1), 1024, arguments)?;
            }
        }
        flow.add(self.input, part)
    }
}
