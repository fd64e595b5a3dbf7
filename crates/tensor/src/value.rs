//! Values on a device: matrices of `f32`, lists of indices, and segments of lists.
//!
//! All three are immutable and cheap to clone. A [`Tensor`] is always a matrix; a vector is a matrix with one column
//! and a number a matrix with one element, so operations need no notion of rank.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use super::cuda::launch::{arguments, fits};
use super::device::{Backend, Device};
use super::error::{Result, TensorError, expect_shape};
use super::memory::Buffer;
use rayon::prelude::*;

/// A row-major matrix of `f32` on a device.
#[derive(Clone)]
pub struct Tensor {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) buffer: Arc<Buffer<f32>>,
}

impl Tensor {
    /// A matrix from row-major values.
    pub fn new(device: &Device, values: &[f32], rows: usize, columns: usize) -> Result<Tensor> {
        expect_shape(values.len() == rows * columns, "tensor", "values", &[values.len()], &[rows, columns])?;
        Ok(Tensor::of(device.upload(values)?, rows, columns))
    }

    /// A column vector.
    pub fn vector(device: &Device, values: &[f32]) -> Result<Tensor> {
        Tensor::new(device, values, values.len(), 1)
    }

    /// A matrix of zeros.
    pub fn zeros(device: &Device, rows: usize, columns: usize) -> Result<Tensor> {
        Ok(Tensor::of(device.zeros(rows * columns)?, rows, columns))
    }

    pub(crate) fn of(buffer: Buffer<f32>, rows: usize, columns: usize) -> Tensor {
        debug_assert_eq!(buffer.len(), rows * columns);
        Tensor { rows, columns, buffer: Arc::new(buffer) }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns; 1 for a vector.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Rows and columns.
    pub fn shape(&self) -> [usize; 2] {
        [self.rows, self.columns]
    }

    /// The device that holds it.
    pub fn device(&self) -> &Device {
        self.buffer.device()
    }

    /// Copies the values to the host; on CUDA this waits until they are computed.
    pub fn to_vec(&self) -> Result<Vec<f32>> {
        self.buffer.read()
    }

    /// Copies the values into `target`, which must have the same length; on CUDA this waits until they are computed.
    pub(crate) fn read_into(&self, target: &mut [f32]) -> Result<()> {
        self.buffer.read_into(target)
    }

    /// The values themselves, if they are in host memory.
    pub fn as_slice(&self) -> Option<&[f32]> {
        match self.device().backend() {
            Backend::Cpu(_) => Some(self.buffer.host()),
            Backend::Cuda(_) => None,
        }
    }

    /// The values: themselves if they are in host memory, otherwise a copy.
    pub fn on_host(&self) -> Result<Cow<'_, [f32]>> {
        self.as_slice().map_or_else(|| self.to_vec().map(Cow::Owned), |values| Ok(Cow::Borrowed(values)))
    }

    /// The value of a one-element tensor.
    pub fn number(&self) -> Result<f32> {
        expect_shape(self.rows * self.columns == 1, "number", "a single value", &self.shape(), &[1, 1])?;
        Ok(self.buffer.read()?[0])
    }

    /// The same values as `rows × columns`.
    pub fn reshaped(&self, rows: usize, columns: usize) -> Result<Tensor> {
        let fits = rows * columns == self.rows * self.columns;
        expect_shape(fits, "reshaped", "number of values", &self.shape(), &[rows, columns])?;
        Ok(Tensor { rows, columns, buffer: self.buffer.clone() })
    }

    pub(crate) fn buffer(&self) -> &Buffer<f32> {
        &self.buffer
    }
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(formatter, "Tensor[{}, {}]", self.rows, self.columns)
    }
}

/// A list of `u32` on a device: rows of a table, positions of a vector, or a mask of zeros and ones.
#[derive(Clone)]
pub struct Indices(Arc<IndexList>);

struct IndexList {
    buffer: Buffer<u32>,
    /// The largest index, found while the list was on the host; unknown if it was made on the device.
    largest: Option<u32>,
    groups: OnceLock<Arc<Groups>>,
}

/// The positions of a list, grouped by the row of a table that they name.
pub(crate) struct Groups {
    rows: usize,
    /// On the CPU: where the positions of each row start in `order`; one entry more than rows. On CUDA: the row of
    /// each element of `order`.
    pub(crate) rows_of_order: Buffer<u32>,
    /// Positions, sorted by the row they name and ascending within it.
    pub(crate) order: Buffer<u32>,
}

impl Indices {
    /// A copy of `values` on the device.
    pub fn new(device: &Device, values: &[u32]) -> Result<Indices> {
        Ok(Indices::of(device.upload(values)?, Some(largest(values))))
    }

    /// The list in `buffer`; `largest` is its maximum or an upper bound, if known.
    pub(crate) fn of(buffer: Buffer<u32>, largest: Option<u32>) -> Indices {
        Indices(Arc::new(IndexList { buffer, largest, groups: OnceLock::new() }))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.buffer.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies the list to the host; on CUDA this waits until it is computed.
    pub fn to_vec(&self) -> Result<Vec<u32>> {
        self.0.buffer.read()
    }

    pub(crate) fn buffer(&self) -> &Buffer<u32> {
        &self.0.buffer
    }

    /// An error unless every index is below `rows`. Free for lists that came from the host, whose largest index is
    /// known; a list made on the device is read back, which waits for it.
    pub(crate) fn expect_below(&self, rows: usize, operation: &'static str) -> Result<()> {
        if self.is_empty() || self.0.largest.is_some_and(|largest| (largest as usize) < rows) {
            return Ok(());
        }
        let values = self.to_vec()?;
        match values.iter().position(|&index| index as usize >= rows) {
            Some(position) => Err(TensorError::Index { operation, index: values[position], position, rows }),
            None => Ok(()),
        }
    }

    /// The positions of this list grouped by the row they name; computed once and cached.
    pub(crate) fn groups(&self, rows: usize) -> Result<Arc<Groups>> {
        if let Some(groups) = self.0.groups.get()
            && groups.rows == rows
        {
            return Ok(groups.clone());
        }
        let groups = Arc::new(match self.0.buffer.device().backend() {
            Backend::Cpu(_) => groups_on_cpu(&self.0.buffer, rows)?,
            Backend::Cuda(cuda) => {
                let (rows_of_order, order) = cuda.sorted(self.0.buffer.device(), &self.0.buffer, rows)?;
                Groups { rows, rows_of_order, order }
            }
        });
        // A list is nearly always used with one table; groups for a second one are recomputed each time.
        Ok(self.0.groups.get_or_init(|| groups.clone()).clone())
            .map(|kept| if kept.rows == rows { kept } else { groups })
    }
}

impl std::fmt::Debug for Indices {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(formatter, "Indices[{}]", self.len())
    }
}

/// Elements that one task scans for the maximum; fewer are not worth a second thread.
const LOOKED_AT: usize = 1 << 16;

/// The largest of some values; 0 if there are none.
pub(crate) fn largest(values: &[u32]) -> u32 {
    let of = |part: &[u32]| part.iter().copied().max().unwrap_or(0);
    if values.len() <= LOOKED_AT {
        return of(values);
    }
    values.par_chunks(LOOKED_AT).map(of).max().unwrap_or(0)
}

/// A counting sort, which keeps the order of positions within a row.
fn groups_on_cpu(indices: &Buffer<u32>, rows: usize) -> Result<Groups> {
    let device = indices.device();
    let (mut starts, mut order) = (device.zeros::<u32>(rows + 1)?, device.allocate::<u32>(indices.len())?);
    let (counts, sorted) = (starts.host_mut(), order.host_mut());
    for &row in indices.host() {
        counts[row as usize] += 1;
    }
    let mut total = 0;
    for count in counts.iter_mut() {
        total += std::mem::replace(count, total);
    }
    for (position, &row) in indices.host().iter().enumerate() {
        sorted[counts[row as usize] as usize] = position as u32;
        counts[row as usize] += 1;
    }
    // Each start has moved to the end of its row, which is the start of the next.
    counts.copy_within(0..rows, 1);
    counts[0] = 0;
    Ok(Groups { rows, rows_of_order: starts, order })
}

/// A list divided into consecutive segments, some of which may be empty: the candidates of each state.
#[derive(Clone)]
pub struct Segments(Arc<SegmentList>);

struct SegmentList {
    host: Vec<u32>,
    starts: Buffer<u32>,
    owners: OnceLock<Indices>,
}

impl Segments {
    /// Segments of these lengths, one after the other.
    pub fn from_lengths(device: &Device, lengths: impl IntoIterator<Item = usize>) -> Result<Segments> {
        let mut starts = vec![0u32];
        let mut total = 0usize;
        for length in lengths {
            total = total.saturating_add(length);
            starts.push(fits("segments", total)?);
        }
        Segments::from_starts(device, starts)
    }

    /// Segment `i` ranges from `starts[i]` to `starts[i + 1]`; the first starts at 0, and starts must not decrease.
    pub fn from_starts(device: &Device, starts: Vec<u32>) -> Result<Segments> {
        let rising = starts.first() == Some(&0) && starts.windows(2).all(|pair| pair[0] <= pair[1]);
        expect_shape(rising, "segments", "starts that rise from 0", &[starts.len()], &[1])?;
        let buffer = device.upload(&starts)?;
        Ok(Segments(Arc::new(SegmentList { host: starts, starts: buffer, owners: OnceLock::new() })))
    }

    /// How many segments there are.
    pub fn len(&self) -> usize {
        self.0.host.len() - 1
    }

    /// Whether there are no segments.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of elements of all segments.
    pub fn total(&self) -> usize {
        self.0.host[self.len()] as usize
    }

    /// The starts, and the end of the last segment, on the host.
    pub fn starts(&self) -> &[u32] {
        &self.0.host
    }

    pub(crate) fn buffer(&self) -> &Buffer<u32> {
        &self.0.starts
    }

    /// For every element the segment it is in.
    pub fn owners(&self) -> Result<Indices> {
        if let Some(owners) = self.0.owners.get() {
            return Ok(owners.clone());
        }
        let device = self.0.starts.device();
        let mut buffer = device.allocate::<u32>(self.total())?;
        match device.backend() {
            Backend::Cpu(_) => {
                let owners = buffer.host_mut();
                for (segment, bounds) in self.0.host.windows(2).enumerate() {
                    owners[bounds[0] as usize..bounds[1] as usize].fill(segment as u32);
                }
            }
            Backend::Cuda(cuda) => {
                cuda.warps("owners", self.len(), arguments![&self.0.starts, self.len(), &mut buffer])?
            }
        }
        let last = fits("segments", self.len())?.saturating_sub(1);
        Ok(self.0.owners.get_or_init(|| Indices::of(buffer, Some(last))).clone())
    }
}

impl std::fmt::Debug for Segments {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(formatter, "Segments[{} of {} elements]", self.len(), self.total())
    }
}
