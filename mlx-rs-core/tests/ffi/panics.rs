//! A panic inside a function comes out of the call that ran it, with its payload, and harms nothing after it.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use mlx_rs_core::transforms::{self, Checkpoint, Compiled, CustomVjp};
use mlx_rs_core::{Array, Device, Result, device, ops};

/// A payload that no other panic has.
#[derive(Debug, PartialEq)]
struct Thrown(u32);

fn thrown<R>(call: impl FnOnce() -> R) -> Thrown {
    let payload = catch_unwind(AssertUnwindSafe(call)).err().expect("the call panics");
    *payload.downcast::<Thrown>().expect("the payload is kept")
}

fn throw(_: &[Array]) -> Result<Vec<Array>> {
    std::panic::panic_any(Thrown(7))
}

fn square(x: &[Array]) -> Result<Vec<Array>> {
    Ok(vec![ops::square(&x[0])?])
}

fn x() -> Vec<Array> {
    vec![Array::scalar(3.0f32).unwrap()]
}

/// The gradient of x² at 3, which must be right whatever happened before.
fn still_right() {
    assert_eq!(transforms::grad(square, &[0], &x()).unwrap()[0].item::<f32>().unwrap(), 6.0);
}

#[test]
fn a_panic_comes_out_of_the_scoped_transforms() {
    assert_eq!(thrown(|| transforms::value_and_grad(throw, &[0], &x())), Thrown(7));
    still_right();
    assert_eq!(thrown(|| transforms::vjp(throw, &x(), &x())), Thrown(7));
    still_right();
    assert_eq!(thrown(|| transforms::jvp(throw, &x(), &x())), Thrown(7));
    still_right();
}

#[test]
fn a_panic_comes_out_of_a_custom_vjp_forward_and_backward() -> Result<()> {
    let forward = CustomVjp::new(throw, |_, cotangents, _| Ok(cotangents.to_vec()))?;
    assert_eq!(thrown(|| forward.call(&x())), Thrown(7));
    assert_eq!(thrown(|| transforms::grad(|x| forward.call(x), &[0], &x())), Thrown(7));
    still_right();
    let backward = CustomVjp::new(square, |primals, _, _| throw(primals))?;
    assert_eq!(backward.call(&x())?[0].item::<f32>()?, 9.0);
    assert_eq!(thrown(|| transforms::grad(|x| backward.call(x), &[0], &x())), Thrown(7));
    assert_eq!(backward.call(&x())?[0].item::<f32>()?, 9.0);
    still_right();
    Ok(())
}

#[test]
fn a_panic_comes_out_of_a_checkpoint_and_of_its_second_run() -> Result<()> {
    assert_eq!(thrown(|| Checkpoint::new(throw).unwrap().call(&x())), Thrown(7));
    let runs = Rc::new(Cell::new(0));
    let counter = Rc::clone(&runs);
    let second = Checkpoint::new(move |x| {
        counter.set(counter.get() + 1);
        if counter.get() == 2 { throw(x) } else { square(x) }
    })?;
    assert_eq!(thrown(|| transforms::grad(|x| second.call(x), &[0], &x())), Thrown(7));
    assert_eq!(runs.get(), 2);
    assert_eq!(transforms::grad(|x| second.call(x), &[0], &x())?[0].item::<f32>()?, 6.0);
    still_right();
    Ok(())
}

#[test]
fn a_compiled_function_that_panicked_or_failed_while_traced_is_traced_again() -> Result<()> {
    let runs = Rc::new(Cell::new(0));
    let counter = Rc::clone(&runs);
    let compiled = Compiled::new(
        move |x: &[Array]| {
            counter.set(counter.get() + 1);
            match counter.get() {
                1 => throw(x),
                2 => Ok(vec![x[0].reshape(&[9])?]),
                _ => square(x),
            }
        },
        false,
    )?;
    assert_eq!(thrown(|| compiled.call(&x())), Thrown(7));
    assert_eq!(compiled.call(&x()).unwrap_err().op, "reshape");
    for _ in 0..2 {
        let out = compiled.call(&x())?;
        assert_eq!((out.len(), out[0].item::<f32>()?), (1, 9.0));
    }
    assert_eq!((runs.get(), compiled.trace_count()), (3, 3));
    still_right();
    Ok(())
}

#[test]
fn a_panic_comes_through_several_layers_once() -> Result<()> {
    let inner = Checkpoint::new(throw)?;
    let outer = CustomVjp::new(move |x| inner.call(x), |_, cotangents, _| Ok(cotangents.to_vec()))?;
    assert_eq!(thrown(|| transforms::grad(|x| outer.call(x), &[0], &x())), Thrown(7));
    // Nothing is parked any more: the next failure is its own.
    assert_eq!(x()[0].reshape(&[4]).unwrap_err().op, "reshape");
    still_right();
    Ok(())
}

#[test]
fn a_panic_that_a_function_catches_is_forgotten() -> Result<()> {
    let tolerant = |x: &[Array]| {
        assert_eq!(thrown(|| transforms::grad(throw, &[0], x)), Thrown(7));
        square(x)
    };
    assert_eq!(transforms::grad(tolerant, &[0], &x())?[0].item::<f32>()?, 6.0);
    Ok(())
}

#[test]
fn a_panic_ends_the_device_scope_it_leaves() -> Result<()> {
    let stream = mlx_rs_core::Stream::new(Device::Cpu)?;
    let before = mlx_rs_core::Stream::current()?;
    assert_ne!(stream, before);
    assert_eq!(thrown(|| device::with_stream(&stream, || throw(&[]))), Thrown(7));
    assert_eq!(mlx_rs_core::Stream::current()?, before);
    Ok(())
}
