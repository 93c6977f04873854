//! Where C is called: status to `Result`, and an owner for every C container.

use std::ffi::{CStr, CString, c_int};

use mlx_sys as sys;

use crate::array::Array;
use crate::device;
use crate::error::{self, Error, Result};
use crate::transforms::closure;

/// Calls into C and turns a bad status into the cause: a panic or an error parked by one of our own closures
/// that ran inside the call, or else MLX's message.
pub(crate) fn check(op: &'static str, call: impl FnOnce() -> c_int) -> Result<()> {
    error::install_handler();
    error::clear_message();
    closure::clear_parked();
    if call() == 0 {
        return Ok(());
    }
    match closure::take_parked() {
        Some(error) => Err(error),
        None => Err(error::take_message(op)),
    }
}

/// An op with one array out, on the stream of the current scope.
pub(crate) fn array_op(
    op: &'static str,
    call: impl FnOnce(*mut sys::mlx_array, sys::mlx_stream) -> c_int,
) -> Result<Array> {
    let stream = device::current_stream(op)?;
    array_out(op, |out| call(out, stream.raw()))
}

/// A call with one array out and no stream.
pub(crate) fn array_out(op: &'static str, call: impl FnOnce(*mut sys::mlx_array) -> c_int) -> Result<Array> {
    error::install_handler();
    // SAFETY: creates an empty handle.
    let mut out = Array::from_raw(unsafe { sys::mlx_array_new() });
    check(op, || call(out.raw_mut()))?;
    Ok(out)
}

/// An op with two arrays out.
pub(crate) fn pair_op(
    op: &'static str,
    call: impl FnOnce(*mut sys::mlx_array, *mut sys::mlx_array, sys::mlx_stream) -> c_int,
) -> Result<(Array, Array)> {
    let stream = device::current_stream(op)?;
    // SAFETY: creates empty handles.
    let (mut first, mut second) =
        unsafe { (Array::from_raw(sys::mlx_array_new()), Array::from_raw(sys::mlx_array_new())) };
    check(op, || call(first.raw_mut(), second.raw_mut(), stream.raw()))?;
    Ok((first, second))
}

/// An op with a list of arrays out.
pub(crate) fn list_op(
    op: &'static str,
    call: impl FnOnce(*mut sys::mlx_vector_array, sys::mlx_stream) -> c_int,
) -> Result<Vec<Array>> {
    let stream = device::current_stream(op)?;
    let mut out = ArrayVector::new();
    check(op, || call(out.raw_mut(), stream.raw()))?;
    out.to_vec(op)
}

/// An empty handle for an optional array argument; C reads a null context as "not given".
pub(crate) fn optional(array: Option<&Array>) -> sys::mlx_array {
    match array {
        Some(array) => array.raw(),
        None => sys::mlx_array { ctx: std::ptr::null_mut() },
    }
}

/// A C optional int.
pub(crate) fn optional_int(value: Option<i32>) -> sys::mlx_optional_int {
    sys::mlx_optional_int { value: value.unwrap_or(0), has_value: value.is_some() }
}

/// A C optional float.
pub(crate) fn optional_float(value: Option<f32>) -> sys::mlx_optional_float {
    sys::mlx_optional_float { value: value.unwrap_or(0.0), has_value: value.is_some() }
}

/// A C optional dtype.
pub(crate) fn optional_dtype(value: Option<crate::Dtype>) -> sys::mlx_optional_dtype {
    sys::mlx_optional_dtype { value: value.unwrap_or(crate::Dtype::Float32).raw(), has_value: value.is_some() }
}

/// A Rust string as a C string; an inner NUL is an error, not a cut.
pub(crate) fn c_string(op: &'static str, text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::argument(op, format!("text {text:?} contains a NUL byte")))
}

/// Owner of a `mlx_vector_array`.
pub(crate) struct ArrayVector(sys::mlx_vector_array);

impl ArrayVector {
    pub(crate) fn new() -> Self {
        error::install_handler();
        // SAFETY: creates an empty vector.
        Self(unsafe { sys::mlx_vector_array_new() })
    }

    /// A vector that holds a new reference to each array.
    pub(crate) fn from_slice(arrays: &[Array]) -> Result<Self> {
        let mut vector = Self::new();
        fill_vector(vector.raw_mut(), arrays)?;
        Ok(vector)
    }

    pub(crate) fn raw(&self) -> sys::mlx_vector_array {
        self.0
    }

    pub(crate) fn raw_mut(&mut self) -> *mut sys::mlx_vector_array {
        &mut self.0
    }

    pub(crate) fn to_vec(&self, op: &'static str) -> Result<Vec<Array>> {
        read_vector(op, self.0)
    }
}

impl Drop for ArrayVector {
    fn drop(&mut self) {
        // SAFETY: this value owns the vector; freeing a null context is a no-op.
        unsafe { sys::mlx_vector_array_free(self.0) };
    }
}

/// Copies references to `arrays` into a C vector that may or may not hold something already.
pub(crate) fn fill_vector(vector: *mut sys::mlx_vector_array, arrays: &[Array]) -> Result<()> {
    let raw: Vec<sys::mlx_array> = arrays.iter().map(Array::raw).collect();
    // SAFETY: `raw` outlives the call, and C takes its own references.
    check("vector", || unsafe { sys::mlx_vector_array_set_data(vector, raw.as_ptr(), raw.len()) })
}

/// New references to the elements of a C vector that somebody else owns.
pub(crate) fn read_vector(op: &'static str, vector: sys::mlx_vector_array) -> Result<Vec<Array>> {
    if vector.ctx.is_null() {
        return Ok(Vec::new());
    }
    // SAFETY: `vector` is a live vector for the length of this call.
    let len = unsafe { sys::mlx_vector_array_size(vector) };
    (0..len)
        // SAFETY: `index` is below the size.
        .map(|index| array_out(op, |out| unsafe { sys::mlx_vector_array_get(out, vector, index) }))
        .collect()
}

/// Owner of a `mlx_vector_string`.
pub(crate) struct StringVector(sys::mlx_vector_string);

impl StringVector {
    pub(crate) fn from_slice(op: &'static str, texts: &[String]) -> Result<Self> {
        error::install_handler();
        // SAFETY: creates an empty vector.
        let vector = Self(unsafe { sys::mlx_vector_string_new() });
        for text in texts {
            let text = c_string(op, text)?;
            // SAFETY: C copies the text.
            check(op, || unsafe { sys::mlx_vector_string_append_value(vector.0, text.as_ptr()) })?;
        }
        Ok(vector)
    }

    pub(crate) fn new() -> Self {
        error::install_handler();
        // SAFETY: creates an empty vector.
        Self(unsafe { sys::mlx_vector_string_new() })
    }

    pub(crate) fn raw(&self) -> sys::mlx_vector_string {
        self.0
    }

    pub(crate) fn raw_mut(&mut self) -> *mut sys::mlx_vector_string {
        &mut self.0
    }

    pub(crate) fn to_vec(&self, op: &'static str) -> Result<Vec<String>> {
        if self.0.ctx.is_null() {
            return Ok(Vec::new());
        }
        // SAFETY: the vector is alive.
        let len = unsafe { sys::mlx_vector_string_size(self.0) };
        (0..len)
            .map(|index| {
                let mut text = std::ptr::null_mut();
                // SAFETY: `index` is below the size; the pointer stays valid while the vector lives.
                check(op, || unsafe { sys::mlx_vector_string_get(&mut text, self.0, index) })?;
                // SAFETY: C gave a NUL-terminated string that lives as long as the vector.
                Ok(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
            })
            .collect()
    }
}

impl Drop for StringVector {
    fn drop(&mut self) {
        // SAFETY: this value owns the vector.
        unsafe { sys::mlx_vector_string_free(self.0) };
    }
}

/// Runs a call that writes a `mlx_string` and returns its text.
pub(crate) fn string_out(op: &'static str, call: impl FnOnce(*mut sys::mlx_string) -> c_int) -> Result<String> {
    error::install_handler();
    struct Owner(sys::mlx_string);
    impl Drop for Owner {
        fn drop(&mut self) {
            // SAFETY: this value owns the string.
            unsafe { sys::mlx_string_free(self.0) };
        }
    }
    // SAFETY: creates an empty string.
    let mut owner = Owner(unsafe { sys::mlx_string_new() });
    check(op, || call(&mut owner.0))?;
    // SAFETY: the string is alive; a null pointer is checked below.
    let data = unsafe { sys::mlx_string_data(owner.0) };
    if data.is_null() {
        return Ok(String::new());
    }
    // SAFETY: `data` is NUL-terminated and lives as long as `owner`.
    Ok(unsafe { CStr::from_ptr(data) }.to_string_lossy().into_owned())
}
