//! Devices: where tensors live and what computes with them.
//!
//! A [`Device`] is a cheap handle. Model code is given one, creates tensors and parameters on it and never asks which
//! kind it is; only the operations in this module look inside.

use std::fmt;
use std::sync::Arc;

use super::cpu::Cpu;
use super::cuda::Cuda;
use super::error::Result;
use super::memory::{Buffer, Element};
use super::op::product::{Side, product};

/// The CPU with a number of threads, or a CUDA device.
#[derive(Clone)]
pub struct Device(Arc<Backend>);

/// What a device is; operations match on it.
pub(crate) enum Backend {
    Cpu(Cpu),
    Cuda(Cuda),
}

/// Which device a user asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The CPU.
    Cpu,
    /// A CUDA device; an error if there is none.
    Cuda,
    /// CUDA if there is a driver and a device, otherwise the CPU.
    #[default]
    Auto,
}

impl std::str::FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "cpu" => Ok(DeviceChoice::Cpu),
            "cuda" => Ok(DeviceChoice::Cuda),
            "auto" => Ok(DeviceChoice::Auto),
            _ => Err(format!("unknown device `{text}`; use cpu, cuda or auto")),
        }
    }
}

impl Device {
    /// Runs `work` on one of the device's own threads, if it has several. Operations called there start on that
    /// thread. Called from any other thread, each operation is handed to the pool and waited for, and if other
    /// processes compete for the cores, every such hand-over waits for the scheduler.
    pub fn inside<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match self.backend() {
            Backend::Cpu(cpu) => cpu.inside(work),
            Backend::Cuda(_) => work(),
        }
    }

    /// The CPU with this many threads (at least one).
    pub fn cpu(threads: usize) -> Result<Device> {
        Ok(Device(Arc::new(Backend::Cpu(Cpu::new(threads)?))))
    }

    /// The CUDA device with this number; an error with a remedy if there is none. Matrix products use TF32 (inputs
    /// with 10 bits of precision, sums in `f32`), as is usual in training.
    pub fn cuda(ordinal: usize) -> Result<Device> {
        Ok(Device(Arc::new(Backend::Cuda(Cuda::new(ordinal, false)?))))
    }

    /// As [`Device::cuda`] with matrix products in full `f32`, which is slower.
    pub fn cuda_exact(ordinal: usize) -> Result<Device> {
        Ok(Device(Arc::new(Backend::Cuda(Cuda::new(ordinal, true)?))))
    }

    /// The device of the user's choice; `threads` applies to the CPU.
    pub fn choose(choice: DeviceChoice, threads: usize) -> Result<Device> {
        match choice {
            DeviceChoice::Cpu => Device::cpu(threads),
            DeviceChoice::Cuda => Device::cuda(0),
            DeviceChoice::Auto => Device::cuda(0).or_else(|_| Device::cpu(threads)),
        }
    }

    /// Waits until the device has finished all work. For measuring time only.
    pub fn synchronise(&self) -> Result<()> {
        match self.backend() {
            Backend::Cpu(_) => Ok(()),
            Backend::Cuda(cuda) => cuda.synchronise(),
        }
    }

    /// Seconds per product of a `rows × inner` with an `inner × columns` matrix on this device, averaged over `times`
    /// in a row, the best of three rounds: the lower bound that a step is compared with.
    pub fn product_seconds(&self, rows: usize, inner: usize, columns: usize, times: usize) -> Result<f64> {
        let (left, right) = (self.zeros::<f32>(rows * inner)?, self.zeros::<f32>(inner * columns)?);
        let mut out = self.allocate::<f32>(rows * columns)?;
        let (left, right) = (Side::new(&left, rows, inner), Side::new(&right, inner, columns));
        let mut best = f64::INFINITY;
        for _ in 0..3 {
            self.synchronise()?;
            let start = std::time::Instant::now();
            for _ in 0..times {
                product(&mut out, 0, left, right, false)?;
            }
            self.synchronise()?;
            best = best.min(start.elapsed().as_secs_f64() / times.max(1) as f64);
        }
        Ok(best)
    }

    /// Seconds per copy of this many bytes within the device's memory, averaged over `times` in a row, the best of
    /// three rounds: the lower bound for work that only moves memory.
    pub fn copy_seconds(&self, bytes: usize, times: usize) -> Result<f64> {
        let source = self.zeros::<f32>(bytes / 2 / size_of::<f32>())?;
        let mut best = f64::INFINITY;
        for _ in 0..3 {
            self.synchronise()?;
            let start = std::time::Instant::now();
            for _ in 0..times {
                // Half of the bytes are read and half are written.
                drop(source.duplicate()?);
            }
            self.synchronise()?;
            best = best.min(start.elapsed().as_secs_f64() / times.max(1) as f64);
        }
        Ok(best)
    }

    /// The peak number of bytes held by tensors on this device, including pooled ones.
    pub fn peak_bytes(&self) -> usize {
        match self.backend() {
            Backend::Cpu(cpu) => cpu.floats().peak() + cpu.integers().peak(),
            Backend::Cuda(cuda) => cuda.peak_bytes(),
        }
    }

    /// How many threads may ask it at once: a GPU computes for one, on the CPU all threads of the pool compute.
    pub fn workers(&self) -> usize {
        if self.is_cuda() { 1 } else { rayon::current_num_threads() }
    }

    /// Whether it is a GPU.
    pub fn is_cuda(&self) -> bool {
        matches!(self.backend(), Backend::Cuda(_))
    }

    pub(crate) fn backend(&self) -> &Backend {
        &self.0
    }

    pub(crate) fn is_same(&self, other: &Device) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Memory for `len` elements with unspecified values.
    pub(crate) fn allocate<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        Buffer::new(self, len)
    }

    /// Memory for `len` elements, all zero.
    pub(crate) fn zeros<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        let mut buffer = Buffer::new(self, len)?;
        buffer.clear()?;
        Ok(buffer)
    }

    /// A copy of `values` on this device.
    pub(crate) fn upload<T: Element>(&self, values: &[T]) -> Result<Buffer<T>> {
        let mut buffer = Buffer::new(self, values.len())?;
        buffer.write(values)?;
        Ok(buffer)
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self.backend() {
            Backend::Cpu(cpu) => write!(formatter, "cpu ({} threads)", cpu.threads()),
            Backend::Cuda(cuda) => write!(formatter, "cuda ({})", cuda.name()),
        }
    }
}
