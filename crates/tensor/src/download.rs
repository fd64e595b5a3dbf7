//! Values on their way to the host, while the device goes on with what it was asked for after them.

use super::device::Backend;
use super::error::Result;
use super::value::Tensor;
use crate::cuda::{Mark, Pinned};

/// A tensor whose values are being copied to the host.
pub struct Download {
    tensor: Tensor,
    /// Where the values arrive, and the point in the device's work when they are there. `None` if they are on the host
    /// anyway or there is no memory to send them ahead: then they are read at the end.
    ahead: Option<(Pinned, Mark)>,
}

impl Tensor {
    /// Copies the values to the host as soon as they are computed, and returns at once.
    ///
    /// # Errors
    /// If the device fails.
    pub fn download(self) -> Result<Download> {
        let len = self.buffer().len();
        let ahead = match self.device().backend() {
            Backend::Cuda(cuda) if len > 0 => match cuda.pinned(len) {
                Ok(mut block) => {
                    let mark = cuda.read_pinned(self.buffer().pointer(), &mut block, len)?;
                    Some((block, mark))
                }
                Err(_) => None,
            },
            _ => None,
        };
        Ok(Download { tensor: self, ahead })
    }
}

impl Download {
    /// Waits for the values, though not for later work, and puts them into `target`, which must have the same length.
    ///
    /// # Errors
    /// If the device fails.
    pub fn read_into(self, target: &mut [f32]) -> Result<()> {
        match (&self.ahead, self.tensor.device().backend()) {
            (Some((block, mark)), Backend::Cuda(cuda)) => {
                assert_eq!(target.len(), self.tensor.buffer().len(), "a tensor is read as a whole");
                cuda.wait(mark)?;
                target.copy_from_slice(bytemuck::cast_slice(block.values(target.len())));
                Ok(())
            }
            _ => self.tensor.read_into(target),
        }
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        if let (Some((block, _)), Backend::Cuda(cuda)) = (self.ahead.take(), self.tensor.device().backend()) {
            cuda.keep_pinned(block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::devices;

    #[test]
    fn what_arrives_is_what_was_there_when_it_was_asked_for() {
        for device in devices() {
            for round in 0..20 {
                // Tensors and downloads live for different times, so that both kinds of memory are used again.
                let downloads: Vec<(Vec<f32>, Download)> = [0usize, 1, 50_000, 70_000]
                    .into_iter()
                    .map(|len| {
                        let values: Vec<f32> = (0..len).map(|at| (at * 7 + round) as f32).collect();
                        let tensor = Tensor::vector(&device, &values).unwrap();
                        (values, tensor.download().unwrap())
                    })
                    .collect();
                let later = Tensor::vector(&device, &vec![0.5; 50_000]).unwrap();
                for (index, (values, download)) in downloads.into_iter().enumerate() {
                    if index == round % 4 {
                        continue; // dropped without being read
                    }
                    let mut arrived = vec![0.0; values.len()];
                    download.read_into(&mut arrived).unwrap();
                    assert_eq!(arrived, values);
                }
                assert_eq!(later.to_vec().unwrap()[49_999], 0.5);
            }
        }
    }
}
