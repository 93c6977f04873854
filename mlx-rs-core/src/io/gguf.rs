//! GGUF files, by MLX's own reader and writer, behind the checks of `gguf_layout`.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use mlx_sys as sys;

use super::gguf_layout::{self, BF16, Layout, Tensor};
use super::{at_path, c_path, dense, failed, on_cpu, open};
use crate::array::Array;
use crate::element::Dtype;
use crate::error::{self, ErrorKind, Result};
use crate::ffi::{self, StringVector};
use crate::{device, transforms};

/// A metadata value of a GGUF file.
#[derive(Debug, Clone)]
pub enum GgufMetadata {
    /// A number (shape `[]`) or a list of numbers (shape `[n]`).
    Array(Array),
    /// A text.
    String(String),
    /// A list of texts.
    Strings(Vec<String>),
}

/// Reads a GGUF file: its arrays and its metadata.
///
/// A tensor `x.weight` of type Q4_0, Q4_1 or Q8_0 becomes MLX's three parts, `x.weight` (packed, uint32), `x.scales` and
/// `x.biases` (float16, group size 32). Q2_K, Q4_K and Q6_K become float16; bfloat16 stays.
///
/// # Errors
/// A file that is missing, cut short or no GGUF file, or a tensor type that MLX does not read.
pub fn load_gguf(path: impl AsRef<Path>) -> Result<(BTreeMap<String, Array>, BTreeMap<String, GgufMetadata>)> {
    const OP: &str = "load_gguf";
    let path = path.as_ref();
    let layout = gguf_layout::read(path)?;
    let c_path = c_path(OP, path)?;
    let stream = device::cpu_stream()?;
    let mut file = Gguf::new();
    // SAFETY: the handle and the path live through the call; the layout was checked above.
    ffi::check(OP, || unsafe { sys::mlx_load_gguf(&mut file.0, c_path.as_ptr(), stream.raw()) })
        .map_err(|error| at_path(path, error))?;
    let arrays = read_arrays(OP, path, &file, &layout)?;
    let mut metadata = BTreeMap::new();
    for key in layout.keys {
        let value = file
            .metadata(OP, &key)?
            .ok_or_else(|| failed(OP, path, format!("MLX did not read the value of the key {key:?}")))?;
        metadata.insert(key, value);
    }
    Ok((arrays, metadata))
}

fn read_arrays(op: &'static str, path: &Path, file: &Gguf, layout: &Layout) -> Result<BTreeMap<String, Array>> {
    let mut arrays = BTreeMap::new();
    for name in file.names(op)? {
        let key = ffi::c_string(op, &name)?;
        // SAFETY: the handle and the name live through the call.
        let array = ffi::array_out(op, |out| unsafe { sys::mlx_io_gguf_get_array(out, file.0, key.as_ptr()) })?;
        arrays.insert(name, array);
    }
    for tensor in &layout.tensors {
        if !arrays.contains_key(&tensor.name) {
            return Err(failed(op, path, format!("MLX did not read the tensor {:?}", tensor.name)));
        }
        if tensor.kind == BF16 {
            // MLX would make float16 of it, which loses the range.
            arrays.insert(tensor.name.clone(), read_bfloat16(op, path, tensor)?);
        }
    }
    Ok(arrays)
}

fn read_bfloat16(op: &'static str, path: &Path, tensor: &Tensor) -> Result<Array> {
    let (mut file, _) = open(op, path)?;
    let mut bytes = vec![0; tensor.bytes as usize];
    file.seek(SeekFrom::Start(tensor.start)).map_err(|error| failed(op, path, error))?;
    file.read_exact(&mut bytes).map_err(|error| failed(op, path, error))?;
    // The layout check kept every dimension within an i32.
    let shape: Vec<i32> = tensor.dims.iter().rev().map(|&dim| dim as i32).collect();
    Array::from_bytes(&bytes, &shape, Dtype::Bfloat16)
}

/// Writes arrays (float32, float16, int8, int16, int32) and metadata to `path`, whose name must end in `.gguf`.
///
/// # Errors
/// Another ending (MLX would add one and write elsewhere), two arrays of one name, a dtype that the format or MLX does
/// not have, a metadata array with several dimensions or none, or a file that cannot be written.
pub fn save_gguf<'a, K: AsRef<str>>(
    path: impl AsRef<Path>,
    arrays: impl IntoIterator<Item = (K, &'a Array)>,
    metadata: &BTreeMap<String, GgufMetadata>,
) -> Result<()> {
    const OP: &str = "save_gguf";
    let path = path.as_ref();
    if path.extension().is_none_or(|ending| ending != "gguf") {
        return Err(failed(OP, path, "the name does not end in `.gguf`"));
    }
    let c_path = c_path(OP, path)?;
    on_cpu(|| {
        let named = dense(OP, path, arrays)?;
        // Computed before the file is created, so that a failing graph leaves an old file alone.
        transforms::eval(named.values())?;
        let file = Gguf::new();
        for (name, array) in &named {
            let key = ffi::c_string(OP, name)?;
            // SAFETY: C copies the name and takes its own reference.
            ffi::check(OP, || unsafe { sys::mlx_io_gguf_set_array(file.0, key.as_ptr(), array.raw()) })?;
        }
        metadata.iter().try_for_each(|(key, value)| file.set_metadata(OP, key, value))?;
        // SAFETY: the handle and the path live through the call.
        ffi::check(OP, || unsafe { sys::mlx_save_gguf(c_path.as_ptr(), file.0) })
            .map_err(|error| at_path(path, error))?;
        // The writer does not say whether every byte found room.
        gguf_layout::read(path).map(|_| ()).map_err(|error| error::Error { op: OP, ..error })
    })
}

/// Owner of mlx-c's GGUF object.
struct Gguf(sys::mlx_io_gguf);

impl Gguf {
    fn new() -> Self {
        error::install_handler();
        // SAFETY: creates an empty object.
        Self(unsafe { sys::mlx_io_gguf_new() })
    }

    fn names(&self, op: &'static str) -> Result<Vec<String>> {
        let mut names = StringVector::new();
        // SAFETY: both handles are live.
        ffi::check(op, || unsafe { sys::mlx_io_gguf_get_keys(names.raw_mut(), self.0) })?;
        names.to_vec(op)
    }

    /// The value of `key`, whichever of the three types it has.
    fn metadata(&self, op: &'static str, key: &str) -> Result<Option<GgufMetadata>> {
        let key = ffi::c_string(op, key)?;
        let holds = |ask: unsafe extern "C" fn(*mut bool, sys::mlx_io_gguf, *const std::ffi::c_char) -> i32| {
            let mut flag = false;
            // SAFETY: the handle and the key live through the call. 2 means that the key is not there.
            ffi::check(op, || match unsafe { ask(&mut flag, self.0, key.as_ptr()) } {
                2 => 0,
                status => status,
            })
            .map(|()| flag)
        };
        if holds(sys::mlx_io_gguf_has_metadata_string)? {
            // SAFETY: the handle and the key live through the call.
            let text =
                ffi::string_out(op, |out| unsafe { sys::mlx_io_gguf_get_metadata_string(out, self.0, key.as_ptr()) })?;
            return Ok(Some(GgufMetadata::String(text)));
        }
        if holds(sys::mlx_io_gguf_has_metadata_vector_string)? {
            let mut texts = StringVector::new();
            // SAFETY: all handles and the key live through the call.
            ffi::check(op, || unsafe {
                sys::mlx_io_gguf_get_metadata_vector_string(texts.raw_mut(), self.0, key.as_ptr())
            })?;
            return Ok(Some(GgufMetadata::Strings(texts.to_vec(op)?)));
        }
        if holds(sys::mlx_io_gguf_has_metadata_array)? {
            // SAFETY: the handle and the key live through the call.
            let array =
                ffi::array_out(op, |out| unsafe { sys::mlx_io_gguf_get_metadata_array(out, self.0, key.as_ptr()) })?;
            return Ok(Some(GgufMetadata::Array(array)));
        }
        Ok(None)
    }

    fn set_metadata(&self, op: &'static str, key: &str, value: &GgufMetadata) -> Result<()> {
        let c_key = ffi::c_string(op, key)?;
        match value {
            GgufMetadata::Array(array) => {
                if array.ndim() > 1 || array.size() == 0 {
                    return Err(error::Error::new(
                        ErrorKind::Shape,
                        op,
                        format!("metadata {key:?} has shape {:?}, wanted a number or a filled list", array.shape()),
                    ));
                }
                let array = crate::ops::contiguous(array, false)?;
                array.eval()?;
                // SAFETY: C copies the key and takes its own reference.
                ffi::check(op, || unsafe { sys::mlx_io_gguf_set_metadata_array(self.0, c_key.as_ptr(), array.raw()) })
            }
            GgufMetadata::String(text) => {
                let text = ffi::c_string(op, text)?;
                // SAFETY: C copies both texts.
                ffi::check(op, || unsafe {
                    sys::mlx_io_gguf_set_metadata_string(self.0, c_key.as_ptr(), text.as_ptr())
                })
            }
            GgufMetadata::Strings(texts) => {
                let texts = StringVector::from_slice(op, texts)?;
                // SAFETY: C copies the key and the texts.
                ffi::check(op, || unsafe {
                    sys::mlx_io_gguf_set_metadata_vector_string(self.0, c_key.as_ptr(), texts.raw())
                })
            }
        }
    }
}

impl Drop for Gguf {
    fn drop(&mut self) {
        // SAFETY: this value owns the object.
        unsafe { sys::mlx_io_gguf_free(self.0) };
    }
}
