//! A sparse matrix times blocks of rows: the messages of a small graph whose edges have fixed weights.
//!
//! The input has one block of rows after the other, each with a row for every column of the matrix, and every block
//! is multiplied by the same matrix. No gradient flows into the matrix. Its transpose is kept beside it, so that both
//! passes sum the entries of one row in their order and no addition is atomic.

use std::sync::Arc;

use crate::cpu::simd;
use crate::cuda::launch::arguments;
use crate::device::{Backend, Device};
use crate::error::{Result, TensorError, expect_shape};
use crate::memory::Buffer;
use crate::tape::{Flow, Operation, Tape, Var};
use crate::value::Tensor;

/// Rows that a thread takes at a time: a row may have many entries.
const ROWS: usize = 16;

/// A sparse matrix on a device. Cheap to clone.
#[derive(Clone)]
pub struct SparseMatrix(Arc<Both>);

/// The matrix and its transpose.
struct Both {
    matrix: Entries,
    transposed: Entries,
}

/// The entries of a matrix, row after row.
struct Entries {
    rows: usize,
    columns: usize,
    /// Where the entries of each row start; one entry more than rows.
    starts: Buffer<u32>,
    /// The column of each entry, and its value.
    places: Buffer<u32>,
    values: Buffer<f32>,
}

impl SparseMatrix {
    /// The matrix of `starts.len() - 1` rows and this many columns: row `r` has the entries
    /// `starts[r]..starts[r + 1]`, entry `e` is `values[e]` in column `places[e]`.
    ///
    /// # Errors
    /// If a list does not fit the others, or the device fails.
    pub fn new(
        device: &Device,
        columns: usize,
        starts: &[u32],
        places: &[u32],
        values: &[f32],
    ) -> Result<SparseMatrix> {
        let rising = starts.first() == Some(&0) && starts.windows(2).all(|pair| pair[0] <= pair[1]);
        let fits = rising
            && starts.last().map(|&last| last as usize) == Some(places.len())
            && places.len() == values.len()
            && places.iter().all(|&place| (place as usize) < columns);
        if !fits {
            let why = "starts must rise from 0 to the number of entries, and places be below the columns";
            return Err(TensorError::Parameter { name: "sparse matrix".to_string(), why: why.to_string() });
        }
        let rows = starts.len() - 1;
        let (back_starts, back_places, back_values) = transposed(columns, starts, places, values);
        let entries = |rows, columns, starts: &[u32], places: &[u32], values: &[f32]| -> Result<Entries> {
            let (starts, places) = (device.upload(starts)?, device.upload(places)?);
            Ok(Entries { rows, columns, starts, places, values: device.upload(values)? })
        };
        Ok(SparseMatrix(Arc::new(Both {
            matrix: entries(rows, columns, starts, places, values)?,
            transposed: entries(columns, rows, &back_starts, &back_places, &back_values)?,
        })))
    }

    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.0.matrix.rows
    }

    /// How many columns it has.
    pub fn columns(&self) -> usize {
        self.0.matrix.columns
    }

    /// How many entries it has.
    pub fn entries(&self) -> usize {
        self.0.matrix.values.len()
    }
}

/// The entries by column, those of a column in the order of their rows.
fn transposed(
    columns: usize,
    starts: &[u32],
    places: &[u32],
    values: &[f32],
) -> (Vec<u32>, Vec<u32>, Vec<f32>) {
    let mut back_starts = vec![0u32; columns + 1];
    places.iter().for_each(|&place| back_starts[place as usize + 1] += 1);
    (0..columns).for_each(|column| back_starts[column + 1] += back_starts[column]);
    let (mut back_places, mut back_values) = (vec![0; places.len()], vec![0.0; places.len()]);
    let mut next = back_starts.clone();
    for (row, pair) in starts.windows(2).enumerate() {
        for entry in pair[0] as usize..pair[1] as usize {
            let to = &mut next[places[entry] as usize];
            back_places[*to as usize] = row as u32;
            back_values[*to as usize] = values[entry];
            *to += 1;
        }
    }
    (back_starts, back_places, back_values)
}

struct SparseProduct {
    matrix: SparseMatrix,
    input: Var,
    output: Var,
}

impl Tape<'_> {
    /// `matrix` times every block of `matrix.columns()` rows of `input`: from `[blocks × columns, width]` to
    /// `[blocks × rows, width]`.
    pub fn sparse_product(&mut self, matrix: &SparseMatrix, input: Var) -> Result<Var> {
        let value = self.input("sparse_product", input)?;
        let [height, width] = value.shape();
        let (rows, columns) = (matrix.rows(), matrix.columns());
        let fits = columns > 0 && height % columns == 0;
        expect_shape(fits, "sparse_product", "matrix and blocks", &[rows, columns], &[height, width])?;
        let blocks = height / columns;
        let out = matrix.0.matrix.times(self.device(), value.buffer(), blocks, width)?;
        let output = Tensor::of(out, blocks * rows, width);
        let matrix = matrix.clone();
        Ok(self.record(output, &[input], |output| SparseProduct { matrix, input, output }))
    }
}

impl Entries {
    /// The product with each of `blocks` blocks.
    fn times(
        &self,
        device: &Device,
        input: &Buffer<f32>,
        blocks: usize,
        width: usize,
    ) -> Result<Buffer<f32>> {
        let (rows, columns) = (self.rows, self.columns);
        let mut out = device.allocate::<f32>(blocks * rows * width)?;
        match device.backend() {
            Backend::Cpu(cpu) => {
                let (starts, places) = (self.starts.host(), self.places.host());
                let (values, input) = (self.values.host(), input.host());
                cpu.zip([(out.host_mut(), width)], ROWS, |first, [out]| {
                    simd::vectorise(
                        #[inline(always)]
                        || {
                            for (index, out) in out.chunks_exact_mut(width).enumerate() {
                                let (block, row) = ((first + index) / rows, (first + index) % rows);
                                let block = &input[block * columns * width..];
                                out.fill(0.0);
                                for entry in starts[row] as usize..starts[row + 1] as usize {
                                    let from = &block[places[entry] as usize * width..][..width];
                                    simd::add_scaled(out, values[entry], from);
                                }
                            }
                        },
                    )
                });
            }
            Backend::Cuda(cuda) => {
                let total = blocks * rows;
                let arguments = arguments![
                    &self.starts,
                    &self.places,
                    &self.values,
                    input,
                    rows,
                    columns,
                    total,
                    width,
                    &mut out
                ];
                cuda.warps("sparse_product", total, arguments)?;
            }
        }
        Ok(out)
    }
}

impl Operation for SparseProduct {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let gradient = flow.output(self.output)?;
        let [height, width] = flow.value(self.input).shape();
        let transposed = &self.matrix.0.transposed;
        let part = transposed.times(&flow.device(), &gradient, height / transposed.rows, width)?;
        flow.add(self.input, part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Parameters;

    #[test]
    fn every_block_is_multiplied_by_the_matrix() {
        let device = Device::cpu(1).unwrap();
        // [[0, 2, 0], [1, 0, -1]]
        let matrix = SparseMatrix::new(&device, 3, &[0, 1, 3], &[1, 0, 2], &[2.0, 1.0, -1.0]).unwrap();
        let parameters = Parameters::new(&device, 1);
        let mut tape = Tape::inference(&parameters);
        let rows = Tensor::new(&device, &(0..12).map(|at| at as f32).collect::<Vec<_>>(), 6, 2).unwrap();
        let rows = tape.constant(rows).unwrap();
        let product = tape.sparse_product(&matrix, rows).unwrap();
        assert_eq!(tape.shape(product), [4, 2]);
        let expected = [4.0, 6.0, -4.0, -4.0, 16.0, 18.0, -4.0, -4.0];
        assert_eq!(tape.value(product).to_vec().unwrap(), expected);
        assert!(SparseMatrix::new(&device, 2, &[0, 1], &[2], &[1.0]).is_err());
    }
}
