//! A device buffer, returned to its device's pool when dropped.

use super::cpu::{Cpu, Shelf};
use super::cuda::Block;
use super::device::{Backend, Device};
use super::error::Result;

/// A type that device memory can hold: `f32` or `u32`.
pub(crate) trait Element: Copy + Default + Send + Sync + 'static {
    fn shelf(cpu: &Cpu) -> &Shelf<Self>;
}

impl Element for f32 {
    fn shelf(cpu: &Cpu) -> &Shelf<f32> {
        cpu.floats()
    }
}

impl Element for u32 {
    fn shelf(cpu: &Cpu) -> &Shelf<u32> {
        cpu.integers()
    }
}

enum Memory<T> {
    Host(Vec<T>),
    /// `None` only while the buffer is being dropped.
    Cuda(Option<Block>),
}

/// `len` elements on a device.
pub(crate) struct Buffer<T: Element> {
    device: Device,
    len: usize,
    memory: Memory<T>,
}

impl<T: Element> Buffer<T> {
    pub(super) fn new(device: &Device, len: usize) -> Result<Self> {
        let memory = match device.backend() {
            Backend::Cpu(cpu) => Memory::Host(T::shelf(cpu).take(len)),
            Backend::Cuda(cuda) => Memory::Cuda(Some(cuda.take(len * size_of::<T>())?)),
        };
        Ok(Buffer { device: device.clone(), len, memory })
    }

    /// A CPU buffer of elements that are already on the host.
    pub(super) fn of_host(device: &Device, values: Vec<T>) -> Self {
        Buffer { device: device.clone(), len: values.len(), memory: Memory::Host(values) }
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The elements; CPU only.
    pub(crate) fn host(&self) -> &[T] {
        match &self.memory {
            Memory::Host(values) => values,
            Memory::Cuda(_) => unreachable!("only the CPU's part of an operation looks at host memory"),
        }
    }

    /// The address on a CUDA device.
    pub(crate) fn pointer(&self) -> u64 {
        match &self.memory {
            Memory::Cuda(Some(block)) => block.pointer,
            _ => unreachable!("only CUDA's part of an operation looks at device memory"),
        }
    }

    /// The elements, mutable; CPU only.
    pub(crate) fn host_mut(&mut self) -> &mut [T] {
        match &mut self.memory {
            Memory::Host(values) => values,
            Memory::Cuda(_) => unreachable!("only the CPU's part of an operation looks at host memory"),
        }
    }

    /// Copies `values` in; their number must match.
    pub(crate) fn write(&mut self, values: &[T]) -> Result<()> {
        assert_eq!(values.len(), self.len, "a buffer is written as a whole");
        match (&mut self.memory, self.device.backend()) {
            (Memory::Host(own), _) => own.copy_from_slice(values),
            (_, Backend::Cuda(cuda)) => cuda.write(self.pointer(), values)?,
            (_, Backend::Cpu(_)) => unreachable!("memory belongs to its device"),
        }
        Ok(())
    }

    /// Copies the elements out; on CUDA this waits for them.
    pub(crate) fn read(&self) -> Result<Vec<T>> {
        let mut values = vec![T::default(); self.len];
        self.read_into(&mut values)?;
        Ok(values)
    }

    /// Copies the elements into `target`, which must have the same length; on CUDA this waits for them.
    pub(crate) fn read_into(&self, target: &mut [T]) -> Result<()> {
        assert_eq!(target.len(), self.len, "a buffer is read as a whole");
        match (&self.memory, self.device.backend()) {
            (Memory::Host(values), _) => target.copy_from_slice(values),
            (_, Backend::Cuda(cuda)) => cuda.read(self.pointer(), target)?,
            (_, Backend::Cpu(_)) => unreachable!("memory belongs to its device"),
        }
        Ok(())
    }

    /// Sets all elements to zero.
    pub(crate) fn clear(&mut self) -> Result<()> {
        match (&mut self.memory, self.device.backend()) {
            (Memory::Host(values), _) => values.fill(T::default()),
            (_, Backend::Cuda(cuda)) => cuda.clear(self.pointer(), self.len * size_of::<T>())?,
            (_, Backend::Cpu(_)) => unreachable!("memory belongs to its device"),
        }
        Ok(())
    }

    /// A second buffer with the same elements.
    pub(crate) fn duplicate(&self) -> Result<Self> {
        let mut copy = Self::new(&self.device, self.len)?;
        match (&mut copy.memory, &self.memory, self.device.backend()) {
            (Memory::Host(target), Memory::Host(source), _) => target.copy_from_slice(source),
            (_, _, Backend::Cuda(cuda)) => {
                cuda.copy(copy.pointer(), self.pointer(), self.len * size_of::<T>())?
            }
            (_, _, Backend::Cpu(_)) => unreachable!("memory belongs to its device"),
        }
        Ok(copy)
    }
}

impl<T: Element> Drop for Buffer<T> {
    fn drop(&mut self) {
        match (&mut self.memory, self.device.backend()) {
            (Memory::Host(values), Backend::Cpu(cpu)) => T::shelf(cpu).give(std::mem::take(values)),
            (Memory::Cuda(block), Backend::Cuda(cuda)) => {
                block.take().into_iter().for_each(|block| cuda.give(block))
            }
            _ => unreachable!("memory belongs to its device"),
        }
    }
}
