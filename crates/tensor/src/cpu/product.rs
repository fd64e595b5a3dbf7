//! Matrix products on the CPU: the only module that calls `gemm`, and only its 32-bit float part.
//!
//! The output is cut into blocks by its shape alone and each block is one product on one thread, so the
//! order of additions, and with it every bit, is the same for any number of threads.
#![allow(unsafe_code)]

use std::ops::Range;

use super::Cpu;

/// A matrix inside a slice: element `(row, column)` is at `row * row_step + column * column_step`.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a> {
    data: &'a [f32],
    rows: usize,
    columns: usize,
    row_step: usize,
    column_step: usize,
}

impl<'a> Matrix<'a> {
    /// A row-major matrix.
    pub(crate) fn new(data: &'a [f32], rows: usize, columns: usize) -> Self {
        assert!(
            data.len() >= rows * columns,
            "{} values do not make a {rows} × {columns} matrix",
            data.len()
        );
        Matrix { data, rows, columns, row_step: columns, column_step: 1 }
    }

    /// The same matrix with rows and columns exchanged.
    pub(crate) fn transposed(self) -> Self {
        Matrix {
            data: self.data,
            rows: self.columns,
            columns: self.rows,
            row_step: self.column_step,
            column_step: self.row_step,
        }
    }
}

/// A pointer that may cross threads because every block writes its own part.
#[derive(Clone, Copy)]
struct Output(*mut f32);
impl Output {
    fn get(self) -> *mut f32 {
        self.0
    }
}

// SAFETY: the blocks that share the pointer never overlap (see `Cpu::product`).
unsafe impl Send for Output {}
// SAFETY: as above.
unsafe impl Sync for Output {}

impl Cpu {
    /// `out = left · right`, or `out += left · right` if `accumulate`; `out` is row-major.
    pub(crate) fn product(&self, out: &mut [f32], left: Matrix, right: Matrix, accumulate: bool) {
        let (rows, columns, inner) = (left.rows, right.columns, left.columns);
        assert_eq!(inner, right.rows, "the inner sides of a product differ");
        assert!(out.len() >= rows * columns, "the output of a product is too small");
        if rows == 0 || columns == 0 {
            return;
        }
        // About eight blocks along the longer side, none narrower than 64.
        let (along_rows, side) = if rows >= columns { (true, rows) } else { (false, columns) };
        let block = side.div_ceil(8).max(64).next_multiple_of(16);
        let pointer = Output(out.as_mut_ptr());
        self.each(side.div_ceil(block), |index| {
            let first = index * block;
            let size = block.min(side - first);
            let part =
                if along_rows { (first..first + size, 0..columns) } else { (0..rows, first..first + size) };
            // SAFETY: the part lies inside `out`, whose size was checked, and no other task writes to its elements.
            unsafe { multiply(pointer.get(), columns, part, left, right, accumulate) };
        });
    }
}

/// As [`Cpu::product`], on the calling thread alone.
pub(crate) fn alone(out: &mut [f32], left: Matrix, right: Matrix, accumulate: bool) {
    assert_eq!(left.columns, right.rows, "the inner sides of a product differ");
    assert!(out.len() >= left.rows * right.columns, "the output of a product is too small");
    if left.rows > 0 && right.columns > 0 {
        let part = (0..left.rows, 0..right.columns);
        // SAFETY: the whole output, whose size was checked, belongs to this call.
        unsafe { multiply(out.as_mut_ptr(), right.columns, part, left, right, accumulate) };
    }
}

/// One part of an output of `width` columns.
///
/// # Safety
/// `out` must be valid for writing every element of `part`, and nothing else may use these elements meanwhile; `part`
/// must lie inside `left.rows × right.columns`.
unsafe fn multiply(
    out: *mut f32,
    width: usize,
    (rows, columns): (Range<usize>, Range<usize>),
    left: Matrix,
    right: Matrix,
    accumulate: bool,
) {
    let inner = left.columns;
    // The kernel writes columns. The output is row-major, so everything is passed transposed.
    let (first, from, second, to, steps) = match width > 1 {
        true => (right.transposed(), columns.clone(), left.transposed(), rows.clone(), [width, 1]),
        false => (left, rows.clone(), right, columns.clone(), [1, width]),
    };
    let multiply = gemm_f32::gemm::f32::get_gemm_fn();
    // SAFETY: the caller guarantees the output; both inputs hold all elements of their sizes (checked by
    // `Matrix::new`).
    unsafe {
        multiply(
            from.len(),
            to.len(),
            inner,
            out.add(rows.start * width + columns.start),
            steps[0] as isize,
            steps[1] as isize,
            accumulate,
            first.data.as_ptr().add(from.start * first.row_step),
            first.column_step as isize,
            first.row_step as isize,
            second.data.as_ptr().add(to.start * second.column_step),
            second.column_step as isize,
            second.row_step as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            gemm_common::Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naive(left: Matrix, right: Matrix) -> Vec<f32> {
        let mut out = vec![0.0; left.rows * right.columns];
        for i in 0..left.rows {
            for j in 0..right.columns {
                for k in 0..left.columns {
                    out[i * right.columns + j] += left.data[i * left.row_step + k * left.column_step]
                        * right.data[k * right.row_step + j * right.column_step];
                }
            }
        }
        out
    }

    #[test]
    fn products_of_all_orientations_are_right_and_the_same_on_two_threads() {
        let a: Vec<f32> = (0..300 * 7).map(|x| (x % 13) as f32 - 6.0).collect();
        let b: Vec<f32> = (0..7 * 200).map(|x| (x % 11) as f32 - 5.0).collect();
        let (one, two) = (Cpu::new(1).unwrap(), Cpu::new(2).unwrap());
        let left = Matrix::new(&a, 300, 7);
        let right = Matrix::new(&b, 7, 200);
        for (left, right) in [
            (left, right),
            (Matrix::new(&a, 7, 300).transposed(), right),
            (left, Matrix::new(&b, 200, 7).transposed()),
            (Matrix::new(&b, 200, 7), Matrix::new(&a, 300, 7).transposed()),
            (Matrix::new(&a, 1, 7), right),
        ] {
            let expected = naive(left, right);
            let mut out = vec![f32::NAN; expected.len()];
            one.product(&mut out, left, right, false);
            assert_eq!(out, expected);
            let mut again = out.clone();
            one.product(&mut out, left, right, true);
            two.product(&mut again, left, right, true);
            assert_eq!(out, again);
            assert!(out.iter().zip(&expected).all(|(twice, once)| *twice == 2.0 * once));
        }
    }
}
