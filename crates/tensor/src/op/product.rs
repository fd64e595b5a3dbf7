//! Matrix products of buffers, on whichever device holds them.

use crate::cpu::product::Matrix;
use crate::cuda::{Factor, Precision};
use crate::device::Backend;
use crate::error::Result;
use crate::memory::Buffer;
use crate::tape::Tape;

/// One factor of a product: a row-major matrix that begins at element `start` of a buffer.
#[derive(Clone, Copy)]
pub(crate) struct Side<'a> {
    buffer: &'a Buffer<f32>,
    start: usize,
    rows: usize,
    columns: usize,
    transposed: bool,
}

impl<'a> Side<'a> {
    pub(crate) fn new(buffer: &'a Buffer<f32>, rows: usize, columns: usize) -> Self {
        Side::within(buffer, 0, rows, columns)
    }

    pub(crate) fn within(buffer: &'a Buffer<f32>, start: usize, rows: usize, columns: usize) -> Self {
        assert!(buffer.len() >= start + rows * columns, "a side of a product is outside its buffer");
        Side { buffer, start, rows, columns, transposed: false }
    }

    /// The same matrix with rows and columns exchanged.
    pub(crate) fn transposed(self) -> Self {
        Side { transposed: !self.transposed, ..self }
    }

    /// The rows and columns after transposition.
    fn shape(&self) -> (usize, usize) {
        if self.transposed { (self.columns, self.rows) } else { (self.rows, self.columns) }
    }

    fn matrix(&self) -> Matrix<'a> {
        let matrix = Matrix::new(&self.buffer.host()[self.start..], self.rows, self.columns);
        if self.transposed { matrix.transposed() } else { matrix }
    }

    fn factor(&self) -> Factor {
        let pointer = self.buffer.pointer() + (self.start * size_of::<f32>()) as u64;
        Factor { pointer, stored: (self.rows, self.columns), transposed: self.transposed }
    }
}

/// `out[start..] = left · right`, or `+=` if `accumulate`.
pub(crate) fn product(
    out: &mut Buffer<f32>,
    start: usize,
    left: Side,
    right: Side,
    accumulate: bool,
) -> Result<()> {
    product_of(Precision::Rounded, out, start, (left, right), accumulate)
}

impl Tape<'_> {
    /// As [`product`], with the precision of the tape.
    pub(crate) fn forward_product(
        &self,
        out: &mut Buffer<f32>,
        left: Side,
        right: Side,
        accumulate: bool,
    ) -> Result<()> {
        product_of(self.precision(), out, 0, (left, right), accumulate)
    }
}

fn product_of(
    precision: Precision,
    out: &mut Buffer<f32>,
    start: usize,
    (left, right): (Side, Side),
    accumulate: bool,
) -> Result<()> {
    let ((rows, inner), (depth, columns)) = (left.shape(), right.shape());
    assert_eq!(inner, depth, "the inner sides of a product differ");
    assert!(out.len() >= start + rows * columns, "the output of a product is outside its buffer");
    let device = out.device().clone();
    match device.backend() {
        Backend::Cpu(cpu) => {
            let out = &mut out.host_mut()[start..start + rows * columns];
            cpu.product(out, left.matrix(), right.matrix(), accumulate);
            Ok(())
        }
        Backend::Cuda(cuda) => {
            let pointer = out.pointer() + (start * size_of::<f32>()) as u64;
            if inner == 0 && !accumulate {
                return cuda.clear(pointer, rows * columns * size_of::<f32>());
            }
            cuda.product(pointer, left.factor(), right.factor(), accumulate, precision)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::check::cuda_devices;
    use crate::{Activation, Device, Initial, Parameters, Tape, Tensor};

    #[test]
    fn products_of_an_exact_tape_are_those_of_the_cpu() {
        let made = |device: &Device| {
            let mut parameters = Parameters::new(device, 7);
            let weight = parameters.dense("weight", 96, 64, Initial::Normal(1.0)).unwrap();
            let values: Vec<f32> = (0..200 * 96).map(|at| (at as f32 * 0.37).sin()).collect();
            let mut tape = Tape::inference(&parameters).exact(true);
            let input = tape.constant(Tensor::new(device, &values, 200, 96).unwrap()).unwrap();
            let weight = tape.parameter(weight);
            let out = tape.linear(&[input], weight, None, Activation::Identity, 0.0).unwrap();
            tape.value(out).to_vec().unwrap()
        };
        let expected = made(&Device::cpu(1).unwrap());
        for (device, _) in cuda_devices() {
            // Rounded factors would differ by about a hundredth.
            for (found, expected) in made(&device).iter().zip(&expected) {
                assert!((found - expected).abs() < 1e-4, "{found}, not {expected}");
            }
        }
    }
}
