//! What can go wrong with tensors. Messages name the operation and the remedy.

use std::path::PathBuf;

use thiserror::Error;

/// An error of the crate `tensor`.
#[derive(Debug, Error)]
pub enum TensorError {
    /// Two shapes that an operation requires to match do not.
    #[error("{operation}: {what}: {left:?} does not fit {right:?}")]
    Shape {
        /// The operation that was asked for.
        operation: &'static str,
        /// Which shapes, in words.
        what: &'static str,
        /// One of the shapes.
        left: Vec<usize>,
        /// The other shape.
        right: Vec<usize>,
    },
    /// A value is NaN; only checked in debug builds.
    #[error(
        "{operation}: an input has a value that is not a number at element {position} of shape {shape:?}"
    )]
    NotANumber {
        /// The operation that was given the value.
        operation: &'static str,
        /// Where the first such value is.
        position: usize,
        /// The shape of the input.
        shape: Vec<usize>,
    },
    /// A list or a matrix is longer than 32 bits can count.
    #[error(
        "{operation}: {size} elements are more than 32 bits can count; lower the batch size, the rollouts or the beam"
    )]
    TooLarge {
        /// The operation, or CUDA's kernel, that was asked for.
        operation: &'static str,
        /// The number of elements, rows or threads it would have had.
        size: usize,
    },
    /// An index points outside the table it is used on.
    #[error("{operation}: index {index} at position {position} is outside a table of {rows} rows")]
    Index {
        /// The operation that was given the index.
        operation: &'static str,
        /// The index itself.
        index: u32,
        /// Its position among the indices.
        position: usize,
        /// Rows of the table.
        rows: usize,
    },
    /// The tape cannot run backward.
    #[error("backward: {0}")]
    Backward(&'static str),
    /// A parameter name is used twice or missing.
    #[error("parameter `{name}`: {why}")]
    Parameter {
        /// The parameter's name.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// There is no usable CUDA device.
    #[error("CUDA cannot be used: {why}; install the NVIDIA driver and CUDA libraries, or choose the CPU")]
    NoCuda {
        /// The cause, in the driver's words if there are any.
        why: String,
    },
    /// The device's memory is exhausted.
    #[error(
        "device memory exhausted: {needed_mib} MiB more were needed, {held_mib} MiB are held and {free_mib} MiB are free; \
         lower the batch size, the rollouts or the beam, or choose the CPU"
    )]
    OutOfMemory {
        /// Mebibytes requested.
        needed_mib: usize,
        /// Mebibytes that this process already holds.
        held_mib: usize,
        /// Mebibytes that the device reports as free.
        free_mib: usize,
    },
    /// The driver, cuBLAS or NVRTC reported an error.
    #[error("CUDA {call}: {why}")]
    Cuda {
        /// The failed call.
        call: String,
        /// CUDA's error message.
        why: String,
    },
    /// A thread pool could not be started.
    #[error("{threads} threads could not be started: {why}")]
    Threads {
        /// How many threads were requested.
        threads: usize,
        /// The system's error.
        why: String,
    },
    /// A file of weights cannot be read or written.
    #[error("{}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// What the crate `tensor` returns.
pub type Result<T> = std::result::Result<T, TensorError>;

/// An error about two shapes, unless `fits`.
pub(crate) fn expect_shape(
    fits: bool,
    operation: &'static str,
    what: &'static str,
    left: &[usize],
    right: &[usize],
) -> Result<()> {
    if fits {
        return Ok(());
    }
    Err(TensorError::Shape { operation, what, left: left.to_vec(), right: right.to_vec() })
}
