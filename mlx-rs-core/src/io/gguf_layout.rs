//! The layout of a GGUF file, checked before MLX sees it.
//!
//! MLX's reader maps the file and trusts much of what it says: a wrong count ends the process, and a file that stops
//! within its tensors reads as one without any. Everything it relies on is checked here: magic and version, lengths,
//! value types, the tensor table, and that each tensor lies within the file. The keys are collected on the way, because
//! mlx-c cannot list them.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::{BufReader, Read};
use std::path::Path;

use super::{failed, open};
use crate::error::{Error, Result};

const OP: &str = "load_gguf";
const STRING: u32 = 8;
const ARRAY: u32 = 9;
/// As many dimensions as MLX's reader has room for.
const MAX_DIMENSIONS: u32 = 8;

/// What is in the file.
pub(super) struct Layout {
    pub keys: Vec<String>,
    pub tensors: Vec<Tensor>,
}

/// One row of the tensor table.
pub(super) struct Tensor {
    pub name: String,
    /// Dimensions as in the file: the fastest one first.
    pub dims: Vec<u64>,
    pub kind: u32,
    /// Where the data starts, from the start of the file.
    pub start: u64,
    pub bytes: u64,
}

pub(super) const BF16: u32 = 30;

/// Elements and bytes of a block, for the tensor types that MLX reads.
fn block(kind: u32) -> Option<(u64, u64)> {
    Some(match kind {
        0 | 26 => (1, 4),
        1 | 25 | BF16 => (1, 2),
        24 => (1, 1),
        2 => (32, 18),
        3 => (32, 20),
        8 => (32, 34),
        10 => (256, 84),
        12 => (256, 144),
        14 => (256, 210),
        _ => return None,
    })
}

/// Bytes of a metadata value of a fixed size.
fn value_size(kind: u32) -> Option<u64> {
    match kind {
        0 | 1 | 7 => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}

/// Reads and checks everything before the tensor data of `path`.
pub(super) fn read(path: &Path) -> Result<Layout> {
    let (file, len) = open(OP, path)?;
    let mut cursor = Cursor { reader: BufReader::new(file), at: 0, len, path };
    let magic = cursor.bytes::<4>("magic")?;
    if &magic != b"GGUF" {
        return Err(cursor.wrong(format!("the file starts with {magic:?}, wanted \"GGUF\"")));
    }
    let version = cursor.u32("version")?;
    if !matches!(version, 2 | 3) {
        return Err(cursor.wrong(format!("version {version}, wanted 2 or 3")));
    }
    let (tensor_count, key_count) = (cursor.u64("tensor count")?, cursor.u64("key count")?);
    // The smallest entry of either table has 13 bytes or more, so a larger count cannot be right.
    if tensor_count.max(key_count) > len / 13 {
        return Err(cursor.wrong(format!("{tensor_count} tensors and {key_count} keys do not fit into {len} bytes")));
    }
    let (keys, alignment) = read_keys(&mut cursor, key_count)?;
    let tensors = read_tensors(&mut cursor, tensor_count, alignment)?;
    Ok(Layout { keys, tensors })
}

fn read_keys(cursor: &mut Cursor<'_>, count: u64) -> Result<(Vec<String>, u64)> {
    let (mut keys, mut seen, mut alignment) = (Vec::new(), BTreeSet::new(), 32);
    for _ in 0..count {
        let key = cursor.string("key")?;
        let kind = cursor.u32(&key)?;
        if key == "general.alignment" {
            if kind != 4 {
                return Err(cursor.wrong(format!("`general.alignment` has value type {kind}, wanted 4 (uint32)")));
            }
            alignment = u64::from(cursor.u32(&key)?);
            if alignment < 8 || !alignment.is_power_of_two() {
                return Err(
                    cursor.wrong(format!("`general.alignment` is {alignment}, wanted a power of two from 8 on"))
                );
            }
        } else {
            skip_value(cursor, &key, kind)?;
        }
        if !seen.insert(key.clone()) {
            return Err(cursor.wrong(format!("two keys are named {key:?}")));
        }
        keys.push(key);
    }
    Ok((keys, alignment))
}

fn skip_value(cursor: &mut Cursor<'_>, key: &str, kind: u32) -> Result<()> {
    if let Some(size) = value_size(kind) {
        return cursor.skip(size, key);
    }
    match kind {
        STRING => cursor.skip_string(key),
        ARRAY => {
            let (element, count) = (cursor.u32(key)?, cursor.u64(key)?);
            match value_size(element) {
                Some(size) => {
                    let bytes = count.checked_mul(size).ok_or_else(|| cursor.wrong(format!("{key}: too long")))?;
                    cursor.skip(bytes, key)
                }
                None if element == STRING => (0..count).try_for_each(|_| cursor.skip_string(key)),
                None => Err(cursor.wrong(format!("{key}: array of value type {element}, wanted numbers or strings"))),
            }
        }
        _ => Err(cursor.wrong(format!("{key}: unknown value type {kind}"))),
    }
}

fn read_tensors(cursor: &mut Cursor<'_>, count: u64, alignment: u64) -> Result<Vec<Tensor>> {
    let (mut tensors, mut seen) = (Vec::new(), BTreeSet::new());
    for _ in 0..count {
        let tensor = read_tensor(cursor)?;
        if !seen.insert(tensor.name.clone()) {
            return Err(cursor.wrong(format!("two tensors are named {:?}", tensor.name)));
        }
        tensors.push(tensor);
    }
    let data = cursor.at.next_multiple_of(alignment);
    for tensor in &mut tensors {
        let Tensor { name, start: offset, bytes, .. } = &*tensor;
        if !offset.is_multiple_of(alignment) {
            return Err(cursor.wrong(format!("{name}: offset {offset} is no multiple of the alignment {alignment}")));
        }
        let start = data.checked_add(*offset);
        let end = start.and_then(|start| start.checked_add(*bytes));
        match (start, end) {
            (Some(start), Some(end)) if end <= cursor.len => tensor.start = start,
            _ => {
                let missing = end.map_or(u64::MAX, |end| end - cursor.len);
                return Err(cursor.wrong(format!(
                    "tensor {name} needs {bytes} bytes, but the file of {} bytes ends {missing} bytes too early",
                    cursor.len
                )));
            }
        }
    }
    Ok(tensors)
}

fn read_tensor(cursor: &mut Cursor<'_>) -> Result<Tensor> {
    let name = cursor.string("tensor name")?;
    let ndim = cursor.u32(&name)?;
    if ndim > MAX_DIMENSIONS {
        return Err(cursor.wrong(format!("{name}: {ndim} dimensions, wanted at most {MAX_DIMENSIONS}")));
    }
    let dims = (0..ndim).map(|_| cursor.u64(&name)).collect::<Result<Vec<u64>>>()?;
    let (kind, offset) = (cursor.u32(&name)?, cursor.u64(&name)?);
    let (elements, size) =
        block(kind).ok_or_else(|| cursor.wrong(format!("{name}: tensor type {kind}, which MLX does not read")))?;
    if let Some(dim) = dims.iter().find(|&&dim| dim > i32::MAX as u64) {
        return Err(cursor.wrong(format!("{name}: dimension {dim} is larger than MLX can count")));
    }
    let row = dims.first().copied().unwrap_or(1);
    if !row.is_multiple_of(elements) {
        return Err(cursor.wrong(format!("{name}: rows of {row} are no whole blocks of {elements}")));
    }
    // Rows first: the first dimension is whole blocks, the others only repeat it.
    let bytes = dims.iter().skip(1).try_fold(row / elements * size, |bytes, &dim| bytes.checked_mul(dim));
    let bytes = bytes.ok_or_else(|| cursor.wrong(format!("{name}: shape {dims:?} is larger than any file")))?;
    Ok(Tensor { name, dims, kind, start: offset, bytes })
}

/// A reader that knows where it is and never reads or allocates past the end.
struct Cursor<'a> {
    reader: BufReader<std::fs::File>,
    at: u64,
    len: u64,
    path: &'a Path,
}

impl Cursor<'_> {
    fn wrong(&self, reason: impl Display) -> Error {
        failed(OP, self.path, reason)
    }

    fn require(&self, bytes: u64, what: &str) -> Result<()> {
        let left = self.len - self.at;
        if bytes <= left {
            return Ok(());
        }
        Err(self
            .wrong(format!("the file ends within {what:?}: {bytes} bytes wanted at byte {}, {left} are left", self.at)))
    }

    fn bytes<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        self.require(N as u64, what)?;
        let mut bytes = [0; N];
        self.reader.read_exact(&mut bytes).map_err(|error| failed(OP, self.path, error))?;
        self.at += N as u64;
        Ok(bytes)
    }

    fn u32(&mut self, what: &str) -> Result<u32> {
        Ok(u32::from_le_bytes(self.bytes(what)?))
    }

    fn u64(&mut self, what: &str) -> Result<u64> {
        Ok(u64::from_le_bytes(self.bytes(what)?))
    }

    fn string(&mut self, what: &str) -> Result<String> {
        let len = self.u64(what)?;
        self.require(len, what)?;
        let mut bytes = vec![0; len as usize];
        self.reader.read_exact(&mut bytes).map_err(|error| failed(OP, self.path, error))?;
        self.at += len;
        let text = String::from_utf8(bytes).map_err(|error| self.wrong(format!("{what}: {error}")))?;
        if text.contains('\0') {
            return Err(self.wrong(format!("{what} {text:?} contains a NUL byte")));
        }
        Ok(text)
    }

    fn skip_string(&mut self, what: &str) -> Result<()> {
        let len = self.u64(what)?;
        self.skip(len, what)
    }

    fn skip(&mut self, bytes: u64, what: &str) -> Result<()> {
        self.require(bytes, what)?;
        // Within the file, so the distance fits: no file is longer than i64 can say.
        self.reader.seek_relative(bytes as i64).map_err(|error| failed(OP, self.path, error))?;
        self.at += bytes;
        Ok(())
    }
}
