//! The backward pass of a step's messages: to the states by sender, to the weights by kind, each in a fixed order.
#![allow(unsafe_code)]

use pulp::{Simd, WithSimd};

use super::super::cpu::{Receiver, Slopes, message_derivatives};
use super::super::{LANES, Masks};
use super::{Derivatives, Sizes};
use crate::cpu::disjoint::Disjoint;
use crate::cpu::{Cpu, simd};
use crate::memory::Buffer;
use crate::reach::FrontierStep;

/// Senders that a thread takes at a time.
const SENDERS: usize = 32;
/// Pairs of query and kind that a thread takes at a time.
const PAIRS: usize = 16;

/// Replaces the derivatives of the aggregates by the factors that those of messages are made of.
pub(super) fn to_messages(
    cpu: &Cpu,
    step: &FrontierStep,
    sizes: Sizes,
    gradient: &mut Buffer<f32>,
    output: &[f32],
) {
    let width = sizes.width;
    cpu.rows(gradient.host_mut(), 4 * width, |first, gradient| {
        for (index, gradient) in (first..).zip(gradient.chunks_exact_mut(4 * width)) {
            message_derivatives(
                gradient,
                &output[index * 4 * width..][..4 * width],
                step.degree(index),
                width,
            );
        }
    });
}

/// The inputs of the backward pass.
pub(super) struct Given<'a> {
    step: &'a FrontierStep,
    sizes: Sizes,
    state: &'a [f32],
    weights: &'a [f32],
    start: &'a [f32],
    slopes: Slopes<'a>,
    start_masks: &'a [u32],
}

impl<'a> Given<'a> {
    pub(super) fn new(
        step: &'a FrontierStep,
        sizes: Sizes,
        [state, weights, start]: [&'a [f32]; 3],
        gradient: &'a [f32],
        masks: &'a Masks,
    ) -> Self {
        let Sizes { width, words, .. } = sizes;
        let slopes = Slopes { gradient, masks: masks.edges.host(), width, words };
        Given { step, sizes, state, weights, start, slopes, start_masks: masks.starts.host() }
    }

    pub(super) fn differentiate(&self, cpu: &Cpu, derivatives: &mut Derivatives) {
        self.to_starts(derivatives.start.host_mut());
        if let Some(messages) = &mut derivatives.messages {
            self.trace(messages.host_mut());
        }
        let sums = self.to_states(cpu, derivatives.state.host_mut());
        self.to_weights(cpu, &sums, derivatives.weights.host_mut());
        cpu.floats().give(sums);
    }

    /// The derivative of a message `x` of receiver `index` in one column; `most` and `least` say whether it is the
    /// maximum or the minimum.
    fn of_message(&self, index: usize, column: usize, x: f32, [most, least]: [bool; 2]) -> f32 {
        let width = self.sizes.width;
        let row = &self.slopes.gradient[index * 4 * width..][..4 * width];
        row[column]
            + row[3 * width + column] * x
            + if most { row[width + column] } else { 0.0 }
            + if least { row[2 * width + column] } else { 0.0 }
    }

    fn bits(&self, masks: &[u32], at: usize, column: usize) -> [bool; 2] {
        let first = (at * self.sizes.words + column / LANES) * 2;
        [0, 1].map(|which| masks[first + which] >> (column % LANES) & 1 == 1)
    }

    fn to_starts(&self, derivatives: &mut [f32]) {
        let width = self.sizes.width;
        for (query, derivative) in derivatives.chunks_exact_mut(width).enumerate() {
            let index = self.step.starts[query] as usize;
            for (column, derivative) in derivative.iter_mut().enumerate() {
                let x = self.start[query * width + column];
                *derivative = self.of_message(index, column, x, self.bits(self.start_masks, query, column));
            }
        }
    }

    /// The derivative with respect to a weight of 1 on every message.
    fn trace(&self, derivatives: &mut [f32]) {
        let Sizes { width, weight_step, .. } = self.sizes;
        for index in 0..self.step.updates() {
            let weights = &self.weights[self.step.receiver_query(index) * weight_step..];
            for at in self.step.messages_of(index) {
                let sender = self.step.senders[at];
                derivatives[at] = (0..width)
                    .map(|column| {
                        let x = self.state[sender.row as usize * width + column]
                            * weights[sender.kind as usize * width + column];
                        x * self.of_message(index, column, x, self.bits(self.slopes.masks, at, column))
                    })
                    .sum();
            }
        }
    }

    /// The derivatives of the state. Returns the sums of the messages' derivatives per run.
    fn to_states(&self, cpu: &Cpu, derivatives: &mut [f32]) -> Vec<f32> {
        let width = self.sizes.width;
        let lists = self.step.backward_lists(self.sizes.weight_step > 0);
        let mut sums = cpu.floats().take(lists.runs.len() * width);
        let all_sums = Disjoint::new(&mut sums);
        cpu.zip([(derivatives, width)], SENDERS, |first, [out]| {
            pulp::Arch::new().dispatch(Senders { given: self, first, out, sums: &all_sums });
        });
        sums
    }

    fn to_weights(&self, cpu: &Cpu, sums: &[f32], derivatives: &mut [f32]) {
        let Sizes { width, weight_step, .. } = self.sizes;
        let lists = self.step.backward_lists(weight_step > 0);
        let derivatives = Disjoint::new(derivatives);
        let pairs = lists.kind_starts.len() - 1;
        cpu.each(pairs.div_ceil(PAIRS), |task| {
            simd::vectorise(
                #[inline(always)]
                || {
                    for pair in task * PAIRS..((task + 1) * PAIRS).min(pairs) {
                        let runs = &lists.by_kind
                            [lists.kind_starts[pair] as usize..lists.kind_starts[pair + 1] as usize];
                        let run = lists.runs[runs[0] as usize];
                        let place = run.query as usize * weight_step + run.kind as usize * width;
                        // SAFETY: the runs of a query (or of all, if they share weights) and a kind are one pair.
                        let out = unsafe { derivatives.part(place..place + width) };
                        for &run in runs {
                            let sum = &sums[run as usize * width..][..width];
                            let row = lists.runs[run as usize].row as usize;
                            let state = &self.state[row * width..][..width];
                            for column in 0..width {
                                out[column] = sum[column].mul_add(state[column], out[column]);
                            }
                        }
                    }
                },
            )
        });
    }
}

/// A range of senders, processed in order.
struct Senders<'a> {
    given: &'a Given<'a>,
    first: usize,
    out: &'a mut [f32],
    sums: &'a Disjoint<'a, f32>,
}

impl WithSimd for Senders<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Senders { given, first, out, sums } = self;
        let Sizes { width, weight_step, .. } = given.sizes;
        let lists = given.step.backward_lists(weight_step > 0);
        let mut receivers = Vec::new();
        for (row, out) in (first..).zip(out.chunks_exact_mut(width)) {
            let state = &given.state[row * width..][..width];
            for index in lists.sender_runs[row] as usize..lists.sender_runs[row + 1] as usize {
                let run = lists.runs[index];
                receivers.clear();
                let sent = &lists.sent[run.first as usize..run.end as usize];
                receivers.extend(sent.iter().map(|&(row, edge)| Receiver { row, edge }));
                let weight = run.query as usize * weight_step + run.kind as usize * width;
                let weight = &given.weights[weight..][..width];
                // SAFETY: a run belongs to one sender.
                let sum = unsafe { sums.part(index * width..(index + 1) * width) };
                given.slopes.send(simd, [state, weight], &receivers, sum, out);
            }
        }
    }
}
