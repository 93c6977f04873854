//! Safetensors files, by MLX's own reader and writer.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::path::Path;

use mlx_sys as sys;

use super::{at_path, c_path, dense, failed, on_cpu, open, writer};
use crate::array::Array;
use crate::error::{self, Result};
use crate::{device, ffi};

/// Reads the header of a safetensors file: its arrays, which are read when they are evaluated, and its metadata.
///
/// # Errors
/// A file that is missing, cut short or no safetensors file, or a dtype that MLX does not know.
pub fn load_safetensors(path: impl AsRef<Path>) -> Result<(BTreeMap<String, Array>, BTreeMap<String, String>)> {
    const OP: &str = "load_safetensors";
    let path = path.as_ref();
    open(OP, path)?;
    let c_path = c_path(OP, path)?;
    let stream = device::cpu_stream()?;
    let (mut arrays, mut texts) = (ArrayMap::new(), TextMap::new());
    // SAFETY: all handles and the path live through the call.
    ffi::check(OP, || unsafe { sys::mlx_load_safetensors(&mut arrays.0, &mut texts.0, c_path.as_ptr(), stream.raw()) })
        .map_err(|error| at_path(path, error))?;
    Ok((arrays.read(OP, path)?, texts.read(OP, path)?))
}

/// Writes `arrays` and `metadata` to exactly `path`. Without metadata, `format` is `mlx`.
///
/// A file that is there is replaced. After an error the file is incomplete: to keep an old one, write beside it and
/// rename.
///
/// # Errors
/// Metadata without the key `format` (other readers refuse such files), two arrays of one name, an array that cannot be
/// computed, or a file that cannot be written.
pub fn save_safetensors<'a, K: AsRef<str>>(
    path: impl AsRef<Path>,
    arrays: impl IntoIterator<Item = (K, &'a Array)>,
    metadata: Option<&BTreeMap<String, String>>,
) -> Result<()> {
    const OP: &str = "save_safetensors";
    let path = path.as_ref();
    let texts = TextMap::new();
    match metadata {
        None => texts.insert(OP, "format", "mlx")?,
        Some(metadata) if !metadata.contains_key("format") => {
            return Err(failed(OP, path, "the metadata has no `format`, wanted for example `format = \"mlx\"`"));
        }
        Some(metadata) => metadata.iter().try_for_each(|(key, value)| texts.insert(OP, key, value))?,
    }
    on_cpu(|| {
        let named = dense(OP, path, arrays)?;
        // Computed before the file is created, so that a failing graph leaves an old file alone.
        crate::transforms::eval(named.values())?;
        let map = ArrayMap::new();
        named.iter().try_for_each(|(name, array)| map.insert(OP, name, array))?;
        // SAFETY: the maps live through the call.
        writer::write_file(OP, path, |writer| unsafe { sys::mlx_save_safetensors_writer(writer, map.0, texts.0) })
    })
}

/// Owner of a map from names to arrays.
struct ArrayMap(sys::mlx_map_string_to_array);

impl ArrayMap {
    fn new() -> Self {
        error::install_handler();
        // SAFETY: creates an empty map.
        Self(unsafe { sys::mlx_map_string_to_array_new() })
    }

    fn insert(&self, op: &'static str, name: &str, array: &Array) -> Result<()> {
        let name = ffi::c_string(op, name)?;
        // SAFETY: C copies the name and takes its own reference.
        ffi::check(op, || unsafe { sys::mlx_map_string_to_array_insert(self.0, name.as_ptr(), array.raw()) })
    }

    fn read(&self, op: &'static str, path: &Path) -> Result<BTreeMap<String, Array>> {
        struct Cursor(sys::mlx_map_string_to_array_iterator);
        impl Drop for Cursor {
            fn drop(&mut self) {
                // SAFETY: this value owns the iterator.
                unsafe { sys::mlx_map_string_to_array_iterator_free(self.0) };
            }
        }
        // SAFETY: the map is alive and outlives the iterator.
        let cursor = Cursor(unsafe { sys::mlx_map_string_to_array_iterator_new(self.0) });
        let mut result = BTreeMap::new();
        loop {
            // SAFETY: creates an empty handle.
            let mut array = Array::from_raw(unsafe { sys::mlx_array_new() });
            let mut name = std::ptr::null();
            let mut status = 0;
            ffi::check(op, || {
                // SAFETY: the iterator is alive; the name lives as long as the map.
                status = unsafe { sys::mlx_map_string_to_array_iterator_next(&mut name, array.raw_mut(), cursor.0) };
                // 2 is the end, not a failure.
                if status == 2 { 0 } else { status }
            })?;
            if status == 2 {
                return Ok(result);
            }
            // SAFETY: `name` is NUL-terminated and lives as long as the map.
            let name = unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned();
            if result.contains_key(&name) {
                return Err(failed(op, path, format!("two tensors are named {name:?}")));
            }
            result.insert(name, array);
        }
    }
}

impl Drop for ArrayMap {
    fn drop(&mut self) {
        // SAFETY: this value owns the map.
        unsafe { sys::mlx_map_string_to_array_free(self.0) };
    }
}

/// Owner of a map from names to texts.
struct TextMap(sys::mlx_map_string_to_string);

impl TextMap {
    fn new() -> Self {
        error::install_handler();
        // SAFETY: creates an empty map.
        Self(unsafe { sys::mlx_map_string_to_string_new() })
    }

    fn insert(&self, op: &'static str, key: &str, value: &str) -> Result<()> {
        let (key, value) = (ffi::c_string(op, key)?, ffi::c_string(op, value)?);
        // SAFETY: C copies both texts.
        ffi::check(op, || unsafe { sys::mlx_map_string_to_string_insert(self.0, key.as_ptr(), value.as_ptr()) })
    }

    fn read(&self, op: &'static str, path: &Path) -> Result<BTreeMap<String, String>> {
        struct Cursor(sys::mlx_map_string_to_string_iterator);
        impl Drop for Cursor {
            fn drop(&mut self) {
                // SAFETY: this value owns the iterator.
                unsafe { sys::mlx_map_string_to_string_iterator_free(self.0) };
            }
        }
        // SAFETY: the map is alive and outlives the iterator.
        let cursor = Cursor(unsafe { sys::mlx_map_string_to_string_iterator_new(self.0) });
        let mut result = BTreeMap::new();
        loop {
            let (mut key, mut value) = (std::ptr::null(), std::ptr::null());
            let mut status = 0;
            ffi::check(op, || {
                // SAFETY: the iterator is alive; both texts live as long as the map.
                status = unsafe { sys::mlx_map_string_to_string_iterator_next(&mut key, &mut value, cursor.0) };
                // 2 is the end, not a failure.
                if status == 2 { 0 } else { status }
            })?;
            if status == 2 {
                return Ok(result);
            }
            // SAFETY: C gave two NUL-terminated texts that live as long as the map.
            let (key, value) = unsafe { (CStr::from_ptr(key), CStr::from_ptr(value)) };
            let (key, value) = (key.to_string_lossy().into_owned(), value.to_string_lossy().into_owned());
            if result.contains_key(&key) {
                return Err(failed(op, path, format!("the metadata has {key:?} twice")));
            }
            result.insert(key, value);
        }
    }
}

impl Drop for TextMap {
    fn drop(&mut self) {
        // SAFETY: this value owns the map.
        unsafe { sys::mlx_map_string_to_string_free(self.0) };
    }
}
