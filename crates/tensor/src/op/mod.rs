//! The operations: one file each, with its forward and backward pass for the CPU and the launches of its CUDA kernels,
//! whose sources are in `kernels/`.
// Loops over lanes and columns index several slices at once; iterators would hide which element is which.
#![allow(clippy::needless_range_loop)]

pub(crate) mod against;
pub(crate) mod all;
pub(crate) mod choose;
pub(crate) mod combine;
pub(crate) mod convolution;
pub(crate) mod elementwise;
pub(crate) mod gather;
pub(crate) mod gather_dot;
pub(crate) mod gather_elements;
pub(crate) mod linear;
pub(crate) mod lstm;
pub(crate) mod mlp_score;
pub(crate) mod normalise;
pub(crate) mod product;
pub(crate) mod propagate;
pub(crate) mod query;
pub(crate) mod reduce;
pub(crate) mod reshape;
pub(crate) mod residual;
pub(crate) mod scatter;
pub(crate) mod scatter_nodes;
pub(crate) mod segment;
pub(crate) mod softmax;
pub(crate) mod softmax_loss;
pub(crate) mod sparse;
pub(crate) mod tally;
pub(crate) mod update;
