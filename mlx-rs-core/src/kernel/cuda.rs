//! Kernels for the CUDA backend.

use mlx_sys as sys;

use super::call::{Launch, TemplateArg};
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

/// Owner of mlx-c's settings of one run.
pub(super) struct Config(sys::mlx_fast_cuda_kernel_config);

impl Config {
    pub(super) fn new(launch: &Launch<'_>) -> Result<Self> {
        error::install_handler();
        error::clear_message();
        // SAFETY: creates empty settings.
        let config = Self(unsafe { sys::mlx_fast_cuda_kernel_config_new() });
        if config.0.ctx.is_null() {
            return Err(error::take_message(OP));
        }
        for (shape, dtype) in &launch.outputs {
            // SAFETY: C copies the shape.
            ffi::check(OP, || unsafe {
                sys::mlx_fast_cuda_kernel_config_add_output_arg(config.0, shape.as_ptr(), shape.len(), dtype.raw())
            })?;
        }
        let ([x, y, z], [tx, ty, tz]) = (launch.grid, launch.thread_group);
        // SAFETY: the settings are live; plain numbers.
        ffi::check(OP, || unsafe { sys::mlx_fast_cuda_kernel_config_set_grid(config.0, x, y, z) })?;
        // SAFETY: the settings are live; plain numbers.
        ffi::check(OP, || unsafe { sys::mlx_fast_cuda_kernel_config_set_thread_group(config.0, tx, ty, tz) })?;
        if let Some(value) = launch.init_value {
            // SAFETY: the settings are live; a plain number.
            ffi::check(OP, || unsafe { sys::mlx_fast_cuda_kernel_config_set_init_value(config.0, value) })?;
        }
        // SAFETY: the settings are live; a plain bool.
        ffi::check(OP, || unsafe { sys::mlx_fast_cuda_kernel_config_set_verbose(config.0, launch.verbose) })?;
        launch.template.iter().try_for_each(|(name, value)| config.add_template(name, *value))?;
        Ok(config)
    }

    fn add_template(&self, name: &str, value: TemplateArg) -> Result<()> {
        let name = ffi::c_string(OP, name)?;
        let name = name.as_ptr();
        // SAFETY: the settings are live, and C copies the name.
        ffi::check(OP, || unsafe {
            match value {
                TemplateArg::Int(value) => sys::mlx_fast_cuda_kernel_config_add_template_arg_int(self.0, name, value),
                TemplateArg::Bool(value) => sys::mlx_fast_cuda_kernel_config_add_template_arg_bool(self.0, name, value),
                TemplateArg::Dtype(value) => {
                    sys::mlx_fast_cuda_kernel_config_add_template_arg_dtype(self.0, name, value.raw())
                }
            }
        })
    }
}

impl Drop for Config {
    fn drop(&mut self) {
        // SAFETY: this value owns the settings; MLX copied what a run needs.
        unsafe { sys::mlx_fast_cuda_kernel_config_free(self.0) };
    }
}
