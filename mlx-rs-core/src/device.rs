//! Devices, streams, and the scope that decides where ops run.
//!
//! Ops take no stream argument: they run on the innermost [`with_stream`] or [`with_device`] scope of the calling
//! thread, or else on the thread's default stream of MLX's default device. MLX's streams belong to threads, so
//! [`Stream`] is neither `Send` nor `Sync`.
//!
//! ```
//! use mlx_rs_core::{Array, Device, Stream, device, ops};
//!
//! let stream = Stream::new(Device::Cpu)?;
//! let sum = device::with_stream(&stream, || ops::sum(&Array::from_slice(&[1.0f32, 2.0], &[2])?, None, false))?;
//! stream.synchronize()?;
//! assert_eq!(sum.item::<f32>()?, 3.0);
//! // A device that is not there is an error, so a fallback is a match and not a crash.
//! let best = if Device::Gpu(0).is_available() { Device::Gpu(0) } else { Device::Cpu };
//! device::with_device(best, || ops::zeros(&[2], mlx_rs_core::Dtype::Float32)?.eval())?;
//! # Ok::<(), mlx_rs_core::Error>(())
//! ```

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use mlx_sys as sys;

use crate::error::{self, Error, ErrorKind, Result};
use crate::ffi;

/// A CPU or a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Device {
    /// The host processor.
    Cpu,
    /// The GPU of that index (Metal has one, CUDA one per card).
    Gpu(i32),
}

impl Device {
    /// The device on which ops run outside any scope.
    ///
    /// # Errors
    /// What MLX reports.
    pub fn default_device() -> Result<Self> {
        let mut raw = RawDevice::empty();
        // SAFETY: `raw` is a live, empty handle.
        ffi::check("default_device", || unsafe { sys::mlx_get_default_device(&mut raw.0) })?;
        raw.read()
    }

    /// Makes this the device on which ops run outside any scope, for the whole process.
    ///
    /// # Errors
    /// A device that is not available.
    pub fn set_default(self) -> Result<()> {
        self.require("set_default_device")?;
        let raw = RawDevice::of(self);
        // SAFETY: `raw` is live.
        ffi::check("set_default_device", || unsafe { sys::mlx_set_default_device(raw.0) })
    }

    /// Whether this build and this machine have the device.
    pub fn is_available(self) -> bool {
        let raw = RawDevice::of(self);
        let mut available = false;
        // SAFETY: both are live.
        let status =
            ffi::check("device_is_available", || unsafe { sys::mlx_device_is_available(&mut available, raw.0) });
        status.is_ok() && available
    }

    /// How many GPUs MLX sees.
    pub fn gpu_count() -> usize {
        let mut count = 0;
        // SAFETY: writes one int.
        let status = ffi::check("device_count", || unsafe { sys::mlx_device_count(&mut count, sys::MLX_GPU) });
        if status.is_ok() { usize::try_from(count).unwrap_or(0) } else { 0 }
    }

    fn require(self, op: &'static str) -> Result<()> {
        if self.is_available() {
            return Ok(());
        }
        let backend = sys::runtime::BACKEND;
        Err(Error::new(
            ErrorKind::Unsupported,
            op,
            format!("device {self} is not available (this program was built for `{backend}`)"),
        ))
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Cpu => f.write_str("cpu"),
            Device::Gpu(index) => write!(f, "gpu:{index}"),
        }
    }
}

struct RawDevice(sys::mlx_device);

impl RawDevice {
    fn empty() -> Self {
        error::install_handler();
        // SAFETY: creates a handle.
        Self(unsafe { sys::mlx_device_new() })
    }

    fn of(device: Device) -> Self {
        error::install_handler();
        let (kind, index) = match device {
            Device::Cpu => (sys::MLX_CPU, 0),
            Device::Gpu(index) => (sys::MLX_GPU, index),
        };
        // SAFETY: creates a handle.
        Self(unsafe { sys::mlx_device_new_type(kind, index) })
    }

    fn read(&self) -> Result<Device> {
        let (mut kind, mut index) = (sys::MLX_CPU, 0);
        // SAFETY: the handle is live.
        ffi::check("device", || unsafe { sys::mlx_device_get_type(&mut kind, self.0) })?;
        // SAFETY: the handle is live.
        ffi::check("device", || unsafe { sys::mlx_device_get_index(&mut index, self.0) })?;
        Ok(if kind == sys::MLX_CPU { Device::Cpu } else { Device::Gpu(index) })
    }
}

impl Drop for RawDevice {
    fn drop(&mut self) {
        // SAFETY: this value owns the handle.
        unsafe { sys::mlx_device_free(self.0) };
    }
}

/// A queue of work on one device, belonging to the thread that made it.
///
/// ```compile_fail
/// fn is_send<T: Send>() {}
/// is_send::<mlx_rs_core::Stream>();
/// ```
#[derive(Clone)]
pub struct Stream(Rc<RawStream>);

struct RawStream(sys::mlx_stream);

impl Drop for RawStream {
    fn drop(&mut self) {
        // SAFETY: this value owns the handle.
        unsafe { sys::mlx_stream_free(self.0) };
    }
}

impl Stream {
    /// A new stream on `device`.
    ///
    /// # Errors
    /// A device that is not available.
    pub fn new(device: Device) -> Result<Self> {
        device.require("new_stream")?;
        error::clear_message();
        let raw = RawDevice::of(device);
        // SAFETY: `raw` is live.
        let stream = unsafe { sys::mlx_stream_new_device(raw.0) };
        if stream.ctx.is_null() {
            return Err(error::take_message("new_stream"));
        }
        Ok(Self(Rc::new(RawStream(stream))))
    }

    /// The calling thread's default stream of `device`.
    ///
    /// # Errors
    /// A device that is not available.
    pub fn default_for(device: Device) -> Result<Self> {
        device.require("default_stream")?;
        let raw = RawDevice::of(device);
        // SAFETY: creates an empty handle.
        let mut stream = RawStream(unsafe { sys::mlx_stream_new() });
        // SAFETY: both handles are live.
        ffi::check("default_stream", || unsafe { sys::mlx_get_default_stream(&mut stream.0, raw.0) })?;
        Ok(Self(Rc::new(stream)))
    }

    /// The stream on which ops of the current scope run.
    ///
    /// # Errors
    /// What MLX reports when it has no default device.
    pub fn current() -> Result<Self> {
        current_stream("stream")
    }

    /// The device of this stream.
    ///
    /// # Errors
    /// What MLX reports.
    pub fn device(&self) -> Result<Device> {
        let mut raw = RawDevice::empty();
        // SAFETY: both handles are live.
        ffi::check("stream", || unsafe { sys::mlx_stream_get_device(&mut raw.0, self.raw()) })?;
        raw.read()
    }

    /// Waits until everything queued on this stream is done.
    ///
    /// # Errors
    /// A failure of queued work.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the handle is live.
        ffi::check("synchronize", || unsafe { sys::mlx_synchronize(self.raw()) })
    }

    pub(crate) fn raw(&self) -> sys::mlx_stream {
        self.0.0
    }
}

impl PartialEq for Stream {
    fn eq(&self, other: &Self) -> bool {
        // SAFETY: both handles are live and non-empty.
        unsafe { sys::mlx_stream_equal(self.raw(), other.raw()) }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: the handle is live.
        match ffi::string_out("stream", |out| unsafe { sys::mlx_stream_tostring(out, self.raw()) }) {
            Ok(text) => f.write_str(&text),
            Err(error) => write!(f, "Stream(<{error}>)"),
        }
    }
}

thread_local! {
    static SCOPES: RefCell<Vec<Stream>> = const { RefCell::new(Vec::new()) };
}

/// The innermost scope's stream, or the thread's default one.
pub(crate) fn current_stream(op: &'static str) -> Result<Stream> {
    let scoped = SCOPES.with_borrow(|scopes| scopes.last().cloned());
    match scoped {
        Some(stream) => Ok(stream),
        // Not cached: the default device may change, and a look-up costs less than building the op does.
        None => Stream::default_for(Device::default_device()?).map_err(|error| Error { op, ..error }),
    }
}

/// The stream of CPU-only work (file io) whatever the scope is.
pub(crate) fn cpu_stream() -> Result<Stream> {
    let current = current_stream("stream")?;
    if current.device()? == Device::Cpu { Ok(current) } else { Stream::default_for(Device::Cpu) }
}

/// Runs `body` with `stream` as the stream of every op in it. Scopes nest, and end with a panic too.
pub fn with_stream<R>(stream: &Stream, body: impl FnOnce() -> R) -> R {
    struct Scope;
    impl Drop for Scope {
        fn drop(&mut self) {
            SCOPES.with_borrow_mut(Vec::pop);
        }
    }
    SCOPES.with_borrow_mut(|scopes| scopes.push(stream.clone()));
    let _scope = Scope;
    body()
}

/// Runs `body` on the calling thread's default stream of `device`.
///
/// # Errors
/// A device that is not available, or what `body` returns.
///
/// ```
/// use mlx_rs_core::{Array, Device, device, ops};
/// let sum = device::with_device(Device::Cpu, || ops::sum(&Array::from_slice(&[1.0f32, 2.0], &[2])?, None, false))?;
/// assert_eq!(sum.item::<f32>()?, 3.0);
/// # Ok::<(), mlx_rs_core::Error>(())
/// ```
pub fn with_device<R>(device: Device, body: impl FnOnce() -> Result<R>) -> Result<R> {
    let stream = Stream::default_for(device)?;
    with_stream(&stream, body)
}
