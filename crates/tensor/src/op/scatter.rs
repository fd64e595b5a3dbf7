//! Sums rows by the table row they belong to: the backward pass of everything that gathers.
//!
//! For every row of the target, the contributions are added in the order of their positions, so the result
//! is the same for any number of threads.

use crate::cpu::{Cpu, simd};
use crate::cuda::Cuda;
use crate::cuda::launch::arguments;
use crate::device::Backend;
use crate::error::Result;
use crate::memory::Buffer;
use crate::random::Dropout;
use crate::value::Indices;

/// The maximum number of positions that a block of the kernel adds up, and the number for short lists, which would
/// otherwise keep only a few blocks busy.
const TILE: usize = 64;
const SHORT_TILE: usize = 16;
/// A list with at most this many positions is short.
const SHORT: usize = 16_384;

/// `target[index[p]] += scale[p] · source[owner[p]] ⊙ dropout[p]` for all positions `p`.
pub(crate) struct Scatter<'a> {
    /// The row of the target for each position.
    pub(crate) indices: &'a Indices,
    /// The rows to be added.
    pub(crate) source: &'a Buffer<f32>,
    /// The row of the source for each position; the position itself if `None`.
    pub(crate) owners: Option<&'a Indices>,
    /// The factor of each position; 1 if `None`.
    pub(crate) scale: Option<&'a Buffer<f32>>,
    /// The dropout of each element, counted by position.
    pub(crate) dropout: Dropout,
    /// Width of a row.
    pub(crate) columns: usize,
}

impl Scatter<'_> {
    /// Adds to `target`, which has this many rows, and marks the rows that receive something.
    pub(crate) fn add_to(
        &self,
        target: &mut Buffer<f32>,
        touched: Option<&mut Buffer<u32>>,
        rows: usize,
    ) -> Result<()> {
        match self.source.device().backend() {
            Backend::Cpu(cpu) => self.on_cpu(cpu, target, touched, rows),
            Backend::Cuda(cuda) => self.on_cuda(cuda, target, touched, rows),
        }
    }

    fn on_cuda(
        &self,
        cuda: &Cuda,
        target: &mut Buffer<f32>,
        mut touched: Option<&mut Buffer<u32>>,
        rows: usize,
    ) -> Result<()> {
        let groups = self.indices.groups(rows)?;
        let (n, columns) = (self.indices.len(), self.columns);
        let tile = if n <= SHORT { SHORT_TILE } else { TILE };
        let tiles = n.div_ceil(tile);
        let mut parts = self.source.device().allocate::<f32>(tiles * 2 * columns)?;
        let threads = columns.next_multiple_of(32).clamp(32, 256);
        let (keys, order) = (&groups.rows_of_order, &groups.order);
        let owners = self.owners.map(Indices::buffer);
        let arguments = arguments![
            keys,
            order,
            n,
            tile,
            owners,
            self.scale,
            self.source,
            columns,
            self.dropout,
            &mut *target,
            touched.as_deref_mut(),
            &mut parts
        ];
        cuda.blocks("scatter_tiles", (tiles, 1), threads, arguments)?;
        let arguments = arguments![keys, n, tile, columns, &parts, target, touched];
        cuda.blocks("scatter_joins", (tiles, 1), threads, arguments)
    }

    fn on_cpu(
        &self,
        cpu: &Cpu,
        target: &mut Buffer<f32>,
        touched: Option<&mut Buffer<u32>>,
        rows: usize,
    ) -> Result<()> {
        let groups = self.indices.groups(rows)?;
        let (starts, order) = (groups.rows_of_order.host(), groups.order.host());
        if let Some(touched) = touched {
            touch(touched.host_mut(), starts);
        }
        let owners = self.owners.map(|owners| owners.buffer().host());
        let scale = self.scale.map(Buffer::host);
        let (source, columns) = (self.source.host(), self.columns);
        let chunks = split(target.host_mut(), starts, columns);
        cpu.run(chunks, |(first, chunk)| {
            simd::vectorise(
                #[inline(always)]
                || {
                    for (index, target) in chunk.chunks_exact_mut(columns).enumerate() {
                        let row = first + index;
                        for &position in &order[starts[row] as usize..starts[row + 1] as usize] {
                            let position = position as usize;
                            let from = owners.map_or(position, |owners| owners[position] as usize) * columns;
                            let factor = scale.map_or(1.0, |scale| scale[position]);
                            let source = &source[from..from + columns];
                            if self.dropout.is_none() {
                                simd::add_scaled(target, factor, source);
                            } else {
                                add_dropped(target, factor, source, self.dropout, position * columns);
                            }
                        }
                    }
                },
            )
        });
        Ok(())
    }
}

#[inline(always)]
pub(crate) fn add_dropped(target: &mut [f32], factor: f32, source: &[f32], dropout: Dropout, first: usize) {
    for (offset, (target, source)) in target.iter_mut().zip(source).enumerate() {
        *target = source.mul_add(factor * dropout.factor((first + offset) as u32), *target);
    }
}

/// Marks the rows that have at least one position.
pub(crate) fn touch(touched: &mut [u32], starts: &[u32]) {
    for (row, touched) in touched.iter_mut().enumerate() {
        *touched |= u32::from(starts[row + 1] > starts[row]);
    }
}

/// Cuts a target into runs of rows with about the same number of contributions.
pub(crate) fn split<'a>(
    target: &'a mut [f32],
    starts: &[u32],
    columns: usize,
) -> Vec<(usize, &'a mut [f32])> {
    const MOST_ROWS: usize = 1024;
    let most = (64 * 1024 / columns.max(1)).max(1);
    let rows = starts.len() - 1;
    let mut chunks = Vec::new();
    let (mut rest, mut first) = (target, 0);
    while first < rows {
        let mut end = first + 1;
        while end < rows && end - first < MOST_ROWS && ((starts[end + 1] - starts[first]) as usize) < most {
            end += 1;
        }
        let (head, tail) = rest.split_at_mut((end - first) * columns);
        rest = tail;
        if starts[end] > starts[first] {
            chunks.push((first, head));
        }
        first = end;
    }
    chunks
}
