//! A small tape of coarse operations, on the CPU and on CUDA.
//!
//! Models are built from [`Parameters`] on a [`Device`]. A step is a [`Tape`] whose operations (its methods) compute
//! immediately and record how to run backward; [`Adam`] applies the [`Gradients`] to the parameters. This is the only
//! crate that knows devices: model code is the same for all of them and never writes a gradient.
//!
//! - A [`Tensor`] is a matrix of `f32`; vectors are columns, numbers have one element. [`Indices`] are lists
//!   of `u32` and [`Segments`] cut a list into runs of different lengths: the candidates of a state are a
//!   segment, never padded. Masks are [`Indices`] of zeros (open) and ones (closed).
//! - A gradient exists for *dense* parameters as a whole and for *tables* by the rows that were touched.
//! - Everything is a function of its inputs and keys: the same bits for any number of threads.
//! - Values come back to the host only by [`Tensor::to_vec`], [`Tensor::number`] and [`Indices::to_vec`].
//! - Shapes are checked, and an error names the operation and both shapes. Debug builds also check for NaN.
//!
//! Inside: `op/` has one file per operation, with its forward and backward pass for the CPU and the launches of its CUDA
//! kernels, whose sources are in `kernels/`; `cpu/` has the threads, the vector arithmetic and the matrix products;
//! `cuda/` has the driver, cuBLAS, the kernel compiler and a stable sort. Decisions that users notice:
//!
//! - *Memory* of dropped tensors is pooled on both devices, so after the first few training steps nothing is allocated.
//! - *CUDA* does matrix products in TF32 unless the device was opened by [`Device::cuda_exact`], or it is the
//!   forward pass of a layer on an [exact](Tape::exact) tape. Everything goes to one stream; only reading values back
//!   waits. Sums over rows of a table go by a sorted order, never by atomic addition, so results repeat bit for bit.
//!   Kernels are compiled when a device is first opened (about a second) and kept in `$XDG_CACHE_HOME/ruleguider`.
//! - *Adam* visits only the touched rows of a table; [`Adam`]'s module says how untouched rows differ from dense Adam.
//! - *Losses against all entities* compute their gradients in the forward pass, while the scores are in cache.
//!
//! ```
//! use ruleguider_tensor::*;
//!
//! # fn main() -> Result<()> {
//! let device = Device::cpu(1)?;
//! let mut parameters = Parameters::new(&device, 7);
//! let words = parameters.table("words", 10, 8, Initial::XavierNormal)?; // ten rows, updated when touched
//! let weight = parameters.dense("weight", 16, 10, Initial::XavierUniform)?;
//! let bias = parameters.dense("bias", 1, 10, Initial::Zeros)?;
//! let mut gradients = Gradients::new(&parameters);
//! let mut adam = Adam::new(AdamOptions { learning_rate: 0.05, ..AdamOptions::default() });
//!
//! // Learn that word 3 follows (1, 2) and word 6 follows (4, 5).
//! let (first, second) = (Indices::new(&device, &[1, 4])?, Indices::new(&device, &[2, 5])?);
//! let (rows, next) = (Indices::new(&device, &[0, 1])?, Indices::new(&device, &[3, 6])?);
//! let minus_mean = Tensor::vector(&device, &[-0.5, -0.5])?;
//! let mut loss = 0.0;
//! for step in 0..100 {
//!     let mut tape = Tape::training(&parameters, step); // the step's number seeds its dropout
//!     let table = tape.parameter(words);
//!     let (weight, bias) = (tape.parameter(weight), tape.parameter(bias));
//!     let before = tape.gather(table, &first, 0.1)?; // [2, 8], with dropout
//!     let last = tape.gather(table, &second, 0.1)?; // [2, 8]
//!     let scores = tape.linear(&[before, last], weight, Some(bias), Activation::Identity, 0.0)?; // [2, 10]
//!     let log_probs = tape.log_softmax(scores, 0)?;
//!     let chosen = tape.gather_pairs(log_probs, &rows, &next)?; // [2]
//!     let total = tape.weighted_sum(chosen, &minus_mean)?; // a number
//!     loss = tape.value(total).number()?;
//!     tape.backward(total, &mut gradients)?;
//!     gradients.clip_norm(5.0)?;
//!     adam.step(&mut parameters, &mut gradients)?;
//! }
//! assert!(loss < 0.05, "{loss}");
//! # Ok(())
//! # }
//! ```
#![warn(unreachable_pub)]

mod adam;
mod check;
mod cpu;
mod cuda;
mod device;
mod download;
mod draft;
mod edge_index;
mod error;
mod file;
mod gradients;
mod half;
mod memory;
mod op;
mod parameters;
mod random;
mod reach;
#[cfg(test)]
#[path = "../../../tests/skip/mod.rs"]
mod skip;
mod tape;
#[cfg(test)]
mod tests;
mod value;

pub use adam::{Adam, AdamOptions};
pub use device::{Device, DeviceChoice};
pub use download::Download;
pub use draft::Draft;
pub use edge_index::EdgeIndex;
pub use error::{Result, TensorError};
pub use file::Archive;
pub use gradients::Gradients;
pub use op::all::{Labels, Smoothing};
pub use op::choose::{Choosing, NOTHING, choose};
pub use op::convolution::Image;
pub use op::linear::Activation;
pub use op::lstm::{LstmState, LstmWeights};
pub use op::normalise::{MOMENTUM, Normalisation};
pub use op::propagate::bounded::FrontierStates;
pub use op::propagate::layer::Messages;
pub use op::segment::logsumexp;
pub use op::sparse::SparseMatrix;
pub use op::update::UpdateWeights;
pub use parameters::{Kind, ParameterId, Parameters};
pub use random::{Initial, Key};
pub use reach::{Frontier, FrontierStep, Reach, ReachQuery, ScoredRows, Trace, UpdatedRows, Without};
pub use tape::{Tape, Var};
pub use value::{Indices, Segments, Tensor};
