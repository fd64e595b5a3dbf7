//! The same values in rows of another length. Nothing is copied.

use crate::error::Result;
use crate::tape::{Flow, Operation, Tape, Var};

struct Reshape {
    input: Var,
    output: Var,
}

impl Tape<'_> {
    /// The values of `input`, in their order, as a matrix of this many rows and columns.
    pub fn reshape(&mut self, input: Var, rows: usize, columns: usize) -> Result<Var> {
        let output = self.input("reshape", input)?.reshaped(rows, columns)?;
        Ok(self.record(output, &[input], |output| Reshape { input, output }))
    }
}

impl Operation for Reshape {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let gradient = flow.output(self.output)?;
        flow.add(self.input, gradient)
    }
}
