//! The CUDA side of a device: driver, stream, cuBLAS and our own kernels.
//!
//! CUDA is not needed to build or to start: the libraries are loaded when a device is opened, and a missing one is an
//! error with a remedy. All work goes to one stream in order, so only read-backs wait, and freed memory can be reused
//! at once. Without the feature `cuda`, [`absent`] stands in for the driver, and there is no such device.

#[cfg(not(feature = "cuda"))]
mod absent;
#[cfg(feature = "cuda")]
mod driver;
pub(crate) mod launch;
pub(crate) mod pieces;
pub(crate) mod sort;

use super::error::{Result, TensorError};
#[cfg(not(feature = "cuda"))]
pub(crate) use absent::{Block, Cuda, Mark, Pinned};
#[cfg(feature = "cuda")]
pub(crate) use driver::{Block, Cuda, Mark, Pinned};

/// How precise the factors of a product are on CUDA. On a CPU, and on a device opened as exact, they always are `f32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precision {
    /// TF32: 10 bits.
    Rounded,
    /// `f32`: 23 bits.
    Full,
}

/// One factor of a product: its address, the rows and columns it is stored with, and whether it is transposed.
#[derive(Clone, Copy)]
#[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "only cuBLAS reads them"))]
pub(crate) struct Factor {
    pub(crate) pointer: u64,
    pub(crate) stored: (usize, usize),
    pub(crate) transposed: bool,
}

impl Factor {
    #[cfg(feature = "cuda")]
    fn rows(&self) -> usize {
        if self.transposed { self.stored.1 } else { self.stored.0 }
    }

    #[cfg(feature = "cuda")]
    fn columns(&self) -> usize {
        if self.transposed { self.stored.0 } else { self.stored.1 }
    }
}
