//! Stands in for the driver where the program was built without CUDA. No device can be opened, so nothing else here is
//! ever called: the values of these types hold one that cannot exist.

use std::convert::Infallible;

use super::launch::Argument;
use super::{Factor, Precision};
use crate::error::{Result, TensorError};

pub(crate) struct Cuda {
    never: Infallible,
}

pub(crate) struct Block {
    pub(crate) pointer: u64,
    #[expect(dead_code, reason = "it keeps a block from existing")]
    never: Infallible,
}

pub(crate) struct Pinned {
    never: Infallible,
}

pub(crate) struct Mark {
    #[expect(dead_code, reason = "it keeps a mark from existing")]
    never: Infallible,
}

impl Cuda {
    pub(crate) fn new(_ordinal: usize, _exact: bool) -> Result<Cuda> {
        let why = "this program was built without CUDA (the feature `cuda`)".to_owned();
        Err(TensorError::NoCuda { why })
    }

    pub(crate) fn name(&self) -> &str {
        match self.never {}
    }

    pub(crate) fn peak_bytes(&self) -> usize {
        match self.never {}
    }

    pub(crate) fn take(&self, _bytes: usize) -> Result<Block> {
        match self.never {}
    }

    pub(crate) fn give(&self, _block: Block) {
        match self.never {}
    }

    pub(crate) fn synchronise(&self) -> Result<()> {
        match self.never {}
    }

    pub(crate) fn write<T: Copy>(&self, _target: u64, _values: &[T]) -> Result<()> {
        match self.never {}
    }

    pub(crate) fn read<T: Copy>(&self, _source: u64, _target: &mut [T]) -> Result<()> {
        match self.never {}
    }

    pub(crate) fn copy(&self, _target: u64, _source: u64, _bytes: usize) -> Result<()> {
        match self.never {}
    }

    pub(crate) fn clear(&self, _target: u64, _bytes: usize) -> Result<()> {
        match self.never {}
    }

    pub(super) fn launch(&self, _: &'static str, _grid: [u32; 3], _: &mut [Argument]) -> Result<()> {
        match self.never {}
    }

    pub(crate) fn product(
        &self,
        _out: u64,
        _left: Factor,
        _right: Factor,
        _accumulate: bool,
        _precision: Precision,
    ) -> Result<()> {
        match self.never {}
    }

    pub(crate) fn pinned(&self, _len: usize) -> Result<Pinned> {
        match self.never {}
    }

    pub(crate) fn keep_pinned(&self, _block: Pinned) {
        match self.never {}
    }

    pub(crate) fn write_pinned(&self, _target: u64, _block: &Pinned, _len: usize) -> Result<()> {
        match self.never {}
    }

    pub(crate) fn read_pinned(&self, _source: u64, _block: &mut Pinned, _len: usize) -> Result<Mark> {
        match self.never {}
    }

    pub(crate) fn wait(&self, _mark: &Mark) -> Result<()> {
        match self.never {}
    }
}

impl Pinned {
    pub(crate) fn values(&self, _len: usize) -> &[u32] {
        match self.never {}
    }

    pub(crate) fn values_mut(&mut self, _len: usize) -> &mut [u32] {
        match self.never {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_says_what_is_missing() {
        let error = Cuda::new(0, false).err().map(|error| error.to_string());
        assert!(error.is_some_and(|text| text.contains("built without CUDA")));
    }
}
