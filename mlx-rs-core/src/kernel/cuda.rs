//! Kernels for the CUDA backend.

use mlx_sys as sys;

use super::call::{Launch, TemplateArg};
use super::config::launch_config;
use super::{KernelCall, KernelSource, gpu_stream, require_backend};
use crate::array::Array;
use crate::error::{self, Error, Result};
use crate::ffi::{self, ArrayVector};

const OP: &str = "cuda_kernel";

/// A kernel in CUDA C++, made once and run many times.
pub struct CudaKernel {
    source: KernelSource,
    raw: sys::mlx_fast_cuda_kernel,
}

impl CudaKernel {
    /// Whether this build and this machine run CUDA kernels.
    pub fn is_available() -> bool {
        let mut available = false;
        // SAFETY: writes one bool.
        ffi::check(OP, || unsafe { sys::mlx_cuda_is_available(&mut available) }).is_ok() && available
    }

    /// Makes a kernel. `shared_memory` is the size of its dynamic shared memory in bytes (0: none).
    ///
    /// # Errors
    /// A name that is no identifier or is there twice, no outputs, more shared memory than an i32 counts, a build or a machine without CUDA.
    pub fn new(source: KernelSource, shared_memory: usize) -> Result<Self> {
        let c = source.to_c(OP)?;
        let shared_memory = i32::try_from(shared_memory)
            .map_err(|_| Error::argument(OP, format!("{shared_memory} bytes of shared memory, wanted an i32")))?;
        require_backend(OP, "CUDA", Self::is_available())?;
        error::install_handler();
        error::clear_message();
        // SAFETY: all texts and vectors live through the call, which copies them.
        let raw = unsafe {
            sys::mlx_fast_cuda_kernel_new(
                c.name.as_ptr(),
                c.inputs.raw(),
                c.outputs.raw(),
                c.body.as_ptr(),
                c.header.as_ptr(),
                source.ensure_row_contiguous,
                shared_memory,
            )
        };
        if raw.ctx.is_null() { Err(error::take_message(OP)) } else { Ok(Self { source, raw }) }
    }

    /// Records a run of the kernel on the current stream and returns its outputs, in the order of their names.
    ///
    /// # Errors
    /// Another number of inputs or outputs than names, neither outputs nor a function for them, no grid or thread group,
    /// or a current stream that is not of a GPU.
    pub fn call(&self, inputs: &[Array], call: &KernelCall<'_>) -> Result<Vec<Array>> {
        let config = Config::new(&call.settle(OP, &self.source, inputs)?)?;
        let stream = gpu_stream(OP)?;
        let inputs = ArrayVector::from_slice(inputs)?;
        let mut outputs = ArrayVector::new();
        // SAFETY: all handles live through the call; MLX takes its own references.
        ffi::check(OP, || unsafe {
            sys::mlx_fast_cuda_kernel_apply(outputs.raw_mut(), self.raw, inputs.raw(), config.0, stream.raw())
        })?;
        outputs.to_vec(OP)
    }
}

impl Drop for CudaKernel {
    fn drop(&mut self) {
        // SAFETY: this value owns the kernel; recorded runs hold what they need themselves.
        unsafe { sys::mlx_fast_cuda_kernel_free(self.raw) };
    }
}

launch_config!(
    mlx_fast_cuda_kernel_config,
    mlx_fast_cuda_kernel_config_new,
    mlx_fast_cuda_kernel_config_free,
    mlx_fast_cuda_kernel_config_add_output_arg,
    mlx_fast_cuda_kernel_config_set_grid,
    mlx_fast_cuda_kernel_config_set_thread_group,
    mlx_fast_cuda_kernel_config_set_init_value,
    mlx_fast_cuda_kernel_config_set_verbose,
    mlx_fast_cuda_kernel_config_add_template_arg_int,
    mlx_fast_cuda_kernel_config_add_template_arg_bool,
    mlx_fast_cuda_kernel_config_add_template_arg_dtype,
);
