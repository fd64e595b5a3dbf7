//! The named parameters of a model.
//!
//! A parameter is *dense* (every step updates all of it), a *table* (a step updates the rows it touches) or a
//! *statistic* (kept and saved, such as a running mean, but without a gradient).

use std::sync::Arc;

use super::device::Device;
use super::error::{Result, TensorError, expect_shape};
use super::file::Archive;
use super::memory::Buffer;
use super::random::Initial;
use super::value::Tensor;

/// A handle to one parameter of a [`Parameters`] store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ParameterId(pub(super) u32);

/// How a parameter is updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Updated as a whole.
    Dense,
    /// Updated only in the rows that a step touches.
    Table,
    /// Written by an operation, not by the optimiser.
    Statistic,
}

pub(super) struct Entry {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) frozen: bool,
    pub(super) value: Tensor,
}

/// The named parameters of a model, on one device.
pub struct Parameters {
    device: Device,
    seed: u64,
    pub(super) entries: Vec<Entry>,
}

impl Parameters {
    /// No parameters yet; initial values will be drawn from `seed`.
    pub fn new(device: &Device, seed: u64) -> Parameters {
        Parameters { device: device.clone(), seed, entries: Vec::new() }
    }

    /// Adds a parameter that is updated as a whole.
    pub fn dense(
        &mut self,
        name: &str,
        rows: usize,
        columns: usize,
        initial: Initial,
    ) -> Result<ParameterId> {
        self.add(name, Kind::Dense, rows, columns, initial)
    }

    /// Adds a table, of which a step updates the rows it touches.
    pub fn table(
        &mut self,
        name: &str,
        rows: usize,
        columns: usize,
        initial: Initial,
    ) -> Result<ParameterId> {
        self.add(name, Kind::Table, rows, columns, initial)
    }

    /// Adds values that are kept with the model but not learnt by gradient.
    pub fn statistic(
        &mut self,
        name: &str,
        rows: usize,
        columns: usize,
        initial: Initial,
    ) -> Result<ParameterId> {
        self.add(name, Kind::Statistic, rows, columns, initial)
    }

    fn add(
        &mut self,
        name: &str,
        kind: Kind,
        rows: usize,
        columns: usize,
        initial: Initial,
    ) -> Result<ParameterId> {
        if self.find(name).is_some() {
            let why = "there is one of this name already".to_string();
            return Err(TensorError::Parameter { name: name.to_string(), why });
        }
        let value =
            Tensor::new(&self.device, &initial.values(rows, columns, self.seed, name), rows, columns)?;
        self.entries.push(Entry { name: name.to_string(), kind, frozen: false, value });
        Ok(ParameterId(self.entries.len() as u32 - 1))
    }

    /// The parameter of this name.
    pub fn find(&self, name: &str) -> Option<ParameterId> {
        self.entries.iter().position(|entry| entry.name == name).map(|index| ParameterId(index as u32))
    }

    /// All parameters in the order they were added.
    pub fn ids(&self) -> impl Iterator<Item = ParameterId> + use<> {
        (0..self.entries.len() as u32).map(ParameterId)
    }

    /// Its name.
    pub fn name(&self, id: ParameterId) -> &str {
        &self.entry(id).name
    }

    /// How it is updated.
    pub fn kind(&self, id: ParameterId) -> Kind {
        self.entry(id).kind
    }

    /// Its current value. The handle shares memory with the store: while the handle is alive, an update copies the
    /// value first.
    pub fn value(&self, id: ParameterId) -> Tensor {
        self.entry(id).value.clone()
    }

    /// Replaces its value; the shape stays the same.
    pub fn set(&mut self, id: ParameterId, values: &[f32]) -> Result<()> {
        let shape = self.entry(id).value.shape();
        expect_shape(
            values.len() == shape[0] * shape[1],
            "set parameter",
            "values",
            &[values.len()],
            &shape,
        )?;
        self.entries[id.0 as usize].value = Tensor::new(&self.device, values, shape[0], shape[1])?;
        Ok(())
    }

    /// Copies rows from a matrix of the same name and width in `archive`: row `i` from row `places[i]`, if given.
    /// Returns whether there is such a matrix; without one nothing changes.
    pub fn take_rows(&mut self, id: ParameterId, archive: &Archive, places: &[Option<u32>]) -> Result<bool> {
        let name = self.name(id).to_owned();
        let width = self.entry(id).value.columns();
        let rows = archive.shape(&name).and_then(|shape| shape.first().copied()).unwrap_or(0);
        let Ok(found) = archive.values(&name, [rows, width]) else { return Ok(false) };
        let mut values = self.entry(id).value.to_vec()?;
        for (row, place) in values.chunks_mut(width).zip(places) {
            if let Some(from) = place.and_then(|place| found.chunks(width).nth(place as usize)) {
                row.copy_from_slice(from);
            }
        }
        self.set(id, &values)?;
        Ok(true)
    }

    /// Copies the whole value of the same name and shape from `archive`. Returns whether there is one.
    pub fn take_whole(&mut self, id: ParameterId, archive: &Archive) -> Result<bool> {
        let (name, shape) = (self.name(id).to_owned(), self.entry(id).value.shape());
        match archive.values(&name, shape) {
            Ok(values) => self.set(id, values).map(|()| true),
            Err(_) => Ok(false),
        }
    }

    /// Freezes a parameter or not: a frozen one gets no gradient and keeps its value.
    pub fn freeze(&mut self, id: ParameterId, frozen: bool) {
        self.entries[id.0 as usize].frozen = frozen;
    }

    /// The device that holds them.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The number of values of all parameters.
    pub fn len(&self) -> usize {
        self.entries.iter().map(|entry| entry.value.rows() * entry.value.columns()).sum()
    }

    /// Whether there are no parameters.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn entry(&self, id: ParameterId) -> &Entry {
        &self.entries[id.0 as usize]
    }

    pub(super) fn learns(&self, id: ParameterId) -> bool {
        let entry = self.entry(id);
        !entry.frozen && entry.kind != Kind::Statistic
    }

    /// The values, mutable; copied first if they are shared.
    pub(super) fn values_mut(&mut self, id: ParameterId) -> Result<&mut Buffer<f32>> {
        let value = &mut self.entries[id.0 as usize].value;
        if Arc::get_mut(&mut value.buffer).is_none() {
            value.buffer = Arc::new(value.buffer.duplicate()?);
        }
        Ok(Arc::get_mut(&mut value.buffer).expect("the copy above has no other holder"))
    }
}
