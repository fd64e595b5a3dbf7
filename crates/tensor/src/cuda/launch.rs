//! Launches kernels: the name, the number of threads, and the arguments in order.
//!
//! The source of a kernel is in `kernels/`, in the file that is named as the one that launches it: the arguments have to
//! be those that its `extern "C"` line lists.

use super::{Cuda, Result, TensorError};
use crate::memory::{Buffer, Element};
use crate::random::{Dropout, Key};

/// One argument of a kernel.
#[derive(Clone, Copy)]
pub(crate) struct Argument {
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "only the driver reads them"))]
    pub(super) words: [u32; 4],
    /// A size that does not fit into the 32 bits that kernels take; it prevents the launch.
    too_large: Option<usize>,
}

/// An argument of these words.
fn words(words: [u32; 4]) -> Argument {
    Argument { words, too_large: None }
}

impl<T: Element> From<&Buffer<T>> for Argument {
    fn from(buffer: &Buffer<T>) -> Self {
        pointer(buffer.pointer())
    }
}

impl<T: Element> From<&mut Buffer<T>> for Argument {
    fn from(buffer: &mut Buffer<T>) -> Self {
        pointer(buffer.pointer())
    }
}

/// A null pointer for `None`.
impl<T: Element> From<Option<&Buffer<T>>> for Argument {
    fn from(buffer: Option<&Buffer<T>>) -> Self {
        pointer(buffer.map_or(0, Buffer::pointer))
    }
}

impl<T: Element> From<Option<&mut Buffer<T>>> for Argument {
    fn from(buffer: Option<&mut Buffer<T>>) -> Self {
        pointer(buffer.map_or(0, |buffer| buffer.pointer()))
    }
}

/// Sizes; kernels take them as 32-bit integers.
impl From<usize> for Argument {
    fn from(size: usize) -> Self {
        match u32::try_from(size) {
            Ok(size) => size.into(),
            Err(_) => Argument { words: [0; 4], too_large: Some(size) },
        }
    }
}

impl From<u32> for Argument {
    fn from(number: u32) -> Self {
        words([number, 0, 0, 0])
    }
}

impl From<bool> for Argument {
    fn from(flag: bool) -> Self {
        words([u32::from(flag), 0, 0, 0])
    }
}

impl From<f32> for Argument {
    fn from(number: f32) -> Self {
        words([number.to_bits(), 0, 0, 0])
    }
}

impl From<Key> for Argument {
    fn from(key: Key) -> Self {
        words([key.low, key.high, 0, 0])
    }
}

impl From<Dropout> for Argument {
    fn from(dropout: Dropout) -> Self {
        words([dropout.key.low, dropout.key.high, dropout.threshold, dropout.scale.to_bits()])
    }
}

pub(crate) fn pointer(address: u64) -> Argument {
    words([address as u32, (address >> 32) as u32, 0, 0])
}

/// The arguments of a kernel.
macro_rules! arguments {
    ($($argument:expr),* $(,)?) => { &mut [$($crate::cuda::launch::Argument::from($argument)),*] };
}
pub(crate) use arguments;

/// The default number of threads per block.
pub(crate) const BLOCK: usize = 256;

impl Cuda {
    /// Launches a kernel with at least `threads` threads.
    pub(crate) fn threads(
        &self,
        name: &'static str,
        threads: usize,
        arguments: &mut [Argument],
    ) -> Result<()> {
        self.blocks(name, (threads.div_ceil(BLOCK), 1), BLOCK, arguments)
    }

    /// Launches a kernel with `warps` warps of 32 threads.
    pub(crate) fn warps(&self, name: &'static str, warps: usize, arguments: &mut [Argument]) -> Result<()> {
        self.threads(name, warps * 32, arguments)
    }

    /// Launches a kernel with this many blocks of this many threads; does nothing for zero blocks.
    pub(crate) fn blocks(
        &self,
        name: &'static str,
        blocks: (usize, usize),
        threads: usize,
        arguments: &mut [Argument],
    ) -> Result<()> {
        if blocks.0 == 0 || blocks.1 == 0 {
            return Ok(());
        }
        self.launch(name, grid(name, blocks, threads, arguments)?, arguments)
    }
}

/// The number of blocks in both directions and of threads per block, as the driver takes them. An error if an
/// argument's size does not fit into 32 bits, or if there are more threads in one direction than 32 bits can number.
fn grid(
    name: &'static str,
    blocks: (usize, usize),
    threads: usize,
    arguments: &[Argument],
) -> Result<[u32; 3]> {
    if let Some(size) = arguments.iter().find_map(|argument| argument.too_large) {
        return Err(TensorError::TooLarge { operation: name, size });
    }
    fits(name, blocks.0.saturating_mul(threads))?;
    Ok([fits(name, blocks.0)?, fits(name, blocks.1)?, fits(name, threads)?])
}

/// `size` in 32 bits, or an error.
pub(crate) fn fits(operation: &'static str, size: usize) -> Result<u32> {
    u32::try_from(size).map_err(|_| TensorError::TooLarge { operation, size })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_beyond_32_bits_is_an_error_and_is_not_cut_off() {
        let large = 1usize << 32;
        let fitting: &[Argument] = arguments![7usize, large - 1];
        assert_eq!(grid("copy", (3, 2), 256, fitting).unwrap(), [3, 2, 256]);
        for (blocks, arguments) in [
            ((3, 2), arguments![7usize, large]),
            ((large, 1), arguments![7usize, 7usize]),
            ((1, large), arguments![7usize, 7usize]),
            // 2²⁴ blocks of 256 threads: one thread more than 32 bits can count.
            ((1 << 24, 1), arguments![7usize, 7usize]),
        ] {
            let error = grid("copy", blocks, 256, arguments).unwrap_err();
            assert!(matches!(error, TensorError::TooLarge { operation: "copy", size } if size >= large));
        }
    }
}
