//! From rows to nodes: a matrix with a value for every (query, node). Nodes without a row share one value per query.

use crate::cuda::launch::arguments;
use crate::device::Backend;
use crate::error::{Result, expect_shape};
use crate::reach::ScoredRows;
use crate::tape::{Flow, Operation, Tape, Var};
use crate::value::{Indices, Tensor};

/// Why CUDA finds the rows of all nodes.
const PLACES: &str = "only a bounded frontier has no list of all nodes, and it runs on the CPU alone";

struct Spread {
    input: Var,
    output: Var,
    scored: ScoredRows,
}

impl Tape<'_> {
    /// The values of [`Tape::mlp_score`], one for each row and then one for each query, as a matrix of queries × nodes.
    pub fn scatter_nodes(&mut self, input: Var, scored: &ScoredRows) -> Result<Var> {
        let (rows, count, nodes) = (scored.rows(), scored.queries, scored.nodes);
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
        match self.device().backend() {
            Backend::Cpu(cpu) => {
                let (values, rest) = value.buffer().host().split_at(rows);
                cpu.zip([(out.host_mut(), nodes)], 1, |query, [out]| out.fill(rest[query]));
                let out = out.host_mut();
                scored.each_place(|row, place| out[place] = values[row]);
            }
            Backend::Cuda(cuda) => {
                let n = count * nodes;
                let places = scored.places.as_ref().expect(PLACES).buffer();
                let arguments = arguments![value.buffer(), places, nodes, n, rows, &mut out];
                cuda.threads("scatter_nodes", n, arguments)?;
            }
        }
        let output = Tensor::of(out, count, nodes);
        Ok(self.record(output, &[input], |output| Spread { input, output, scored: scored.clone() }))
    }
}

impl ScoredRows {
    /// Visits every row with its place among all (query, node), on the CPU.
    fn each_place(&self, mut visit: impl FnMut(usize, usize)) {
        let lists = [&self.row_queries, &self.row_nodes].map(|list| list.buffer().host());
        for (row, (&query, &node)) in lists[0].iter().zip(lists[1]).enumerate() {
            visit(row, query as usize * self.nodes + node as usize);
        }
    }
}

impl Operation for Spread {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let mut gradient = flow.output(self.output)?;
        let scored = &self.scored;
        let (rows, count, nodes) = (scored.rows(), scored.queries, scored.nodes);
        let mut part = flow.device().allocate::<f32>(rows + count)?;
        match flow.device().backend() {
            Backend::Cpu(cpu) => {
                // What is left of the gradient belongs to the nodes that were not reached.
                let (gradient, (reached, rest)) = (gradient.host_mut(), part.host_mut().split_at_mut(rows));
                scored.each_place(|row, place| reached[row] = std::mem::take(&mut gradient[place]));
                cpu.zip([(gradient, nodes), (rest, 1)], 1, |_, [gradient, rest]| {
                    rest[0] = gradient.iter().sum()
                });
            }
            Backend::Cuda(cuda) => {
                let [queries, row_nodes] = [&scored.row_queries, &scored.row_nodes].map(Indices::buffer);
                let arguments = arguments![&gradient, queries, row_nodes, nodes, rows, &mut part];
                cuda.threads("scatter_nodes_back", rows, arguments)?;
                let places = scored.places.as_ref().expect(PLACES).buffer();
                let arguments = arguments![&gradient, places, nodes, rows, &mut part];
                cuda.blocks("scatter_nodes_rest", (count, 1), 1024, arguments)?;
            }
        }
        flow.add(self.input, part)
    }
}
