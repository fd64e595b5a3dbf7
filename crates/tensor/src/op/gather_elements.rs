//! Single elements by position: the log-probability of each drawn action.

use crate::cuda::launch::arguments;
use crate::device::Backend;
use crate::error::{Result, expect_shape};
use crate::tape::{Flow, Operation, Tape, Var};
use crate::value::{Indices, Tensor};

struct Pick {
    input: Var,
    rows: Option<Indices>,
    columns: Indices,
    output: Var,
}

impl Tape<'_> {
    /// Element `positions[i]` of a vector as element `i`. Positions may repeat.
    pub fn gather_elements(&mut self, input: Var, positions: &Indices) -> Result<Var> {
        let shape = self.shape(input);
        expect_shape(shape[1] == 1, "gather_elements", "a vector", &shape, &[shape[0], 1])?;
        positions.expect_below(shape[0], "gather_elements")?;
        self.gather_any(input, None, positions)
    }

    /// Element `(rows[i], columns[i])` of a matrix as element `i`. Pairs may repeat.
    pub fn gather_pairs(&mut self, input: Var, rows: &Indices, columns: &Indices) -> Result<Var> {
        let shape = self.shape(input);
        let (left, right) = ([rows.len()], [columns.len()]);
        expect_shape(left == right, "gather_pairs", "rows and columns", &left, &right)?;
        rows.expect_below(shape[0], "gather_pairs")?;
        columns.expect_below(shape[1], "gather_pairs")?;
        self.gather_any(input, Some(rows), columns)
    }

    fn gather_any(&mut self, input: Var, rows: Option<&Indices>, columns: &Indices) -> Result<Var> {
        let value = self.input("gather_elements", input)?;
        let mut out = self.device().allocate::<f32>(columns.len())?;
        match self.device().backend() {
            Backend::Cpu(cpu) => {
                let (source, width) = (value.buffer().host(), value.columns());
                let (rows, columns) = (rows.map(|rows| rows.buffer().host()), columns.buffer().host());
                cpu.rows(out.host_mut(), 1, |first, out| {
                    for (index, out) in out.iter_mut().enumerate() {
                        let start = rows.map_or(0, |rows| rows[first + index] as usize * width);
                        *out = source[start + columns[first + index] as usize];
                    }
                });
            }
            Backend::Cuda(cuda) => {
                let (rows, n) = (rows.map(Indices::buffer), columns.len());
                let arguments =
                    arguments![value.buffer(), rows, columns.buffer(), n, value.columns(), &mut out];
                cuda.threads("gather_elements", n, arguments)?;
            }
        }
        let output = Tensor::of(out, columns.len(), 1);
        let (rows, columns) = (rows.cloned(), columns.clone());
        Ok(self.record(output, &[input], |output| Pick { input, rows, columns, output }))
    }
}

impl Operation for Pick {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let gradient = flow.output(self.output)?;
        let [height, width] = flow.value(self.input).shape();
        let Some(mut target) = flow.target(self.input)? else { return Ok(()) };
        if target.fresh {
            target.buffer.clear()?;
        }
        match flow.device().backend() {
            // A few thousand additions in order of position: too little work for threads.
            Backend::Cpu(_) => {
                let (target, gradient) = (target.buffer.host_mut(), gradient.host());
                let rows = self.rows.as_ref().map(|rows| rows.buffer().host());
                for (index, column) in self.columns.buffer().host().iter().enumerate() {
                    let start = rows.map_or(0, |rows| rows[index] as usize * width);
                    target[start + *column as usize] += gradient[index];
                }
            }
            Backend::Cuda(cuda) => {
                let (device, n, columns) = (flow.device(), self.columns.len(), self.columns.buffer());
                let (keys, order) = match &self.rows {
                    Some(rows) => {
                        let mut keys = device.allocate::<u32>(n)?;
                        let arguments = arguments![rows.buffer(), columns, n, width, &mut keys];
                        cuda.threads("gather_elements_keys", n, arguments)?;
                        cuda.sorted(&device, &keys, height * width)?
                    }
                    None => cuda.sorted(&device, columns, height)?,
                };
                let arguments = arguments![&keys, &order, &gradient, n, &mut target.buffer];
                cuda.threads("gather_elements_back", n, arguments)?;
            }
        }
        flow.put(self.input, target.buffer, None);
        Ok(())
    }
}
