//! Compiles the kernels when a device is opened, and caches the result on disk.
//!
//! The kernels are the CUDA sources in `kernels/`, a file for each operation. NVRTC compiles them into one binary for this device; it
//! is stored in the user's cache directory under a name made of the driver's version, the architecture and a hash of
//! the text. If the cache cannot be read or written, the only cost is the compilation.

use std::collections::HashMap;
use std::ffi::CString;
use std::path::PathBuf;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaFunction, sys};
use cudarc::nvrtc::{Ptx, result as nvrtc_result, sys as nvrtc};

use super::{Result, TensorError, failed};
use ruleguider_support::aside::write_aside;
use ruleguider_support::fnv::fnv;

/// The texts of files in `kernels/`.
macro_rules! sources {
    ($($name:literal),* $(,)?) => {
        &[$(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/", $name, ".cu"))),*]
    };
}

/// The CUDA sources, compiled together in this order: what all kernels use, then a file for each operation.
#[rustfmt::skip]
const KERNELS: &[&str] = sources![
    "prelude", "pieces", "adam", "sort", "gradients", "segments_of", "reach", "against_all", "choose",
    "combine", "convolution", "elementwise", "gather", "gather_dot", "mlp_score", "linear", "lstm",
    "normalise", "gather_elements", "propagate", "gate", "gated", "query", "reduce", "residual", "scatter",
    "segment", "softmax", "softmax_loss", "sparse", "scatter_nodes", "tally", "update",
];

/// All kernels by name, ready to launch on `context`'s device.
pub(super) fn functions(context: &Arc<CudaContext>) -> Result<HashMap<&'static str, CudaFunction>> {
    let (major, minor) = context.compute_capability().map_err(|error| failed("compute capability", error))?;
    let source = source();
    let place = cache_place(&source, major * 10 + minor);
    let kept = place.as_ref().and_then(|place| std::fs::read(place).ok());
    let loaded = kept.and_then(|binary| context.load_module(Ptx::from_binary(binary)).ok());
    let module = match loaded {
        Some(module) => module,
        None => {
            let binary = compile(&source, major * 10 + minor)?;
            if let Some(place) = &place {
                keep(place, &binary);
            }
            context.load_module(Ptx::from_binary(binary)).map_err(|error| failed("load kernels", error))?
        }
    };
    let names = KERNELS.iter().flat_map(|text| names_in(text));
    names
        .map(|name| {
            let function =
                module.load_function(name).map_err(|error| failed(&format!("kernel {name}"), error))?;
            Ok((name, function))
        })
        .collect()
}

/// The source of all kernels.
fn source() -> String {
    KERNELS.concat()
}

/// The names of the kernels defined in `text`.
fn names_in(text: &'static str) -> impl Iterator<Item = &'static str> {
    const MARK: &str = "extern \"C\" __global__ void ";
    text.match_indices(MARK).map(|(at, _)| {
        let rest = &text[at + MARK.len()..];
        rest.split('(').next().unwrap_or(rest).trim()
    })
}

fn compile(source: &str, architecture: i32) -> Result<Vec<u8>> {
    let error = |why: String| TensorError::Cuda { call: "compile kernels".to_string(), why };
    let text = CString::new(source).map_err(|problem| error(problem.to_string()))?;
    let program =
        nvrtc_result::create_program(&text, None).map_err(|problem| error(format!("{problem:?}")))?;
    let options = [format!("--gpu-architecture=sm_{architecture}"), "--std=c++17".to_string()];
    // SAFETY: the program is valid until it is destroyed below, and nothing else uses it; the binary has the size
    // that NVRTC reports.
    unsafe {
        let outcome = nvrtc_result::compile_program(program, &options).map_err(|problem| {
            let log = nvrtc_result::get_program_log(program).unwrap_or_default();
            let log: String =
                log.iter().map(|&byte| byte as u8 as char).take_while(|byte| *byte != '\0').collect();
            error(format!("{problem:?}: {log}"))
        });
        let binary = outcome.and_then(|()| {
            let mut size = 0;
            nvrtc::nvrtcGetCUBINSize(program, &mut size)
                .result()
                .map_err(|problem| error(format!("{problem:?}")))?;
            let mut binary = vec![0u8; size];
            nvrtc::nvrtcGetCUBIN(program, binary.as_mut_ptr().cast())
                .result()
                .map_err(|problem| error(format!("{problem:?}")))?;
            Ok(binary)
        });
        nvrtc_result::destroy_program(program).map_err(|problem| error(format!("{problem:?}")))?;
        binary
    }
}

/// Where the compiled kernels for this source, driver and architecture are cached, if there is a cache directory.
fn cache_place(source: &str, architecture: i32) -> Option<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))?;
    let mut driver = 0;
    // SAFETY: the driver was found and initialised; it writes one number.
    unsafe { sys::cuDriverGetVersion(&mut driver) }.result().ok()?;
    let hash = fnv(source.as_bytes());
    Some(base.join("ruleguider").join(format!("kernels-{driver}-sm{architecture}-{hash:016x}.cubin")))
}

/// Caches the binary if possible; a cache that cannot be written is not an error.
fn keep(place: &std::path::Path, binary: &[u8]) {
    let Some(directory) = place.parent() else { return };
    let _ = std::fs::create_dir_all(directory).and_then(|()| write_aside(place, |out| out.write_all(binary)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_compile_where_there_is_a_compiler() {
        // SAFETY: loading NVRTC runs its initialisers, which do not touch our memory.
        if !unsafe { nvrtc::is_culib_present() } {
            return crate::skip::skip(
                crate::skip::Need::Cuda,
                "the run-time compiler (libnvrtc) was not found",
            );
        }
        let start = std::time::Instant::now();
        let binary = compile(&source(), 90).unwrap();
        eprintln!("{} bytes in {:.2} s", binary.len(), start.elapsed().as_secs_f64());
        assert!(!binary.is_empty());
    }

    #[test]
    fn every_source_is_in_the_list() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
        let texts = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let sources = texts.filter(|path| path.extension().is_some_and(|ending| ending == "cu"));
        let mut texts: Vec<String> = sources.map(|path| std::fs::read_to_string(path).unwrap()).collect();
        let mut listed = KERNELS.to_vec();
        texts.sort_unstable();
        listed.sort_unstable();
        assert_eq!(texts, listed);
    }

    #[test]
    fn every_kernel_has_its_own_name() {
        let mut names: Vec<_> = KERNELS.iter().flat_map(|text| names_in(text)).collect();
        assert!(names.len() > 20, "{names:?}");
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
    /// The names that `text` launches kernels by.
    fn launched(text: &str) -> impl Iterator<Item = &str> {
        ["threads(", "warps(", "blocks("].into_iter().flat_map(move |call| {
            let rests = text.split(call).skip(1).map(str::trim_start);
            let names = rests.filter_map(|rest| rest.strip_prefix('"')?.split('"').next());
            // This function names the calls, too.
            names.filter(|name| name.starts_with(|first: char| first.is_ascii_lowercase()))
        })
    }

    #[test]
    fn every_kernel_that_is_launched_is_defined() {
        let defined: Vec<&str> = KERNELS.iter().flat_map(|text| names_in(text)).collect();
        let mut folders = vec![std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
        let mut seen = 0;
        while let Some(folder) = folders.pop() {
            for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let text = std::fs::read_to_string(&path).unwrap();
                for name in launched(&text) {
                    assert!(defined.contains(&name), "{}: no kernel is called {name}", path.display());
                    seen += 1;
                }
            }
        }
        assert!(seen > 50, "{seen} launches were found");
    }
}
