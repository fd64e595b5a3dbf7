//! Matrix products of buffers, on whichever device holds them.

use crate::tensor::cpu::product::Matrix;
use crate::tensor::cuda::Factor;
use crate::tensor::device::Backend;
use crate::tensor::error::Result;
use crate::tensor::memory::Buffer;

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
            cuda.product(pointer, left.factor(), right.factor(), accumulate)
        }
    }
}
