//! Single elements by position: the log-probability of each action that was drawn.

use crate::tensor::device::Backend;
use crate::tensor::error::{Result, expect_shape};
use crate::tensor::tape::{Flow, Operation, Tape, Var};
use crate::tensor::value::{Indices, Tensor};

struct Pick {
    input: Var,
    rows: Option<Indices>,
    columns: Indices,
    output: Var,
}

impl Tape<'_> {
    /// Element `positions[i]` of a vector as element `i`. Positions may repeat.
    pub fn pick(&mut self, input: Var, positions: &Indices) -> Result<Var> {
        let shape = self.shape(input);
        expect_shape(shape[1] == 1, "pick", "a vector", &shape, &[shape[0], 1])?;
        positions.expect_below(shape[0], "pick")?;
        self.pick_any(input, None, positions)
    }

    /// Element `(rows[i], columns[i])` of a matrix as element `i`. Pairs may repeat.
    pub fn pick_pairs(&mut self, input: Var, rows: &Indices, columns: &Indices) -> Result<Var> {
        let shape = self.shape(input);
        let (left, right) = ([rows.len()], [columns.len()]);
        expect_shape(left == right, "pick_pairs", "rows and columns", &left, &right)?;
        rows.expect_below(shape[0], "pick_pairs")?;
        columns.expect_below(shape[1], "pick_pairs")?;
        self.pick_any(input, Some(rows), columns)
    }

    fn pick_any(&mut self, input: Var, rows: Option<&Indices>, columns: &Indices) -> Result<Var> {
        let value = self.input("pick", input)?;
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
        }
        let output = Tensor::of(out, columns.len(), 1);
        let (rows, columns) = (rows.cloned(), columns.clone());
        Ok(self.record(output, &[input], |output| Pick { input, rows, columns, output }))
    }
}

impl Operation for Pick {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let gradient = flow.output(self.output)?;
        let width = flow.value(self.input).columns();
        let Some((mut target, touched)) = flow.target_rows(self.input)? else { return Ok(()) };
        match flow.device().backend() {
            // A few thousand additions in order of position: threads would cost more than they bring.
            Backend::Cpu(_) => {
                let (target, gradient) = (target.buffer.host_mut(), gradient.host());
                let rows = self.rows.as_ref().map(|rows| rows.buffer().host());
                for (index, column) in self.columns.buffer().host().iter().enumerate() {
                    let start = rows.map_or(0, |rows| rows[index] as usize * width);
                    target[start + *column as usize] += gradient[index];
                }
            }
        }
        flow.put(self.input, target.buffer, touched);
        Ok(())
    }
}
