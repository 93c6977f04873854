//! Rust functions as C closures: trampolines that never unwind into C, and the life of their payloads.
//!
//! - *Scoped* closures live for one call and may borrow. MLX runs them while that call runs and never after; should it
//!   keep one, the link back to Rust is cut when the call returns and a late run fails with an error.
//! - *Retained* closures (`custom_vjp`, `checkpoint`, `compile`) are `'static`. C++ shares their payload among the graph
//!   nodes that may call it and drops it with the last one, possibly on a thread of MLX's. What the payload captured may
//!   belong to its own thread, so a payload dropped elsewhere is sent home and dropped there, at the next retained
//!   closure made or when the thread ends; if the thread is gone, it is leaked.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};
use std::thread::ThreadId;

use mlx_sys as sys;

use crate::array::Array;
use crate::error::{self, Error, Result};
use crate::ffi;

enum Parked {
    Panic(Box<dyn Any + Send>),
    Failure(Error),
}

thread_local! {
    static PARKED: RefCell<Option<Parked>> = const { RefCell::new(None) };
}

/// Forgets what an earlier, already reported call parked.
pub(crate) fn clear_parked() {
    // While a thread ends its slot may be gone already, and the ops of a late destructor have nothing to clear.
    let _ = PARKED.try_with(|slot| slot.borrow_mut().take());
}

/// The first error of a closure that ran inside the failed call; a parked panic resumes here instead.
pub(crate) fn take_parked() -> Option<Error> {
    match PARKED.try_with(|slot| slot.borrow_mut().take()).ok().flatten()? {
        Parked::Panic(panic) => resume_unwind(panic),
        Parked::Failure(error) => Some(error),
    }
}

/// Runs the body of a trampoline: an error or a panic is parked and reported to C as a status.
fn guard(body: impl FnOnce() -> Result<()>) -> c_int {
    let parked = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return 0,
        Ok(Err(error)) => Parked::Failure(error),
        Err(panic) => Parked::Panic(panic),
    };
    // Without a slot (the thread is ending) the status alone reports the failure.
    let _ = PARKED.try_with(|slot| *slot.borrow_mut() = Some(parked));
    1
}

type Forward<'a> = dyn Fn(&[Array]) -> Result<Vec<Array>> + 'a;
type Backward = dyn Fn(&[Array], &[Array], &[Array]) -> Result<Vec<Array>>;

/// A C closure and its owner.
pub(crate) struct Closure(sys::mlx_closure);

impl Closure {
    pub(crate) fn empty() -> Self {
        error::install_handler();
        // SAFETY: creates an empty closure.
        Self(unsafe { sys::mlx_closure_new() })
    }

    /// A retained closure over `function`.
    pub(crate) fn retained(function: Box<Forward<'static>>) -> Result<Self> {
        let payload = Home::payload(function);
        error::clear_message();
        // SAFETY: the payload is the box that `call_retained` expects and `drop_home` releases.
        Self::adopt(unsafe {
            sys::mlx_closure_new_func_payload(Some(call_retained), payload, Some(drop_home::<Box<Forward<'static>>>))
        })
    }

    fn adopt(raw: sys::mlx_closure) -> Result<Self> {
        if raw.ctx.is_null() { Err(error::take_message("closure")) } else { Ok(Self(raw)) }
    }

    pub(crate) fn raw(&self) -> sys::mlx_closure {
        self.0
    }

    pub(crate) fn raw_mut(&mut self) -> *mut sys::mlx_closure {
        &mut self.0
    }

    /// Runs the closure on `inputs`.
    pub(crate) fn apply(&self, op: &'static str, inputs: &[Array]) -> Result<Vec<Array>> {
        let inputs = ffi::ArrayVector::from_slice(inputs)?;
        let mut outputs = ffi::ArrayVector::new();
        // SAFETY: all handles are live.
        ffi::check(op, || unsafe { sys::mlx_closure_apply(outputs.raw_mut(), self.0, inputs.raw()) })?;
        outputs.to_vec(op)
    }
}

impl Drop for Closure {
    fn drop(&mut self) {
        // SAFETY: this value owns the closure.
        unsafe { sys::mlx_closure_free(self.0) };
    }
}

/// A vjp rule as a C closure.
pub(crate) struct BackwardClosure(sys::mlx_closure_custom);

impl BackwardClosure {
    pub(crate) fn retained(function: Box<Backward>) -> Result<Self> {
        let payload = Home::payload(function);
        error::clear_message();
        // SAFETY: the payload is the box that `call_backward` expects and `drop_home` releases.
        let raw = unsafe {
            sys::mlx_closure_custom_new_func_payload(Some(call_backward), payload, Some(drop_home::<Box<Backward>>))
        };
        if raw.ctx.is_null() { Err(error::take_message("custom_vjp")) } else { Ok(Self(raw)) }
    }

    pub(crate) fn raw(&self) -> sys::mlx_closure_custom {
        self.0
    }
}

impl Drop for BackwardClosure {
    fn drop(&mut self) {
        // SAFETY: this value owns the closure.
        unsafe { sys::mlx_closure_custom_free(self.0) };
    }
}

/// Runs `body` with a C closure over a function that may borrow, and ends the function's life with the call.
pub(crate) fn with_scoped<R>(function: &Forward<'_>, body: impl FnOnce(&Closure) -> Result<R>) -> Result<R> {
    // SAFETY: only the lifetime is erased; `Cut` below takes the reference out before the borrow ends.
    let erased: &'static Forward<'static> = unsafe { std::mem::transmute(function) };
    let link: Rc<Scoped> = Rc::new(Cell::new(Some(erased)));
    struct Cut<'a>(&'a Scoped);
    impl Drop for Cut<'_> {
        fn drop(&mut self) {
            self.0.set(None);
        }
    }
    let _cut = Cut(&link);
    let payload = Home::payload(Rc::clone(&link));
    error::clear_message();
    // SAFETY: the payload is the box that `call_scoped` expects and `drop_home` releases.
    let closure = Closure::adopt(unsafe {
        sys::mlx_closure_new_func_payload(Some(call_scoped), payload, Some(drop_home::<Rc<Scoped>>))
    })?;
    body(&closure)
}

type Scoped = Cell<Option<&'static Forward<'static>>>;

unsafe extern "C" fn call_scoped(
    out: *mut sys::mlx_vector_array,
    inputs: sys::mlx_vector_array,
    payload: *mut c_void,
) -> c_int {
    guard(|| {
        // SAFETY: made by `Home::payload` in `with_scoped` and alive while the closure is.
        let home = unsafe { &*payload.cast::<Home<Rc<Scoped>>>() };
        home.require_own_thread()?;
        let function =
            home.value.get().ok_or_else(|| Error::closure("closure", "a scoped function was run after its call"))?;
        let inputs = ffi::read_vector("closure", inputs)?;
        ffi::fill_vector(out, &function(&inputs)?)
    })
}

unsafe extern "C" fn call_retained(
    out: *mut sys::mlx_vector_array,
    inputs: sys::mlx_vector_array,
    payload: *mut c_void,
) -> c_int {
    guard(|| {
        // SAFETY: made by `Home::payload` in `Closure::retained` and alive while the closure is.
        let home = unsafe { &*payload.cast::<Home<Box<Forward<'static>>>>() };
        home.require_own_thread()?;
        let inputs = ffi::read_vector("closure", inputs)?;
        ffi::fill_vector(out, &(home.value)(&inputs)?)
    })
}

unsafe extern "C" fn call_backward(
    out: *mut sys::mlx_vector_array,
    primals: sys::mlx_vector_array,
    cotangents: sys::mlx_vector_array,
    outputs: sys::mlx_vector_array,
    payload: *mut c_void,
) -> c_int {
    guard(|| {
        // SAFETY: made by `Home::payload` in `BackwardClosure::retained` and alive while the closure is.
        let home = unsafe { &*payload.cast::<Home<Box<Backward>>>() };
        home.require_own_thread()?;
        let primals = ffi::read_vector("custom_vjp", primals)?;
        let cotangents = ffi::read_vector("custom_vjp", cotangents)?;
        let outputs = ffi::read_vector("custom_vjp", outputs)?;
        ffi::fill_vector(out, &(home.value)(&primals, &cotangents, &outputs)?)
    })
}

/// A payload that remembers the thread it belongs to.
struct Home<T> {
    thread: ThreadId,
    value: T,
}

impl<T: 'static> Home<T> {
    fn payload(value: T) -> *mut c_void {
        error::install_handler();
        SWEEP.with(|_| drop_returned());
        Box::into_raw(Box::new(Self { thread: std::thread::current().id(), value })).cast()
    }

    fn require_own_thread(&self) -> Result<()> {
        if self.thread == std::thread::current().id() {
            return Ok(());
        }
        Err(Error::closure("closure", "a function was run on another thread than the one that made it"))
    }
}

/// A payload on its way home: the pointer, and how to drop it there.
struct Returned {
    payload: *mut c_void,
    release: unsafe fn(*mut c_void),
}

// SAFETY: the pointer is only followed on the thread that `RETURNED` files it under.
unsafe impl Send for Returned {}

static RETURNED: Mutex<Option<HashMap<ThreadId, Vec<Returned>>>> = Mutex::new(None);

unsafe fn release<T>(payload: *mut c_void) {
    // SAFETY: the caller passes a box of this type, once.
    drop(unsafe { Box::from_raw(payload.cast::<Home<T>>()) });
}

unsafe extern "C" fn drop_home<T>(payload: *mut c_void) {
    // A destructor of captured values may panic; it must not unwind into C.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the payload is alive until released below.
        let thread = unsafe { (*payload.cast::<Home<T>>()).thread };
        if thread == std::thread::current().id() {
            // SAFETY: C hands the payload over once.
            unsafe { release::<T>(payload) };
            return;
        }
        let mut returned = RETURNED.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = returned.get_or_insert_default().entry(thread).or_default();
        waiting.push(Returned { payload, release: release::<T> });
    }));
}

/// Drops the last returned payloads when their thread ends.
struct Sweep;

impl Drop for Sweep {
    fn drop(&mut self) {
        drop_returned();
    }
}

thread_local! {
    static SWEEP: Sweep = const { Sweep };
}

/// Drops what other threads sent back to this one.
fn drop_returned() {
    let waiting = {
        let mut returned = RETURNED.lock().unwrap_or_else(PoisonError::into_inner);
        returned.as_mut().and_then(|map| map.remove(&std::thread::current().id()))
    };
    for payload in waiting.into_iter().flatten() {
        // As in `drop_home`: a panicking destructor of captured values must not end the process with the thread.
        // SAFETY: filed under this thread, taken out once.
        let _ = catch_unwind(AssertUnwindSafe(|| unsafe { (payload.release)(payload.payload) }));
    }
}
