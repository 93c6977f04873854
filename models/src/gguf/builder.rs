//! Builds GGUF bytes by hand, for tests.

use std::path::PathBuf;

use tempfile::TempDir;

/// A GGUF file in the making; every part can be set wrong on purpose.
pub(crate) struct Builder {
    pub magic: [u8; 4],
    pub version: u32,
    pub tensor_count: Option<u64>,
    pub key_count: Option<u64>,
    keys: Vec<Vec<u8>>,
    tensors: Vec<Row>,
    alignment: usize,
}

/// A row of the tensor table and the bytes it stands for; sizes with the fastest axis first, as the file has them.
struct Row {
    name: String,
    dims: Vec<u64>,
    kind: u32,
    offset: Option<u64>,
    data: Vec<u8>,
}

pub(crate) fn text(value: &str) -> Vec<u8> {
    [&(value.len() as u64).to_le_bytes()[..], value.as_bytes()].concat()
}

fn array(kind: u32, items: &[Vec<u8>]) -> Vec<u8> {
    [&kind.to_le_bytes()[..], &(items.len() as u64).to_le_bytes(), &items.concat()].concat()
}

impl Builder {
    pub fn new() -> Self {
        Self {
            magic: *b"GGUF",
            version: 3,
            tensor_count: None,
            key_count: None,
            keys: Vec::new(),
            tensors: Vec::new(),
            alignment: 32,
        }
    }

    pub fn raw_key(mut self, key: &str, kind: u32, value: &[u8]) -> Self {
        self.keys.push([&text(key)[..], &kind.to_le_bytes(), value].concat());
        self
    }

    pub fn string(self, key: &str, value: &str) -> Self {
        self.raw_key(key, 8, &text(value))
    }

    pub fn count(self, key: &str, value: u32) -> Self {
        self.raw_key(key, 4, &value.to_le_bytes())
    }

    pub fn number(self, key: &str, value: f32) -> Self {
        self.raw_key(key, 6, &value.to_le_bytes())
    }

    pub fn flag(self, key: &str, value: bool) -> Self {
        self.raw_key(key, 7, &[value.into()])
    }

    pub fn strings(self, key: &str, values: &[&str]) -> Self {
        let items: Vec<_> = values.iter().map(|value| text(value)).collect();
        self.raw_key(key, 9, &array(8, &items))
    }

    pub fn floats(self, key: &str, values: &[f32]) -> Self {
        let items: Vec<_> = values.iter().map(|value| value.to_le_bytes().to_vec()).collect();
        self.raw_key(key, 9, &array(6, &items))
    }

    pub fn integers(self, key: &str, values: &[i32]) -> Self {
        let items: Vec<_> = values.iter().map(|value| value.to_le_bytes().to_vec()).collect();
        self.raw_key(key, 9, &array(5, &items))
    }

    pub fn alignment(mut self, alignment: u32) -> Self {
        self.alignment = alignment as usize;
        self.count("general.alignment", alignment)
    }

    /// A tensor of a row-major shape.
    pub fn tensor(mut self, name: &str, shape: &[u64], kind: u32, data: &[u8]) -> Self {
        let dims = shape.iter().rev().copied().collect();
        self.tensors.push(Row { name: name.to_owned(), dims, kind, offset: None, data: data.to_vec() });
        self
    }

    /// A tensor of f32.
    pub fn dense(self, name: &str, shape: &[u64], values: &[f32]) -> Self {
        let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.tensor(name, shape, 0, &data)
    }

    /// A tensor whose table row points to `offset`, without data of its own.
    pub fn misplaced(mut self, name: &str, shape: &[u64], offset: u64) -> Self {
        let dims = shape.iter().rev().copied().collect();
        self.tensors.push(Row { name: name.to_owned(), dims, kind: 0, offset: Some(offset), data: Vec::new() });
        self
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(self.magic);
        out.extend(self.version.to_le_bytes());
        out.extend(self.tensor_count.unwrap_or(self.tensors.len() as u64).to_le_bytes());
        out.extend(self.key_count.unwrap_or(self.keys.len() as u64).to_le_bytes());
        out.extend(self.keys.concat());
        let mut data = Vec::new();
        for Row { name, dims, kind, offset, data: bytes } in &self.tensors {
            out.extend(text(name));
            out.extend((dims.len() as u32).to_le_bytes());
            out.extend(dims.iter().flat_map(|size| size.to_le_bytes()));
            out.extend(kind.to_le_bytes());
            out.extend(offset.unwrap_or(data.len() as u64).to_le_bytes());
            data.extend(bytes);
            data.resize(data.len().next_multiple_of(self.alignment), 0);
        }
        out.resize(out.len().next_multiple_of(self.alignment), 0);
        out.extend(data);
        out
    }

    pub fn write(&self) -> (TempDir, PathBuf) {
        write(&self.bytes())
    }
}

/// A file `m.gguf` of those bytes in a folder of its own.
pub(crate) fn write(bytes: &[u8]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gguf");
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

/// The metadata of a small llama.
pub(crate) fn small_llama() -> Builder {
    Builder::new()
        .string("general.architecture", "llama")
        .count("llama.block_count", 1)
        .count("llama.context_length", 64)
        .count("llama.embedding_length", 32)
        .count("llama.feed_forward_length", 64)
        .count("llama.attention.head_count", 4)
        .count("llama.attention.head_count_kv", 2)
        .number("llama.attention.layer_norm_rms_epsilon", 1e-5)
        .number("llama.rope.freq_base", 10000.0)
        .count("llama.rope.dimension_count", 8)
}
