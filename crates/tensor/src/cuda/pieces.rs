//! Kernels that visit all parameters in one launch, through a list on the device with one piece per parameter.
//!
//! A warp of such a kernel handles one row of one piece; it finds the piece by the number of rows before it. One
//! upload of a few kilobytes and one launch replace some thirty launches of a few microseconds each.

use super::Result;
use super::launch::fits;
use crate::device::Device;
use crate::memory::{Buffer, Element};

/// Rows per block: one per warp.
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
    /// Marks of the rows to visit; all rows if `None`.
    pub(crate) touched: Option<&'a Buffer<u32>>,
    /// For the optimiser: values, both moments, and the step at which each row was last touched.
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

    /// The number of rows of all pieces: the number of warps that a kernel needs.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Copies the list to the device.
    pub(crate) fn upload(&self, device: &Device) -> Result<Buffer<u32>> {
        device.upload(&self.words)
    }
}

fn address<T: Element>(buffer: Option<&Buffer<T>>) -> u64 {
    buffer.map_or(0, Buffer::pointer)
}
