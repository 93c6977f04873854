use super::call::TemplateArg;
use super::{CudaKernel, KernelCall, KernelSource, MetalKernel, cuda, metal};
use crate::array::Array;
use crate::device::{self, Device};
use crate::element::Dtype;
use crate::error::{Error, ErrorKind, Result};

const OP: &str = "test_kernel";

fn source() -> KernelSource {
    KernelSource::new("pair", &["a", "b"], &["sum"], "body")
}

fn inputs() -> Result<Vec<Array>> {
    Ok(vec![Array::from_slice(&[1.0f32, 2.0, 3.0], &[3])?, Array::from_slice(&[4.0f32, 5.0, 6.0], &[3])?])
}

fn complete() -> KernelCall<'static> {
    KernelCall::new().output(&[3], Dtype::Float32).grid([3, 1, 1]).thread_group([32, 1, 1])
}

fn refusal(source: &KernelSource, call: &KernelCall<'_>, inputs: &[Array]) -> Error {
    call.settle(OP, source, inputs).expect_err("the call is incomplete")
}

#[test]
fn a_complete_call_keeps_every_number_and_the_order_of_its_arguments() -> Result<()> {
    let source = KernelSource::new("k", &["a", "b"], &["x", "y"], "body");
    let call = KernelCall::new()
        .output(&[2, 3], Dtype::Float16)
        .output(&[], Dtype::Uint32)
        .grid([1, 2, 3])
        .thread_group([4, 5, 6])
        .template_int("N", -7)
        .template_dtype("T", Dtype::Bfloat16)
        .template_bool("CAUSAL", true)
        .init_value(0.5)
        .verbose(true);
    let launch = call.settle(OP, &source, &inputs()?)?;
    assert_eq!(launch.outputs, [(vec![2, 3], Dtype::Float16), (vec![], Dtype::Uint32)]);
    assert_eq!((launch.grid, launch.thread_group), ([1, 2, 3], [4, 5, 6]));
    assert_eq!(
        launch.template,
        [
            ("N".to_owned(), TemplateArg::Int(-7)),
            ("T".to_owned(), TemplateArg::Dtype(Dtype::Bfloat16)),
            ("CAUSAL".to_owned(), TemplateArg::Bool(true)),
        ]
    );
    assert_eq!((launch.init_value, launch.verbose), (Some(0.5), true));
    // mlx-c takes every setting without a GPU, so each status is checked here.
    metal::Config::new(&launch)?;
    cuda::Config::new(&launch)?;
    Ok(())
}

#[test]
fn neither_outputs_nor_a_function_for_them_is_an_error() -> Result<()> {
    let call = KernelCall::new().grid([1, 1, 1]).thread_group([1, 1, 1]);
    let error = refusal(&source(), &call, &inputs()?);
    assert_eq!((error.kind, error.op), (ErrorKind::Argument, OP));
    assert_eq!(error.message, "pair: provide outputs or an output-shape function");
    Ok(())
}

#[test]
fn the_output_shape_function_wins_over_the_list_and_sees_the_inputs() -> Result<()> {
    let call = complete().output_shapes(|inputs| {
        let rows = inputs[0].dim(0)? + inputs[1].dim(0)?;
        Ok(vec![(vec![rows], inputs[0].dtype())])
    });
    assert_eq!(call.settle(OP, &source(), &inputs()?)?.outputs, [(vec![6], Dtype::Float32)]);
    Ok(())
}

#[test]
fn the_grid_function_wins_over_the_fixed_grid_and_may_borrow() -> Result<()> {
    let per_row = 8;
    let borrowed = &per_row;
    let call = complete().grid_of(move |inputs| Ok([inputs[0].dim(0)? * borrowed, 1, 1]));
    assert_eq!(call.settle(OP, &source(), &inputs()?)?.grid, [24, 1, 1]);
    Ok(())
}

#[test]
fn an_error_of_a_shape_or_grid_function_keeps_its_cause() -> Result<()> {
    let shapes = complete().output_shapes(|inputs| Ok(vec![(vec![inputs[0].dim(5)?], Dtype::Float32)]));
    assert_eq!(refusal(&source(), &shapes, &inputs()?).op, "dim");
    let grid = complete().grid_of(|_| Err(Error::shape("mine", "too wide")));
    assert_eq!(refusal(&source(), &grid, &inputs()?), Error::shape("mine", "too wide"));
    Ok(())
}

#[test]
fn wrong_counts_name_the_kernel_and_its_arguments() -> Result<()> {
    let inputs = inputs()?;
    let error = refusal(&source(), &complete(), &inputs[..1]);
    assert_eq!(error.message, "pair: found 1 inputs, wanted 2 (a, b)");
    let error = refusal(&source(), &complete().output(&[1], Dtype::Int32), &inputs);
    assert_eq!(error.message, "pair: found 2 outputs, wanted 1 (sum)");
    Ok(())
}

#[test]
fn a_missing_or_empty_grid_or_thread_group_is_an_error() -> Result<()> {
    let inputs = inputs()?;
    let output = || KernelCall::new().output(&[3], Dtype::Float32);
    let message = |call: KernelCall<'_>| refusal(&source(), &call, &inputs).message;
    assert_eq!(message(output()), "pair: provide a grid or a grid function");
    assert_eq!(message(output().grid([1, 1, 1])), "pair: provide a thread group");
    assert_eq!(message(complete().grid([3, 0, 1])), "pair: grid is [3, 0, 1], wanted at least 1 everywhere");
    assert_eq!(
        message(complete().thread_group([1, 1, -1])),
        "pair: thread group is [1, 1, -1], wanted at least 1 everywhere"
    );
    assert_eq!(
        message(KernelCall::new().output(&[-1], Dtype::Float32).grid([1, 1, 1]).thread_group([1, 1, 1])),
        "shape [-1] has a negative dimension or is too large"
    );
    Ok(())
}

#[test]
fn template_names_are_identifiers_and_unique() -> Result<()> {
    let inputs = inputs()?;
    let error = refusal(&source(), &complete().template_int("1N", 1), &inputs);
    assert_eq!(error.message, "template argument name \"1N\" is no identifier (letters, digits and `_`)");
    let error = refusal(&source(), &complete().template_int("N", 1).template_bool("N", true), &inputs);
    assert_eq!(error.message, "pair: two template arguments are named \"N\"");
    Ok(())
}

#[test]
fn a_wrong_source_is_refused_before_the_backend_is_asked() {
    let refused = |source: KernelSource| {
        let metal = MetalKernel::new(source.clone(), false).err().map(|error| (error.kind, error.message));
        let cuda = CudaKernel::new(source, 0).err().map(|error| (error.kind, error.message));
        assert_eq!(metal, cuda);
        metal.expect("the source is wrong")
    };
    let argument = |text: &str| (ErrorKind::Argument, text.to_owned());
    assert_eq!(refused(KernelSource::new("k", &["x"], &[], "")), argument("kernel \"k\" has no outputs"));
    assert_eq!(
        refused(KernelSource::new("k", &["x"], &["x"], "")),
        argument("kernel \"k\" has two arguments named \"x\"")
    );
    assert_eq!(
        refused(KernelSource::new("a-b", &["x"], &["y"], "")),
        argument("kernel name \"a-b\" is no identifier (letters, digits and `_`)")
    );
    assert_eq!(refused(KernelSource::new("k", &["x"], &["y"], "a\0b")), argument("text \"a\\0b\" contains a NUL byte"));
}

#[test]
fn a_build_without_the_backend_says_so_when_a_kernel_is_made() {
    if !MetalKernel::is_available() {
        let error = MetalKernel::new(source(), false).err().expect("no backend");
        assert_eq!((error.kind, error.op), (ErrorKind::Unsupported, "metal_kernel"));
        assert!(error.message.starts_with("no Metal here (this program was built for `"), "{error}");
    }
    if !CudaKernel::is_available() {
        let error = CudaKernel::new(source(), 0).err().expect("no backend");
        assert_eq!((error.kind, error.op), (ErrorKind::Unsupported, "cuda_kernel"));
        assert!(error.message.starts_with("no CUDA here (this program was built for `"), "{error}");
    }
    // Without this, the test would pass in silence where both backends are there; no machine has both.
    assert!(!MetalKernel::is_available() || !CudaKernel::is_available());
}

#[test]
fn a_cpu_stream_is_refused() -> Result<()> {
    let error = device::with_device(Device::Cpu, || super::gpu_stream(OP)).expect_err("the cpu runs no kernels");
    assert_eq!((error.kind, error.op), (ErrorKind::Unsupported, OP));
    assert!(error.message.contains("the current scope is the cpu"), "{error}");
    Ok(())
}
