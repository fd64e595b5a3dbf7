//! A stable sort of keys on the device, and sums that do not depend on the order of threads.
//!
//! A radix sort, byte by byte from the lowest: count the keys of each value in each tile, compute prefix sums of the
//! counts, and move every key to its place. Within a tile each warp has its own keys, so its threads run in step and
//! wait for other warps only between counting and placing. A list that one block can sort is sorted in one launch.
//! Only integers are counted concurrently, so the result is deterministic.

use super::launch::arguments;
use super::{Cuda, Result};
use crate::device::Device;
use crate::memory::Buffer;

/// Keys per block if there are several blocks.
const TILE: usize = 8192;
/// Up to this many keys are sorted by a single block.
const FEW: usize = 16_384;
/// Threads per sorting block.
const THREADS: usize = 1024;

impl Cuda {
    /// The keys in ascending order, all below `limit`, and the original position of each; the sort is stable.
    pub(crate) fn sorted(
        &self,
        device: &Device,
        keys: &Buffer<u32>,
        limit: usize,
    ) -> Result<(Buffer<u32>, Buffer<u32>)> {
        let n = keys.len();
        let bits = usize::BITS - limit.saturating_sub(1).leading_zeros();
        let rounds = bits.max(1).div_ceil(8);
        let pair = || -> Result<_> { Ok((device.allocate::<u32>(n)?, device.allocate::<u32>(n)?)) };
        if n <= FEW {
            let (mut sorted, mut between) = (pair()?, if rounds > 1 { Some(pair()?) } else { None });
            let (keys_between, order_between) = between.as_mut().map(|(keys, order)| (keys, order)).unzip();
            let (keys_out, order_out) = (&mut sorted.0, &mut sorted.1);
            let arguments = arguments![keys, keys_out, order_out, keys_between, order_between, n, rounds];
            self.blocks("sort_few", (n.min(1), 1), THREADS, arguments)?;
            return Ok(sorted);
        }
        let tiles = n.div_ceil(TILE);
        let mut counts = device.allocate::<u32>(256 * tiles)?;
        let mut current: Option<(Buffer<u32>, Buffer<u32>)> = None;
        for shift in (0..rounds).map(|round| 8 * round) {
            let (mut keys_out, mut order_out) = pair()?;
            let (source, order) = match &current {
                Some((keys, order)) => (keys, Some(order)),
                None => (keys, None),
            };
            let arguments = arguments![source, n, shift, &mut counts, tiles];
            self.blocks("sort_count", (tiles, 1), THREADS, arguments)?;
            self.blocks("sort_scan", (1, 1), 1024, arguments![&mut counts, 256 * tiles])?;
            let arguments =
                arguments![source, order, &mut keys_out, &mut order_out, n, shift, &counts, tiles];
            self.blocks("sort_place", (tiles, 1), THREADS, arguments)?;
            current = Some((keys_out, order_out));
        }
        Ok(current.expect("there is at least one round"))
    }

    /// Adds the parts of a sum, in order, to the number `before`.
    pub(crate) fn sum_all(
        &self,
        parts: &Buffer<f32>,
        before: Option<&Buffer<f32>>,
        out: &mut Buffer<f32>,
        factor: f32,
    ) -> Result<()> {
        self.blocks("sum_all", (1, 1), 1024, arguments![parts, parts.len(), before, out, factor])
    }
}
