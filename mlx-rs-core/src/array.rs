//! [`Array`]: a reference to a lazy, n-dimensional value of MLX.

use std::fmt;

use mlx_sys as sys;

use crate::element::{Dtype, Element};
use crate::error::{self, Error, ErrorKind, Result};
use crate::ffi;

/// A reference to an MLX array: `Clone` makes another reference, `Drop` gives one back.
///
/// Building arrays from arrays records a graph; [`Array::eval`] or a read ([`Array::item`], [`Array::to_vec`]) runs it.
/// Arrays stay on the thread that made them (`!Send`, `!Sync`): MLX's streams belong to threads. Move host data instead.
///
/// ```
/// use mlx_rs_core::Array;
/// let a = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
/// let b = (&a * 2.0 + &a)?;
/// assert_eq!(b.shape(), [2, 2]);
/// assert_eq!(b.to_vec::<f32>()?, [3.0, 6.0, 9.0, 12.0]);
/// # Ok::<(), mlx_rs_core::Error>(())
/// ```
///
/// ```compile_fail
/// fn is_send<T: Send>() {}
/// is_send::<mlx_rs_core::Array>();
/// ```
///
/// ```compile_fail
/// fn is_sync<T: Sync>() {}
/// is_sync::<mlx_rs_core::Array>();
/// ```
pub struct Array {
    // The raw pointer inside makes the type neither Send nor Sync.
    raw: sys::mlx_array,
}

impl Array {
    /// Takes ownership of a C handle.
    pub(crate) fn from_raw(raw: sys::mlx_array) -> Self {
        Self { raw }
    }

    pub(crate) fn raw(&self) -> sys::mlx_array {
        self.raw
    }

    pub(crate) fn raw_mut(&mut self) -> *mut sys::mlx_array {
        &mut self.raw
    }

    /// Copies host elements into a new array of `shape` (row-major).
    ///
    /// # Errors
    /// A negative dimension, or a length that is not the product of `shape`.
    pub fn from_slice<T: Element>(data: &[T], shape: &[i32]) -> Result<Self> {
        Self::from_parts(data.as_ptr().cast(), data.len(), shape, T::DTYPE)
    }

    /// Copies `bytes` (native byte order, row-major) into a new array of `shape` and `dtype`.
    ///
    /// # Errors
    /// A negative dimension, or a byte count that does not fit `shape` and `dtype`.
    pub fn from_bytes(bytes: &[u8], shape: &[i32], dtype: Dtype) -> Result<Self> {
        if !bytes.len().is_multiple_of(dtype.size()) {
            return Err(Error::shape(
                "array",
                format!("{} bytes are no whole number of {dtype} elements", bytes.len()),
            ));
        }
        Self::from_parts(bytes.as_ptr(), bytes.len() / dtype.size(), shape, dtype)
    }

    fn from_parts(data: *const u8, len: usize, shape: &[i32], dtype: Dtype) -> Result<Self> {
        let wanted = element_count("array", shape)?;
        if wanted != len {
            return Err(Error::shape("array", format!("{len} elements do not fill shape {shape:?} ({wanted})")));
        }
        error::install_handler();
        error::clear_message();
        // C reads an empty slice's dangling pointer never, but must not be given a null one.
        let dims = i32::try_from(shape.len()).map_err(|_| Error::shape("array", "too many dimensions"))?;
        // SAFETY: `data` holds `len` elements of `dtype`, which C copies before it returns.
        let raw = unsafe { sys::mlx_array_new_data(data.cast(), shape.as_ptr(), dims, dtype.raw()) };
        if raw.ctx.is_null() {
            return Err(error::take_message("array"));
        }
        Ok(Self { raw })
    }

    /// A 0-d array of one value.
    pub fn scalar<T: Element>(value: T) -> Result<Self> {
        Self::from_slice(&[value], &[])
    }

    /// The dimensions; empty for a scalar.
    pub fn shape(&self) -> &[i32] {
        let ndim = self.ndim();
        // SAFETY: the handle is live.
        let shape = unsafe { sys::mlx_array_shape(self.raw) };
        if ndim == 0 || shape.is_null() {
            return &[];
        }
        // SAFETY: MLX keeps `ndim` ints for as long as the array lives, which the borrow of self covers.
        unsafe { std::slice::from_raw_parts(shape, ndim) }
    }

    /// The size of one axis; negative axes count from the end.
    ///
    /// # Errors
    /// An axis outside `-ndim..ndim`.
    pub fn dim(&self, axis: i32) -> Result<i32> {
        let shape = self.shape();
        let ndim = shape.len() as i32;
        let index = if axis < 0 { axis + ndim } else { axis };
        usize::try_from(index)
            .ok()
            .and_then(|index| shape.get(index).copied())
            .ok_or_else(|| Error::argument("dim", format!("axis {axis} of an array of shape {shape:?}")))
    }

    /// Number of dimensions.
    pub fn ndim(&self) -> usize {
        // SAFETY: the handle is live.
        unsafe { sys::mlx_array_ndim(self.raw) }
    }

    /// Number of elements.
    pub fn size(&self) -> usize {
        // SAFETY: the handle is live.
        unsafe { sys::mlx_array_size(self.raw) }
    }

    /// Bytes of the elements (not of the buffer behind a broadcast).
    pub fn nbytes(&self) -> usize {
        // SAFETY: the handle is live.
        unsafe { sys::mlx_array_nbytes(self.raw) }
    }

    /// Element type.
    pub fn dtype(&self) -> Dtype {
        // SAFETY: the handle is live.
        Dtype::from_raw(unsafe { sys::mlx_array_dtype(self.raw) })
    }

    /// Runs the graph behind this array and keeps the value.
    ///
    /// # Errors
    /// What MLX reports while it computes.
    pub fn eval(&self) -> Result<()> {
        // SAFETY: the handle is live.
        ffi::check("eval", || unsafe { sys::mlx_array_eval(self.raw) })
    }

    /// The single element of a one-element array.
    ///
    /// # Errors
    /// More than one element, another dtype than `T`, or a failed evaluation.
    pub fn item<T: Element>(&self) -> Result<T> {
        if self.size() != 1 {
            return Err(Error::shape(
                "item",
                format!("shape {:?} holds {} elements, wanted 1", self.shape(), self.size()),
            ));
        }
        Ok(self.to_vec::<T>()?[0])
    }

    /// All elements in row-major order, whatever the strides are.
    ///
    /// # Errors
    /// Another dtype than `T`, or a failed evaluation.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        if self.dtype() != T::DTYPE {
            return Err(Error::new(
                ErrorKind::Dtype,
                "to_vec",
                format!("array is {}, asked for {}", self.dtype(), T::DTYPE),
            ));
        }
        self.read(|bytes, len| {
            // SAFETY: `bytes` holds `len` elements of T's dtype.
            (0..len).map(|i| unsafe { T::read(bytes.add(i * T::DTYPE.size())) }).collect()
        })
    }

    /// The bytes of all elements in row-major order.
    ///
    /// # Errors
    /// A failed evaluation.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let width = self.dtype().size();
        self.read(|bytes, len| {
            // SAFETY: `bytes` holds `len * width` initialised bytes.
            unsafe { std::slice::from_raw_parts(bytes, len * width) }.to_vec()
        })
    }

    /// Contiguous copy, evaluation, then `copy` on the bytes and the element count. The pointer never leaves.
    fn read<R>(&self, copy: impl FnOnce(*const u8, usize) -> R) -> Result<R> {
        let dense = crate::ops::contiguous(self, false)?;
        dense.eval()?;
        let len = dense.size();
        if len == 0 {
            return Ok(copy(std::ptr::NonNull::<u64>::dangling().as_ptr().cast(), 0));
        }
        // SAFETY: evaluated and row contiguous, so the pointer covers `len` elements; the accessor does not look
        // at the dtype.
        let bytes = unsafe { sys::mlx_array_data_uint8(dense.raw) };
        if bytes.is_null() {
            return Err(Error::new(ErrorKind::Mlx, "to_vec", "the array has no data after evaluation"));
        }
        Ok(copy(bytes, len))
    }

    /// The same values as another dtype.
    ///
    /// # Errors
    /// What MLX reports.
    pub fn astype(&self, dtype: Dtype) -> Result<Array> {
        crate::ops::astype(self, dtype)
    }

    /// The same elements in another shape; one dimension may be -1.
    ///
    /// # Errors
    /// A shape with another number of elements.
    pub fn reshape(&self, shape: &[i32]) -> Result<Array> {
        crate::ops::reshape(self, shape)
    }
}

/// The product of `shape`, checked.
pub(crate) fn element_count(op: &'static str, shape: &[i32]) -> Result<usize> {
    shape.iter().try_fold(1usize, |count, &dim| {
        usize::try_from(dim)
            .ok()
            .and_then(|dim| count.checked_mul(dim))
            .ok_or_else(|| Error::shape(op, format!("shape {shape:?} has a negative dimension or is too large")))
    })
}

impl Clone for Array {
    /// A new reference to the same value.
    fn clone(&self) -> Self {
        // SAFETY: creates an empty handle, then makes it refer to the same array.
        let mut raw = unsafe { sys::mlx_array_new() };
        // SAFETY: both handles are live.
        let status = unsafe { sys::mlx_array_set(&mut raw, self.raw) };
        // Only an allocation of a few bytes can fail here, as in any Rust clone.
        assert_eq!(status, 0, "out of memory while referencing an array");
        Self { raw }
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        // SAFETY: this value owns the handle.
        unsafe { sys::mlx_array_free(self.raw) };
    }
}

impl fmt::Debug for Array {
    /// Shape and dtype; printing never runs a graph.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Array({:?}, {})", self.shape(), self.dtype())
    }
}

impl fmt::Display for Array {
    /// The values as MLX prints them (this evaluates).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: the handle is live and the string is written by C.
        match ffi::string_out("tostring", |out| unsafe { sys::mlx_array_tostring(out, self.raw) }) {
            Ok(text) => f.write_str(&text),
            Err(error) => write!(f, "<{error}>"),
        }
    }
}
