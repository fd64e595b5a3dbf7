//! Single elements by position: the log-probability of each drawn action.

use crate::tensor::cuda::launch::arguments;
use crate::tensor::device::Backend;
use crate::tensor::error::{Result, expect_shape};
use crate::tensor::tape::{Flow, Operation, Tape, Var};
use crate::tensor::value::{Indices, Tensor};

// In the backward pass, positions are sorted, and the first of each run of equal positions adds up the run.
pub(crate) const KERNELS: &str = r#"
extern "C" __global__ void pick(const float* in, const u32* rows, const u32* columns, u32 n, u32 width, float* out) {
    u32 i = THREAD;
    if (i < n) out[i] = in[(rows ? (u64)rows[i] * width : 0) + columns[i]];
}
extern "C" __global__ void pick_keys(const u32* rows, const u32* columns, u32 n, u32 width, u32* keys) {
    u32 i = THREAD;
    if (i < n) keys[i] = rows[i] * width + columns[i];
}
extern "C" __global__ void pick_back(const u32* keys, const u32* order, const float* gradient, u32 n, float* target) {
    u32 i = THREAD;
    if (i >= n || (i > 0 && keys[i - 1] == keys[i])) return;
    float sum = 0.0f;
    for (u32 j = i; j < n && keys[j] == keys[i]; j++) sum += gradient[order[j]];
    target[keys[i]] += sum;
}
"#;

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
            Backend::Cuda(cuda) => {
                let (rows, n) = (rows.map(Indices::buffer), columns.len());
                let arguments =
                    arguments![value.buffer(), rows, columns.buffer(), n, value.columns(), &mut out];
                cuda.threads("pick", n, arguments)?;
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
                        cuda.threads("pick_keys", n, arguments)?;
                        cuda.sorted(&device, &keys, height * width)?
                    }
                    None => cuda.sorted(&device, columns, height)?,
                };
                let arguments = arguments![&keys, &order, &gradient, n, &mut target.buffer];
                cuda.threads("pick_back", n, arguments)?;
            }
        }
        flow.put(self.input, target.buffer, None);
        Ok(())
    }
}
