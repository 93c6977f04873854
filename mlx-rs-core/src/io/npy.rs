//! npy files: one array per file. Read and written here, because MLX's reader takes what is missing from a short file
//! out of unset memory, in silence.
//!
//! The format: the magic `\x93NUMPY`, two version bytes, the length of a header (16 bits in version 1, else 32), the
//! header (a Python dict with `descr`, `fortran_order` and `shape`), then the elements.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use super::{failed, on_cpu, open};
use crate::array::{Array, element_count};
use crate::element::Dtype;
use crate::error::Result;
use crate::ops;

/// A header of more bytes than this is no header of an array.
const MAX_HEADER: usize = 1 << 16;

/// Reads the array of an npy file. bfloat16, which the format does not have, is read from `V2` as MLX writes it.
///
/// # Errors
/// A file that is missing, cut short or no npy file, big-endian elements, or an element type that MLX does not have.
pub fn load(path: impl AsRef<Path>) -> Result<Array> {
    const OP: &str = "load";
    let path = path.as_ref();
    let (mut file, len) = open(OP, path)?;
    let mut start = [0; 8];
    read_exact(OP, path, &mut file, &mut start, "magic")?;
    if &start[..6] != b"\x93NUMPY" {
        return Err(failed(OP, path, "the file does not start with the magic of an npy file"));
    }
    let width = if start[6] == 1 { 2 } else { 4 };
    let mut size = [0; 4];
    read_exact(OP, path, &mut file, &mut size[..width], "header length")?;
    let header_len = u32::from_le_bytes(size) as usize;
    if header_len > MAX_HEADER {
        return Err(failed(OP, path, format!("a header of {header_len} bytes, wanted at most {MAX_HEADER}")));
    }
    let mut header = vec![0; header_len];
    read_exact(OP, path, &mut file, &mut header, "header")?;
    let header = String::from_utf8_lossy(&header);
    let Header { dtype, fortran_order, mut shape } =
        Header::parse(&header).map_err(|reason| failed(OP, path, format!("{reason} in the header {header:?}")))?;

    let wanted = element_count(OP, &shape)?.checked_mul(dtype.size());
    let found = len - (8 + width + header_len) as u64;
    if wanted.map(|wanted| wanted as u64) != Some(found) {
        let wanted = wanted.unwrap_or(usize::MAX);
        return Err(failed(OP, path, format!("{found} bytes of elements, but {shape:?} {dtype} has {wanted}")));
    }
    let mut bytes = vec![0; found as usize];
    read_exact(OP, path, &mut file, &mut bytes, "elements")?;
    if !fortran_order {
        return Array::from_bytes(&bytes, &shape, dtype);
    }
    shape.reverse();
    let reversed = Array::from_bytes(&bytes, &shape, dtype)?;
    on_cpu(|| ops::transpose(&reversed, None))
}

/// Writes one array as an npy file of exactly that name; a file that is there is replaced.
///
/// # Errors
/// An array that cannot be computed, or a file that cannot be written.
pub fn save(path: impl AsRef<Path>, array: &Array) -> Result<()> {
    const OP: &str = "save";
    let path = path.as_ref();
    let bytes = on_cpu(|| array.to_bytes())?;
    let shape: String = array.shape().iter().map(|dim| format!("{dim}, ")).collect();
    let mut header = format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({shape}), }}", descr(array.dtype()));
    // The elements start at a multiple of 64, after 10 bytes in front and the line end.
    let padded = (10 + header.len() + 1).next_multiple_of(64) - 11;
    header = format!("{header:padded$}\n");
    let mut file = File::create(path).map_err(|error| failed(OP, path, error))?;
    let write = |file: &mut File| {
        file.write_all(b"\x93NUMPY\x01\x00")?;
        // A header has some 60 bytes and a dozen more per dimension.
        file.write_all(&(header.len() as u16).to_le_bytes())?;
        file.write_all(header.as_bytes())?;
        file.write_all(&bytes)
    };
    write(&mut file).map_err(|error| failed(OP, path, error))
}

fn read_exact(op: &'static str, path: &Path, file: &mut File, into: &mut [u8], what: &str) -> Result<()> {
    file.read_exact(into).map_err(|error| failed(op, path, format!("the file ends within its {what} ({error})")))
}

fn descr(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::Bool => "|b1",
        Dtype::Uint8 => "|u1",
        Dtype::Uint16 => "<u2",
        Dtype::Uint32 => "<u4",
        Dtype::Uint64 => "<u8",
        Dtype::Int8 => "|i1",
        Dtype::Int16 => "<i2",
        Dtype::Int32 => "<i4",
        Dtype::Int64 => "<i8",
        Dtype::Float16 => "<f2",
        Dtype::Float32 => "<f4",
        Dtype::Float64 => "<f8",
        Dtype::Bfloat16 => "<V2",
        Dtype::Complex64 => "<c8",
    }
}

struct Header {
    dtype: Dtype,
    fortran_order: bool,
    shape: Vec<i32>,
}

impl Header {
    fn parse(text: &str) -> std::result::Result<Self, String> {
        let value = |key: &str| {
            let (_, after) = text.split_once(&format!("'{key}':")).ok_or_else(|| format!("no `{key}`"))?;
            Ok::<_, String>(after.trim_start())
        };
        let found = value("descr")?;
        let found = found
            .strip_prefix('\'')
            .and_then(|after| after.split_once('\''))
            .map(|(descr, _)| descr)
            .ok_or("`descr` is no text")?;
        let dtype = Dtype::ALL
            .into_iter()
            // One byte has no order, so `|`, `<`, `=` and none are alike; `>` on wider elements is not supported.
            .find(|&dtype| descr(dtype)[1..] == *found.trim_start_matches(['|', '<', '=']))
            .ok_or_else(|| format!("element type {found:?}, which MLX does not have"))?;
        let order = value("fortran_order")?;
        let fortran_order = if order.starts_with("True") {
            true
        } else if order.starts_with("False") {
            false
        } else {
            return Err("`fortran_order` is neither True nor False".to_owned());
        };
        let dims = value("shape")?
            .strip_prefix('(')
            .and_then(|after| after.split_once(')'))
            .map(|(dims, _)| dims)
            .ok_or("`shape` is no tuple")?;
        let shape = dims
            .split(',')
            .map(str::trim)
            .filter(|dim| !dim.is_empty())
            .map(|dim| dim.parse::<i32>().ok().filter(|dim| *dim >= 0).ok_or(format!("dimension {dim:?}")))
            .collect::<std::result::Result<Vec<i32>, String>>()?;
        Ok(Self { dtype, fortran_order, shape })
    }
}
