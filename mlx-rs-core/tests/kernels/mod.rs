//! Kernels on a GPU. Without one these tests say that they were skipped; the host side is tested inside the crate.

use mlx_rs_core::kernel::{CudaKernel, KernelCall, KernelSource, MetalKernel};
use mlx_rs_core::transforms::{self, CustomVjp};
use mlx_rs_core::{Array, Device, Dtype, ErrorKind, Result, device, ops};

/// Either kind of kernel, so that each test is written once.
enum Kernel {
    Metal(MetalKernel),
    Cuda(CudaKernel),
}

impl Kernel {
    /// `cuda` and `metal` are the body in either language.
    fn new(name: &str, inputs: &[&str], metal: &str, cuda: &str) -> Result<Self> {
        let source = |body: &str| KernelSource::new(name, inputs, &["out"], body);
        if MetalKernel::is_available() {
            Ok(Self::Metal(MetalKernel::new(source(metal), false)?))
        } else {
            Ok(Self::Cuda(CudaKernel::new(source(cuda), 0)?))
        }
    }

    fn call(&self, inputs: &[Array], call: &KernelCall<'_>) -> Result<Array> {
        let mut outputs = match self {
            Self::Metal(kernel) => kernel.call(inputs, call)?,
            Self::Cuda(kernel) => kernel.call(inputs, call)?,
        };
        assert_eq!(outputs.len(), 1);
        Ok(outputs.remove(0))
    }
}

/// Runs `body` on the GPU, or says why it does not.
fn on_gpu(test: &str, body: impl FnOnce() -> Result<()>) -> Result<()> {
    if !MetalKernel::is_available() && !CudaKernel::is_available() {
        println!("skipped {test}: this build or this machine has neither Metal nor CUDA");
        return Ok(());
    }
    device::with_device(Device::Gpu(0), body)
}

fn twice() -> Result<Kernel> {
    Kernel::new(
        "twice",
        &["x"],
        "uint i = thread_position_in_grid.x; out[i] = x[i] * T(2);",
        "auto i = blockIdx.x * blockDim.x + threadIdx.x; if (i < N) out[i] = x[i] * T(2);",
    )
}

fn ramp() -> Result<Array> {
    Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], &[8])
}

fn eight() -> KernelCall<'static> {
    KernelCall::new()
        .output(&[8], Dtype::Float32)
        .grid([8, 1, 1])
        .thread_group([32, 1, 1])
        .template_dtype("T", Dtype::Float32)
        .template_int("N", 8)
}

#[test]
fn a_kernel_doubles_its_input() -> Result<()> {
    on_gpu("a_kernel_doubles_its_input", || {
        let out = twice()?.call(&[ramp()?], &eight())?;
        assert_eq!(out.to_vec::<f32>()?, [2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0]);
        Ok(())
    })
}

#[test]
fn a_template_dtype_makes_a_bfloat16_kernel() -> Result<()> {
    on_gpu("a_template_dtype_makes_a_bfloat16_kernel", || {
        let plus_one = Kernel::new(
            "plus_one",
            &["x"],
            "uint i = thread_position_in_grid.x; out[i] = x[i] + T(1);",
            "auto i = blockIdx.x * blockDim.x + threadIdx.x; if (i < 3) out[i] = T(float(x[i]) + 1.0f);",
        )?;
        let x = Array::from_slice(&[0.5f32, -1.25, 3.0], &[3])?.astype(Dtype::Bfloat16)?;
        let call = KernelCall::new().output(&[3], Dtype::Bfloat16).grid([3, 1, 1]).thread_group([3, 1, 1]);
        let out = plus_one.call(&[x], &call.template_dtype("T", Dtype::Bfloat16))?;
        assert_eq!(out.astype(Dtype::Float32)?.to_vec::<f32>()?, [1.5, -0.25, 4.0]);
        Ok(())
    })
}

#[test]
fn the_output_shape_function_beats_the_list() -> Result<()> {
    on_gpu("the_output_shape_function_beats_the_list", || {
        let call =
            eight().output(&[1], Dtype::Float16).output_shapes(|x| Ok(vec![(x[0].shape().to_vec(), x[0].dtype())]));
        assert_eq!(twice()?.call(&[ramp()?], &call)?.shape(), [8]);
        Ok(())
    })
}

#[test]
fn the_init_value_fills_what_no_thread_writes() -> Result<()> {
    on_gpu("the_init_value_fills_what_no_thread_writes", || {
        let call = eight().init_value(7.0).template_int("UNUSED", 0).grid([2, 1, 1]).thread_group([2, 1, 1]);
        let out = twice()?.call(&[ramp()?], &call)?;
        assert_eq!(out.to_vec::<f32>()?, [2.0, 4.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0]);
        Ok(())
    })
}

#[test]
fn a_strided_input_is_read_in_row_order() -> Result<()> {
    on_gpu("a_strided_input_is_read_in_row_order", || {
        let transposed = ops::transpose(&ramp()?.reshape(&[2, 4])?, None)?;
        let out = twice()?.call(&[transposed], &eight())?;
        assert_eq!(out.to_vec::<f32>()?, [2.0, 10.0, 4.0, 12.0, 6.0, 14.0, 8.0, 16.0]);
        Ok(())
    })
}

#[test]
fn a_kernel_has_a_gradient_only_through_a_custom_vjp() -> Result<()> {
    on_gpu("a_kernel_has_a_gradient_only_through_a_custom_vjp", || {
        let bare = twice()?;
        let loss = |x: &[Array]| Ok(vec![ops::sum(&bare.call(x, &eight())?, None, false)?]);
        let error = transforms::grad(loss, &[0], &[ramp()?]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Mlx);
        let kernel = twice()?;
        let wrapped = CustomVjp::new(
            move |x| Ok(vec![kernel.call(x, &eight())?]),
            |_, cotangents, _| Ok(vec![(&cotangents[0] * 2.0)?]),
        )?;
        let loss = |x: &[Array]| Ok(vec![ops::sum(&wrapped.call(x)?[0], None, false)?]);
        assert_eq!(transforms::grad(loss, &[0], &[ramp()?])?[0].to_vec::<f32>()?, [2.0; 8]);
        Ok(())
    })
}

#[test]
fn a_kernel_on_the_cpu_is_refused() -> Result<()> {
    on_gpu("a_kernel_on_the_cpu_is_refused", || {
        let kernel = twice()?;
        let error = device::with_device(Device::Cpu, || kernel.call(&[ramp()?], &eight())).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unsupported);
        Ok(())
    })
}

#[test]
fn without_a_gpu_the_device_and_the_kernels_are_refused_with_a_reason() {
    if Device::gpu_count() > 0 {
        println!("skipped without_a_gpu_the_device_and_the_kernels_are_refused_with_a_reason: there is a GPU");
        return;
    }
    let error = device::with_device(Device::Gpu(0), || Ok(())).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported);
    assert!(error.message.starts_with("device gpu:0 is not available"), "{error}");
    let source = KernelSource::new("twice", &["x"], &["out"], "out[0] = x[0];");
    assert_eq!(MetalKernel::new(source.clone(), false).err().map(|e| e.kind), Some(ErrorKind::Unsupported));
    assert_eq!(CudaKernel::new(source, 0).err().map(|e| e.kind), Some(ErrorKind::Unsupported));
}
