//! The library's memory for NumPy: read-only, without a copy, kept alive by its views.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use ruleguider::graph::{Array, Triple};
use ruleguider::tensor::Tensor;

/// What holds the memory.
enum Owner {
    Triples(Array<Triple>),
    Matrix(Tensor),
    /// A copy from a device whose memory the host cannot see.
    Copied(Vec<f32>),
}

/// Memory of the library, read-only: `numpy.asarray(view)` has it without a copy.
#[pyclass(frozen, module = "ruleguider._ruleguider")]
pub struct View {
    owner: Owner,
    /// How many elements of the matrix come before the first.
    skipped: usize,
    shape: (usize, usize),
    /// Elements from one row to the next.
    stride: usize,
}

impl View {
    /// The ids of triples, a row each.
    pub fn triples(triples: Array<Triple>) -> Self {
        let shape = (triples.len(), 3);
        Self { owner: Owner::Triples(triples), skipped: 0, shape, stride: 3 }
    }

    /// Every `step`-th row of `matrix` from row `first` on.
    ///
    /// # Errors
    /// If the device fails.
    pub fn rows(matrix: Tensor, first: usize, step: usize) -> Result<Self, ruleguider::tensor::TensorError> {
        let [rows, columns] = matrix.shape();
        let owner = match matrix.as_slice() {
            Some(_) => Owner::Matrix(matrix),
            None => Owner::Copied(matrix.to_vec()?),
        };
        let shape = (rows.saturating_sub(first).div_ceil(step), columns);
        Ok(Self { owner, skipped: first * columns, shape, stride: step * columns })
    }
}

#[pymethods]
impl View {
    /// NumPy's description of the memory.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (address, kind) = match &self.owner {
            Owner::Triples(triples) => (triples.as_ptr() as usize, "<u4"),
            Owner::Matrix(matrix) => (matrix.as_slice().map_or(0, |values| values.as_ptr() as usize), "<f4"),
            Owner::Copied(values) => (values.as_ptr() as usize, "<f4"),
        };
        // Ids and numbers of embeddings both have four bytes.
        const BYTES: usize = 4;
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("typestr", kind)?;
        interface.set_item("shape", self.shape)?;
        interface.set_item("strides", (self.stride * BYTES, BYTES))?;
        interface.set_item("data", (address + self.skipped * BYTES, true))?;
        Ok(interface)
    }
}
