//! The front of a GGUF file: version, metadata, tensor table. Nothing is mapped and nothing is trusted: every count
//! and offset is checked against the file's length before memory is taken for it.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::types::GgmlType;
use super::value::{MetaArray, MetaValue};
use crate::error::{ModelError, Result};

/// Arrays inside arrays deeper than this are refused; no writer nests at all today.
const MAX_NESTING: usize = 4;
/// At most so many items are reserved ahead; longer arrays grow as their bytes are really read.
const MAX_RESERVE: u64 = 1 << 16;

/// The metadata and tensor table of a GGUF file.
#[derive(Debug, Clone)]
pub struct GgufFile {
    path: PathBuf,
    version: u32,
    metadata: Vec<(String, MetaValue)>,
    keys: HashMap<String, usize>,
    tensors: Vec<TensorInfo>,
    names: HashMap<String, usize>,
}

/// One row of the tensor table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    /// llama.cpp's name.
    pub name: String,
    /// Row-major shape, `[out, in]` for a matrix (the file stores it reversed).
    pub shape: Vec<usize>,
    /// Element type.
    pub kind: GgmlType,
    /// Position of the first byte in the file.
    pub start: u64,
    /// Length in bytes; zero for a type of unknown size.
    pub bytes: u64,
}

impl TensorInfo {
    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }
}

impl GgufFile {
    /// Reads the metadata and tensor table of the file at `path`, and checks that all tensors lie inside the file.
    ///
    /// # Errors
    /// Unreadable file, bad magic, unsupported version, counts that the file cannot hold, broken strings, unknown
    /// value types, doubled keys or tensors, misaligned or cut-off tensors.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|error| ModelError::io("read", path, error))?;
        let length = file.metadata().map_err(|error| ModelError::io("read", path, error))?.len();
        let mut cursor = Cursor { path, inner: BufReader::with_capacity(1 << 18, file), position: 0, length };
        let version = read_version(&mut cursor)?;
        let tensor_count = cursor.count("the tensor count", 24)?;
        let key_count = cursor.count("the metadata count", 13)?;
        let mut gguf = Self {
            path: path.to_owned(),
            version,
            metadata: Vec::new(),
            keys: HashMap::new(),
            tensors: Vec::new(),
            names: HashMap::new(),
        };
        for _ in 0..key_count {
            gguf.read_pair(&mut cursor)?;
        }
        let alignment = gguf.alignment()?;
        for index in 0..tensor_count {
            gguf.read_tensor_row(&mut cursor, index)?;
        }
        let data_start = cursor.position.next_multiple_of(alignment);
        gguf.place_tensors(data_start, alignment, length)?;
        Ok(gguf)
    }

    /// The file this was read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Format version, 2 or 3.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// All metadata in file order.
    pub fn metadata(&self) -> &[(String, MetaValue)] {
        &self.metadata
    }

    /// All tensors in file order.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// The tensor of that llama.cpp name.
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.names.get(name).map(|&index| &self.tensors[index])
    }

    /// The metadata value of that key.
    pub fn get(&self, key: &str) -> Option<&MetaValue> {
        self.keys.get(key).map(|&index| &self.metadata[index].1)
    }

    /// Text under `key`; an error when the key holds something else.
    pub fn text(&self, key: &str) -> Result<Option<&str>> {
        match self.get(key) {
            None => Ok(None),
            Some(MetaValue::Str(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong_value(key, other, "a string")),
        }
    }

    /// A non-negative integer under `key`.
    pub fn count(&self, key: &str) -> Result<Option<usize>> {
        let wanted = "a non-negative integer";
        match self.get(key) {
            None => Ok(None),
            Some(value @ MetaValue::Uint(number)) => {
                usize::try_from(*number).map(Some).map_err(|_| self.wrong_value(key, value, wanted))
            }
            Some(value @ MetaValue::Int(number)) => {
                usize::try_from(*number).map(Some).map_err(|_| self.wrong_value(key, value, wanted))
            }
            Some(other) => Err(self.wrong_value(key, other, wanted)),
        }
    }

    /// A token id under `key`.
    pub fn token_id(&self, key: &str) -> Result<Option<u32>> {
        self.count(key)?
            .map(|id| {
                u32::try_from(id).map_err(|_| self.wrong_value(key, &MetaValue::Uint(id as u64), "a 32-bit token id"))
            })
            .transpose()
    }

    /// A number under `key`. An f32 becomes the f64 of its shortest decimal form (1e-5 rather than 9.99…e-6).
    pub fn number(&self, key: &str) -> Result<Option<f64>> {
        match self.get(key) {
            None => Ok(None),
            Some(MetaValue::F32(number)) => Ok(Some(number.to_string().parse().unwrap_or(f64::from(*number)))),
            Some(MetaValue::F64(number)) => Ok(Some(*number)),
            Some(MetaValue::Uint(number)) => Ok(Some(*number as f64)),
            Some(MetaValue::Int(number)) => Ok(Some(*number as f64)),
            Some(other) => Err(self.wrong_value(key, other, "a number")),
        }
    }

    /// A boolean under `key`.
    pub fn flag(&self, key: &str) -> Result<Option<bool>> {
        match self.get(key) {
            None => Ok(None),
            Some(MetaValue::Bool(flag)) => Ok(Some(*flag)),
            Some(other) => Err(self.wrong_value(key, other, "a boolean")),
        }
    }

    /// An array of texts under `key`.
    pub fn texts(&self, key: &str) -> Result<Option<&[String]>> {
        match self.get(key) {
            None => Ok(None),
            Some(MetaValue::Array(MetaArray::Str(items))) => Ok(Some(items)),
            Some(other) => Err(self.wrong_value(key, other, "an array of strings")),
        }
    }

    /// An array of integers under `key`.
    pub fn integers(&self, key: &str) -> Result<Option<Vec<i64>>> {
        let wanted = "an array of integers";
        match self.get(key) {
            None => Ok(None),
            Some(MetaValue::Array(MetaArray::Int(items))) => Ok(Some(items.clone())),
            Some(value @ MetaValue::Array(MetaArray::Uint(items))) => items
                .iter()
                .map(|&item| i64::try_from(item).map_err(|_| self.wrong_value(key, value, wanted)))
                .collect::<Result<Vec<_>>>()
                .map(Some),
            Some(other) => Err(self.wrong_value(key, other, wanted)),
        }
    }

    /// An array of f32 under `key`.
    pub fn floats(&self, key: &str) -> Result<Option<&[f32]>> {
        match self.get(key) {
            None => Ok(None),
            Some(MetaValue::Array(MetaArray::F32(items))) => Ok(Some(items)),
            Some(other) => Err(self.wrong_value(key, other, "an array of 32-bit floats")),
        }
    }

    fn wrong_value(&self, key: &str, value: &MetaValue, wanted: &str) -> ModelError {
        ModelError::gguf(&self.path, format!("metadata `{key}`"), value.describe(), wanted)
    }

    fn read_pair(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        let key = cursor.text("a metadata key")?;
        let place = format!("metadata `{key}`");
        let kind = cursor.u32(&place)?;
        let value = read_value(cursor, kind, &place)?;
        if self.keys.insert(key.clone(), self.metadata.len()).is_some() {
            return Err(ModelError::gguf(&self.path, place, "the key twice", "every key once"));
        }
        self.metadata.push((key, value));
        Ok(())
    }

    fn alignment(&self) -> Result<u64> {
        let key = "general.alignment";
        let alignment = self.count(key)?.unwrap_or(32) as u64;
        if alignment == 0 || !alignment.is_multiple_of(8) || alignment > 1 << 20 {
            let place = format!("metadata `{key}`");
            return Err(ModelError::gguf(&self.path, place, alignment.to_string(), "a multiple of 8 up to 1 MiB"));
        }
        Ok(alignment)
    }

    fn read_tensor_row(&mut self, cursor: &mut Cursor<'_>, index: u64) -> Result<()> {
        let name = cursor.text(&format!("the name of tensor {index}"))?;
        let dims = cursor.u32(&name)?;
        if !(1..=4).contains(&dims) {
            return Err(ModelError::tensor(&self.path, name, format!("{dims} dimensions"), "1 to 4 dimensions"));
        }
        let mut shape = Vec::with_capacity(dims as usize);
        for _ in 0..dims {
            let size = cursor.u64(&name)?;
            shape.push(usize::try_from(size).map_err(|_| {
                ModelError::tensor(&self.path, name.as_str(), format!("a dimension of {size}"), "a size in memory")
            })?);
        }
        shape.reverse();
        let kind = GgmlType::from_id(cursor.u32(&name)?);
        let start = cursor.u64(&name)?;
        if self.names.insert(name.clone(), self.tensors.len()).is_some() {
            return Err(ModelError::tensor(&self.path, name, "the tensor twice in the table", "every tensor once"));
        }
        self.tensors.push(TensorInfo { name, shape, kind, start, bytes: 0 });
        Ok(())
    }

    /// Turns relative offsets into file positions and checks each tensor against the file's length.
    fn place_tensors(&mut self, data_start: u64, alignment: u64, length: u64) -> Result<()> {
        let path = &self.path;
        for tensor in &mut self.tensors {
            let fail = |got: String, wanted: &str| ModelError::tensor(path, tensor.name.as_str(), got, wanted);
            if !tensor.start.is_multiple_of(alignment) {
                return Err(fail(format!("offset {}", tensor.start), &format!("a multiple of {alignment}")));
            }
            let bytes = tensor_bytes(tensor).map_err(|(got, wanted)| fail(got, wanted))?;
            let end = data_start.checked_add(tensor.start).and_then(|start| start.checked_add(bytes));
            match end {
                Some(end) if end <= length => {
                    tensor.start += data_start;
                    tensor.bytes = bytes;
                }
                Some(end) => {
                    let got = format!("a file of {length} bytes, {} bytes missing", end - length);
                    return Err(fail(got, &format!("{end} bytes")).with_hint("the file is cut off: fetch it again"));
                }
                None => return Err(fail(format!("offset {}", tensor.start), "an offset inside the file")),
            }
        }
        Ok(())
    }
}

/// Bytes of a tensor from its shape and type; the error is what was found and what was wanted.
fn tensor_bytes(tensor: &TensorInfo) -> std::result::Result<u64, (String, &'static str)> {
    let Some((block, block_bytes)) = tensor.kind.block() else { return Ok(0) };
    let row = tensor.shape.last().copied().unwrap_or(1) as u64;
    if !row.is_multiple_of(block) {
        return Err((format!("rows of {row} elements of {}", tensor.kind), "rows of whole blocks"));
    }
    tensor
        .shape
        .iter()
        .try_fold(1u64, |product, &size| product.checked_mul(size as u64))
        .and_then(|elements| (elements / block).checked_mul(block_bytes))
        .ok_or_else(|| (format!("shape {:?}", tensor.shape), "a tensor that fits in memory"))
}

fn read_version(cursor: &mut Cursor<'_>) -> Result<u32> {
    let magic = cursor.array::<4>("the magic")?;
    if &magic != b"GGUF" {
        let got = format!("the bytes {:?}", String::from_utf8_lossy(&magic));
        return Err(ModelError::gguf(cursor.path, "the first four bytes", got, "GGUF"));
    }
    let version = cursor.u32("the version")?;
    match version {
        2 | 3 => Ok(version),
        swapped if swapped.swap_bytes() <= 3 => {
            Err(ModelError::gguf(cursor.path, "version", "a big-endian file", "a little-endian file"))
        }
        other => Err(ModelError::gguf(cursor.path, "version", other.to_string(), "version 2 or 3")
            .with_hint("convert the file with a current llama.cpp")),
    }
}

fn read_value(cursor: &mut Cursor<'_>, kind: u32, place: &str) -> Result<MetaValue> {
    Ok(match kind {
        0 => MetaValue::Uint(cursor.array::<1>(place)?[0].into()),
        1 => MetaValue::Int(i8::from_le_bytes(cursor.array(place)?).into()),
        2 => MetaValue::Uint(u16::from_le_bytes(cursor.array(place)?).into()),
        3 => MetaValue::Int(i16::from_le_bytes(cursor.array(place)?).into()),
        4 => MetaValue::Uint(u32::from_le_bytes(cursor.array(place)?).into()),
        5 => MetaValue::Int(i32::from_le_bytes(cursor.array(place)?).into()),
        6 => MetaValue::F32(f32::from_le_bytes(cursor.array(place)?)),
        7 => MetaValue::Bool(cursor.flag(place)?),
        8 => MetaValue::Str(cursor.text(place)?),
        9 => MetaValue::Array(read_array(cursor, place, 0)?),
        10 => MetaValue::Uint(u64::from_le_bytes(cursor.array(place)?)),
        11 => MetaValue::Int(i64::from_le_bytes(cursor.array(place)?)),
        12 => MetaValue::F64(f64::from_le_bytes(cursor.array(place)?)),
        other => return Err(unknown_kind(cursor, other, place)),
    })
}

fn read_array(cursor: &mut Cursor<'_>, place: &str, depth: usize) -> Result<MetaArray> {
    if depth >= MAX_NESTING {
        let wanted = format!("at most {MAX_NESTING} levels");
        return Err(ModelError::gguf(cursor.path, place, "arrays nested deeper", wanted));
    }
    let kind = cursor.u32(place)?;
    let smallest = match kind {
        0 | 1 | 7 => 1,
        2 | 3 => 2,
        4..=6 => 4,
        8 | 10..=12 => 8,
        9 => 12,
        other => return Err(unknown_kind(cursor, other, place)),
    };
    let count = cursor.count(place, smallest)?;
    Ok(match kind {
        0 => MetaArray::Uint(cursor.items(count, |c| Ok(c.array::<1>(place)?[0].into()))?),
        1 => MetaArray::Int(cursor.items(count, |c| Ok(i8::from_le_bytes(c.array(place)?).into()))?),
        2 => MetaArray::Uint(cursor.items(count, |c| Ok(u16::from_le_bytes(c.array(place)?).into()))?),
        3 => MetaArray::Int(cursor.items(count, |c| Ok(i16::from_le_bytes(c.array(place)?).into()))?),
        4 => MetaArray::Uint(cursor.items(count, |c| Ok(u32::from_le_bytes(c.array(place)?).into()))?),
        5 => MetaArray::Int(cursor.items(count, |c| Ok(i32::from_le_bytes(c.array(place)?).into()))?),
        6 => MetaArray::F32(cursor.items(count, |c| Ok(f32::from_le_bytes(c.array(place)?)))?),
        7 => MetaArray::Bool(cursor.items(count, |c| c.flag(place))?),
        8 => MetaArray::Str(cursor.items(count, |c| c.text(place))?),
        10 => MetaArray::Uint(cursor.items(count, |c| Ok(u64::from_le_bytes(c.array(place)?)))?),
        11 => MetaArray::Int(cursor.items(count, |c| Ok(i64::from_le_bytes(c.array(place)?)))?),
        12 => MetaArray::F64(cursor.items(count, |c| Ok(f64::from_le_bytes(c.array(place)?)))?),
        _ => MetaArray::Nested(cursor.items(count, |c| read_array(c, place, depth + 1))?),
    })
}

fn unknown_kind(cursor: &Cursor<'_>, kind: u32, place: &str) -> ModelError {
    ModelError::gguf(cursor.path, place, format!("value type {kind}"), "a value type from 0 to 12")
}

/// A reader that knows how many bytes the file still has.
struct Cursor<'p> {
    path: &'p Path,
    inner: BufReader<File>,
    position: u64,
    length: u64,
}

impl Cursor<'_> {
    fn need(&self, bytes: u64, place: &str) -> Result<()> {
        let left = self.length - self.position;
        if bytes <= left {
            return Ok(());
        }
        let got = format!("the end of the file at byte {}, {} bytes missing", self.length, bytes - left);
        Err(ModelError::gguf(self.path, place, got, format!("{bytes} bytes at byte {}", self.position))
            .with_hint("the file is cut off or damaged: fetch it again"))
    }

    fn fill(&mut self, buffer: &mut [u8], place: &str) -> Result<()> {
        self.need(buffer.len() as u64, place)?;
        self.inner.read_exact(buffer).map_err(|error| ModelError::io("read", self.path, error))?;
        self.position += buffer.len() as u64;
        Ok(())
    }

    fn array<const N: usize>(&mut self, place: &str) -> Result<[u8; N]> {
        let mut buffer = [0; N];
        self.fill(&mut buffer, place)?;
        Ok(buffer)
    }

    fn u32(&mut self, place: &str) -> Result<u32> {
        self.array(place).map(u32::from_le_bytes)
    }

    fn u64(&mut self, place: &str) -> Result<u64> {
        self.array(place).map(u64::from_le_bytes)
    }

    fn flag(&mut self, place: &str) -> Result<bool> {
        match self.array::<1>(place)?[0] {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(ModelError::gguf(self.path, place, format!("the byte {other}"), "a boolean, 0 or 1")),
        }
    }

    fn text(&mut self, place: &str) -> Result<String> {
        let length = self.u64(place)?;
        self.need(length, place)?;
        let mut bytes = vec![0; length as usize];
        self.fill(&mut bytes, place)?;
        String::from_utf8(bytes).map_err(|error| {
            let got = format!("invalid UTF-8 at byte {} of the text", error.utf8_error().valid_up_to());
            ModelError::gguf(self.path, place, got, "UTF-8")
        })
    }

    /// A count of things that take at least `smallest` bytes each, refused when the file cannot hold them.
    fn count(&mut self, place: &str, smallest: u64) -> Result<u64> {
        let count = self.u64(place)?;
        let left = self.length - self.position;
        if count > left / smallest {
            let got = format!("a count of {count}");
            let wanted = format!("at most {}, all that the remaining {left} bytes can hold", left / smallest);
            return Err(ModelError::gguf(self.path, place, got, wanted));
        }
        Ok(count)
    }

    fn items<T>(&mut self, count: u64, mut read: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = Vec::with_capacity(count.min(MAX_RESERVE) as usize);
        for _ in 0..count {
            items.push(read(self)?);
        }
        Ok(items)
    }
}

/// Reads the bytes of one tensor.
pub(super) fn tensor_data(file: &GgufFile, tensor: &TensorInfo) -> Result<Vec<u8>> {
    let fail = |error| ModelError::io("read", &file.path, error);
    let mut reader = File::open(&file.path).map_err(fail)?;
    reader.seek(SeekFrom::Start(tensor.start)).map_err(fail)?;
    // The length was checked when the table was read; the file may have shrunk since, which read_exact reports.
    let mut bytes = vec![0; tensor.bytes as usize];
    reader.read_exact(&mut bytes).map_err(fail)?;
    Ok(bytes)
}
