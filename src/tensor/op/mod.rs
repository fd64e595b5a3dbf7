//! The operations: one file each, with its forward and backward pass for the CPU and its CUDA kernels.
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
pub(crate) mod judge;
pub(crate) mod linear;
pub(crate) mod lstm;
pub(crate) mod normalise;
pub(crate) mod pick;
pub(crate) mod product;
pub(crate) mod propagate;
pub(crate) mod query;
pub(crate) mod reduce;
pub(crate) mod scatter;
pub(crate) mod segment;
pub(crate) mod softmax;
pub(crate) mod softmax_loss;
pub(crate) mod spread;
pub(crate) mod tally;
pub(crate) mod update;

/// The CUDA sources of all operations, compiled together when a device is opened.
pub(crate) const KERNELS: &[&str] = &[
    super::cuda::pieces::KERNELS,
    super::adam::KERNELS,
    super::cuda::sort::KERNELS,
    super::gradients::KERNELS,
    super::value::KERNELS,
    super::reach::KERNELS,
    all::KERNELS,
    choose::KERNELS,
    combine::KERNELS,
    convolution::KERNELS,
    elementwise::KERNELS,
    gather::KERNELS,
    gather_dot::KERNELS,
    judge::KERNELS,
    linear::KERNELS,
    lstm::KERNELS,
    normalise::KERNELS,
    pick::KERNELS,
    propagate::KERNELS,
    propagate::gate::KERNELS,
    propagate::gated::KERNELS,
    query::KERNELS,
    reduce::KERNELS,
    scatter::KERNELS,
    segment::KERNELS,
    softmax::KERNELS,
    softmax_loss::KERNELS,
    spread::KERNELS,
    tally::KERNELS,
    update::KERNELS,
];
