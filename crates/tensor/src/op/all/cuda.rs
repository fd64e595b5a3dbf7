//! The losses on CUDA.

use super::{Derivatives, Labels, Loss};
use crate::cuda::Cuda;
use crate::cuda::launch::arguments;
use crate::error::Result;
use crate::gradients::Target;
use crate::memory::Buffer;
use crate::op::product::{Side, product};
use crate::random::Dropout;

/// The inputs of one call on a CUDA device. The scores are one matrix, which is reused for their derivatives.
pub(super) struct DeviceProblem<'a> {
    pub(super) queries: &'a Buffer<f32>,
    pub(super) table: &'a Buffer<f32>,
    pub(super) bias: Option<&'a Buffer<f32>>,
    pub(super) count: usize,
    pub(super) rows: usize,
    pub(super) width: usize,
    pub(super) dropout: Dropout,
    pub(super) train: bool,
}

impl DeviceProblem<'_> {
    pub(super) fn run(&self, cuda: &Cuda, labels: &Labels, loss: Loss) -> Result<(Buffer<f32>, Derivatives)> {
        let device = self.queries.device();
        let dropped = match self.dropout.is_none() {
            true => None,
            false => Some(crate::op::against::drop_table(self.table, self.dropout)?),
        };
        let table = Side::new(dropped.as_ref().unwrap_or(self.table), self.rows, self.width);
        let queries = Side::new(self.queries, self.count, self.width);
        let mut scores = device.allocate::<f32>(self.count * self.rows)?;
        product(&mut scores, 0, queries, table.transposed(), false)?;
        let mut value = device.allocate::<f32>(1)?;
        let (label_rows, starts) = (labels.rows.buffer(), labels.segments.buffer());
        match loss {
            Loss::Binary { smoothing } => {
                let n = self.count * self.rows;
                let (everywhere, scale) = (smoothing.floor / self.rows as f32, 1.0 / n.max(1) as f32);
                // The labels' part of loss and derivative needs the original scores, so it is computed first and
                // kept.
                let (chunks, total) = (self.rows.div_ceil(BINARY_COLUMNS).max(1), labels.rows.len());
                let mut parts = device.zeros::<f32>(self.count * chunks + total)?;
                let owners = labels.segments.owners()?;
                let arguments = arguments![
                    &scores,
                    label_rows,
                    owners.buffer(),
                    total,
                    self.rows,
                    self.bias,
                    1.0 - smoothing.taken,
                    &mut parts
                ];
                cuda.threads("binary_labels", total, arguments)?;
                let arguments =
                    arguments![&mut scores, self.bias, self.rows, total, everywhere, scale, &mut parts];
                cuda.blocks("binary_derivatives", (chunks, self.count), 256, arguments)?;
                let derivative = (1.0 - smoothing.taken) * scale;
                let arguments =
                    arguments![&mut scores, label_rows, owners.buffer(), total, self.rows, derivative];
                cuda.threads("binary_label_derivatives", total, arguments)?;
                cuda.sum_all(&parts, None, &mut value, scale)?;
            }
            Loss::Softmax => {
                let scale = 1.0 / self.count.max(1) as f32;
                let mut parts = device.allocate::<f32>(self.count)?;
                let arguments =
                    arguments![&mut scores, self.bias, label_rows, starts, self.rows, scale, &mut parts];
                cuda.blocks("softmax_derivatives", (self.count, 1), 1024, arguments)?;
                cuda.sum_all(&parts, None, &mut value, scale)?;
            }
        }
        let train = |len: usize| device.allocate::<f32>(if self.train { len } else { 0 });
        let mut derivatives = Derivatives {
            queries: train(self.count * self.width)?,
            table: train(self.rows * self.width)?,
            bias: None,
        };
        if self.train {
            let scores_side = Side::new(&scores, self.count, self.rows);
            product(&mut derivatives.table, 0, scores_side.transposed(), queries, false)?;
            product(&mut derivatives.queries, 0, scores_side, table, false)?;
            if !self.dropout.is_none() {
                crate::op::against::apply(&mut derivatives.table, self.dropout)?;
            }
            if self.bias.is_some() {
                let mut target = Target { buffer: device.allocate(self.rows)?, fresh: true };
                crate::op::linear::column_sums(&scores, self.count, self.rows, &mut target)?;
                derivatives.bias = Some(target.buffer);
            }
        }
        Ok((value, derivatives))
    }
}

/// Columns of scores per block of the kernel.
const BINARY_COLUMNS: usize = 2048;
