//! The driver, the stream, cuBLAS and the compiled kernels of one device.
#![allow(unsafe_code)]

mod arena;
mod compile;
mod pinned;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use cudarc::cublas::sys as blas;
use cudarc::driver::{CudaContext, CudaFunction, CudaStream, DriverError, result, sys};

use super::launch::Argument;
use super::{Factor, Precision};
use crate::error::{Result, TensorError};
use arena::Arena;
pub(crate) use arena::Block;
pub(crate) use pinned::{Mark, Pinned};

/// The size of cuBLAS's workspace in bytes; provided once, so that it never allocates.
const WORKSPACE: usize = 32 << 20;

/// A CUDA device. Fields are dropped in order: memory is freed while its context still exists.
pub(crate) struct Cuda {
    blas: Mutex<Blas>,
    functions: HashMap<&'static str, CudaFunction>,
    arena: Arena,
    stock: pinned::Stock,
    exact: bool,
    name: String,
    stream: Arc<CudaStream>,
    context: Arc<CudaContext>,
}

impl Drop for Cuda {
    fn drop(&mut self) {
        // Blocks are freed by the thread that drops the last handle, which may never have used the device, and work
        // in flight may still use them. There is nowhere to report a failure.
        let _ = self.context.bind_to_thread();
        let _ = self.stream.synchronize();
        if let Some(workspace) = self.blas.get_mut().ok().and_then(|blas| blas.workspace.take()) {
            self.arena.give(workspace);
        }
    }
}

/// The cuBLAS handle with its workspace.
struct Blas {
    handle: blas::cublasHandle_t,
    /// `None` only while the device is being dropped.
    workspace: Option<Block>,
}

// SAFETY: a cuBLAS handle may move between threads; the mutex ensures that only one uses it at a time.
unsafe impl Send for Blas {}

impl Cuda {
    /// The device with this number; with `exact`, products use full `f32` instead of TF32.
    pub(crate) fn new(ordinal: usize, exact: bool) -> Result<Cuda> {
        expect_libraries()?;
        let context = CudaContext::new(ordinal).map_err(|error| {
            let why = format!("device {ordinal} cannot be opened: {}", in_words(error));
            TensorError::NoCuda { why }
        })?;
        // SAFETY: all work goes to one stream, so cudarc's event tracking is not needed for ordering.
        unsafe { context.disable_event_tracking() };
        let stream = context.new_stream().map_err(|error| failed("stream", error))?;
        let arena = Arena::default();
        let functions = compile::functions(&context)?;
        let name = context.name().unwrap_or_else(|_| "unknown device".to_string());
        let workspace = arena.take(&context, WORKSPACE)?;
        let blas = Mutex::new(Blas::new(&stream, workspace)?);
        let stock = pinned::Stock::default();
        Ok(Cuda { blas, functions, arena, stock, exact, name, stream, context })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn peak_bytes(&self) -> usize {
        self.arena.peak()
    }

    pub(crate) fn take(&self, bytes: usize) -> Result<Block> {
        self.arena.take(&self.context, bytes)
    }

    pub(crate) fn give(&self, block: Block) {
        self.arena.give(block);
    }

    pub(crate) fn synchronise(&self) -> Result<()> {
        let asked = self.stock.asked();
        self.stream.synchronize().map_err(|error| failed("synchronise", error))?;
        self.stock.finish(asked);
        Ok(())
    }

    fn bind(&self) -> Result<sys::CUstream> {
        self.context.bind_to_thread().map_err(|error| failed("bind", error))?;
        Ok(self.stream.cu_stream())
    }

    pub(crate) fn write<T: Copy>(&self, target: u64, values: &[T]) -> Result<()> {
        if values.is_empty() {
            return Ok(());
        }
        let stream = self.bind()?;
        // SAFETY: the target was allocated for this many elements; the driver copies pageable memory before it
        // returns, and pinned memory is not changed until the copy is done.
        unsafe { result::memcpy_htod_async(target, values, stream) }
            .map_err(|error| failed("copy to device", error))
    }

    pub(crate) fn read<T: Copy>(&self, source: u64, target: &mut [T]) -> Result<()> {
        if target.is_empty() {
            return Ok(());
        }
        let stream = self.bind()?;
        // SAFETY: the source holds this many elements, and the target is not touched before the stream is
        // synchronised.
        unsafe { result::memcpy_dtoh_async(target, source, stream) }
            .map_err(|error| failed("copy from device", error))?;
        self.synchronise()
    }

    pub(crate) fn copy(&self, target: u64, source: u64, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let stream = self.bind()?;
        // SAFETY: both sides were allocated with at least this many bytes.
        unsafe { result::memcpy_dtod_async(target, source, bytes, stream) }
            .map_err(|error| failed("copy on device", error))
    }

    pub(crate) fn clear(&self, target: u64, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let stream = self.bind()?;
        // SAFETY: the target was allocated with at least this many bytes.
        unsafe { result::memset_d8_async(target, 0, bytes, stream) }.map_err(|error| failed("clear", error))
    }

    /// Launches a kernel with as many blocks in both directions, and threads in each, as `grid` says.
    pub(super) fn launch(
        &self,
        name: &'static str,
        grid: [u32; 3],
        arguments: &mut [Argument],
    ) -> Result<()> {
        let stream = self.bind()?;
        let function = self.functions.get(name).ok_or_else(|| TensorError::Cuda {
            call: format!("kernel {name}"),
            why: "there is no kernel of this name".to_string(),
        })?;
        let mut pointers: Vec<*mut std::ffi::c_void> =
            arguments.iter_mut().map(|argument| (&raw mut argument.words).cast()).collect();
        // SAFETY: the arguments match the kernel's source, in the file of the caller's name, and the driver copies them
        // before it returns. Buffers outlive the work because it is done in stream order.
        unsafe {
            result::launch_kernel(
                function.cu_function(),
                (grid[0], grid[1], 1),
                (grid[2], 1, 1),
                0,
                stream,
                &mut pointers,
            )
        }
        .map_err(|error| failed(&format!("kernel {name}"), error))
    }

    /// `out = left · right` (or `+=`), all row-major.
    pub(crate) fn product(
        &self,
        out: u64,
        left: Factor,
        right: Factor,
        accumulate: bool,
        precision: Precision,
    ) -> Result<()> {
        let (rows, columns, inner) = (left.rows(), right.columns(), left.columns());
        if rows == 0 || columns == 0 {
            return Ok(());
        }
        let size = |size: usize| {
            i32::try_from(size).map_err(|_| TensorError::TooLarge { operation: "product", size })
        };
        let (m, n, k) = (size(columns)?, size(rows)?, size(inner)?);
        let (right_width, left_width) = (size(right.stored.1.max(1))?, size(left.stored.1.max(1))?);
        self.bind()?;
        let operation = |factor: &Factor| match factor.transposed {
            true => blas::cublasOperation_t::CUBLAS_OP_T,
            false => blas::cublasOperation_t::CUBLAS_OP_N,
        };
        let compute = match self.exact || precision == Precision::Full {
            true => blas::cublasComputeType_t::CUBLAS_COMPUTE_32F,
            false => blas::cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32,
        };
        let (one, beta) = (1.0f32, if accumulate { 1.0f32 } else { 0.0 });
        let float = blas::cudaDataType::CUDA_R_32F;
        let blas_handle = self.blas.lock().expect("no code panics while it holds the handle");
        // To cuBLAS, a row-major matrix is the transposed column-major one: outᵀ = rightᵀ · leftᵀ.
        // SAFETY: the buffers have the sizes given here, which the caller checked against their shapes.
        let status = unsafe {
            blas::cublasGemmEx(
                blas_handle.handle,
                operation(&right),
                operation(&left),
                m,
                n,
                k,
                (&raw const one).cast(),
                right.pointer as *const _,
                float,
                right_width,
                left.pointer as *const _,
                float,
                left_width,
                (&raw const beta).cast(),
                out as *mut _,
                float,
                m,
                compute,
                blas::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
            )
        };
        expect_blas("product", status)
    }
}

impl Blas {
    fn new(stream: &CudaStream, workspace: Block) -> Result<Blas> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the context is bound to this thread (it was just made); the workspace lives as long as the handle.
        unsafe {
            expect_blas("start", blas::cublasCreate_v2(&mut handle))?;
            expect_blas("stream", blas::cublasSetStream_v2(handle, stream.cu_stream().cast()))?;
            expect_blas(
                "workspace",
                blas::cublasSetWorkspace_v2(handle, workspace.pointer as *mut _, WORKSPACE),
            )?;
        }
        Ok(Blas { handle, workspace: Some(workspace) })
    }
}

impl Drop for Blas {
    fn drop(&mut self) {
        // SAFETY: the handle was created by `new` and is not used again. There is nowhere to report a failure.
        let _ = unsafe { blas::cublasDestroy_v2(self.handle) };
    }
}

/// An error unless driver, cuBLAS and NVRTC can be loaded; cudarc itself would panic later.
fn expect_libraries() -> Result<()> {
    // SAFETY: loading these libraries runs their initialisers, which do not touch our memory.
    let present = unsafe {
        [
            ("the NVIDIA driver (libcuda)", sys::is_culib_present()),
            ("cuBLAS (libcublas)", blas::is_culib_present()),
            ("the CUDA run-time compiler (libnvrtc)", cudarc::nvrtc::sys::is_culib_present()),
        ]
    };
    match present.into_iter().find(|(_, found)| !found) {
        Some((library, _)) => Err(TensorError::NoCuda { why: format!("{library} was not found") }),
        None => Ok(()),
    }
}

fn expect_blas(call: &str, status: blas::cublasStatus_t) -> Result<()> {
    match status {
        blas::cublasStatus_t::CUBLAS_STATUS_SUCCESS => Ok(()),
        other => Err(TensorError::Cuda { call: format!("cuBLAS {call}"), why: format!("{other:?}") }),
    }
}

fn failed(call: &str, error: DriverError) -> TensorError {
    TensorError::Cuda { call: call.to_string(), why: in_words(error) }
}

fn in_words(error: DriverError) -> String {
    match error.error_string() {
        Ok(text) => text.to_string_lossy().into_owned(),
        Err(_) => format!("{error:?}"),
    }
}
