//! Kernels that visit all parameters in one launch: a list of pieces, one for each parameter, on the device.
//!
//! A warp of such a kernel has one row of one piece; it finds the piece by the number of rows before it. What
//! would be some thirty launches of a few microseconds each is one upload of a few kilobytes and one launch.

use super::Result;
use super::launch::fits;
use crate::tensor::device::Device;
use crate::tensor::memory::{Buffer, Element};

pub(crate) const KERNELS: &str = r#"
struct Piece { float* gradient; u32* touched; float* values; float* first; float* second; u32* last; u32 rows, columns, start, unused; };
// The piece that a row of all rows is in; the row becomes the piece's own.
__device__ __forceinline__ Piece piece_of(const Piece* pieces, u32 count, u32& row) {
    u32 low = 0, high = count;
    while (high - low > 1) {
        u32 middle = (low + high) / 2;
        if (pieces[middle].start <= row) low = middle; else high = middle;
    }
    row -= pieces[low].start;
    return pieces[low];
}
"#;

/// Rows of a block: one for each of its warps.
pub(crate) const BLOCK_ROWS: usize = super::launch::BLOCK / 32;

/// A list of pieces under construction.
#[derive(Default)]
pub(crate) struct Pieces {
    words: Vec<u32>,
    count: usize,
    rows: usize,
}

/// One parameter, as far as a kernel needs it; what it does not need is a null pointer.
pub(crate) struct Piece<'a> {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) gradient: &'a Buffer<f32>,
    /// Marks of the rows that count; without them all do.
    pub(crate) touched: Option<&'a Buffer<u32>>,
    /// Values, both moments and the steps of the rows, for the optimiser.
    pub(crate) values: Option<&'a Buffer<f32>>,
    pub(crate) first: Option<&'a Buffer<f32>>,
    pub(crate) second: Option<&'a Buffer<f32>>,
    pub(crate) last: Option<&'a Buffer<u32>>,
}

impl Pieces {
    pub(crate) fn push(&mut self, piece: Piece) -> Result<()> {
        let Piece { rows, columns, gradient, touched, values, first, second, last } = piece;
        let pointers = [
            gradient.pointer(),
            address(touched),
            address(values),
            address(first),
            address(second),
            address(last),
        ];
        self.words.extend(pointers.iter().flat_map(|pointer| [*pointer as u32, (pointer >> 32) as u32]));
        let size = |size| fits("parameters", size);
        self.words.extend([size(rows)?, size(columns)?, size(self.rows)?, 0]);
        self.count += 1;
        self.rows += rows;
        Ok(())
    }

    /// Rows of all pieces together: the warps that a kernel needs.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The list on the device.
    pub(crate) fn upload(&self, device: &Device) -> Result<Buffer<u32>> {
        device.upload(&self.words)
    }
}

fn address<T: Element>(buffer: Option<&Buffer<T>>) -> u64 {
    buffer.map_or(0, Buffer::pointer)
}
