//! Damaged files of every kind must give an error that names the file, and never end the process.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::gguf_layout;
use super::*;
use crate::element::Dtype;

/// A folder that goes with its test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("mlx-rs-core-io-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a writable temporary folder");
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn sample() -> Result<BTreeMap<String, Array>> {
    let ramp: Vec<f32> = (0..32).map(|i| i as f32).collect();
    let half = Array::from_slice(&[1.0f32; 6], &[2, 3])?.astype(Dtype::Float16)?;
    Ok(BTreeMap::from([
        ("w.weight".to_owned(), Array::from_slice(&ramp, &[32])?),
        ("b".to_owned(), half),
        ("n".to_owned(), Array::from_slice(&[1i32, 2], &[2])?),
    ]))
}

fn sample_metadata() -> Result<BTreeMap<String, GgufMetadata>> {
    Ok(BTreeMap::from([
        ("text".to_owned(), GgufMetadata::String("words".to_owned())),
        ("list".to_owned(), GgufMetadata::Strings(vec!["a".to_owned(), "b".to_owned()])),
        ("numbers".to_owned(), GgufMetadata::Array(Array::from_slice(&[1i32, 2, 3], &[3])?)),
    ]))
}

/// Cuts `whole` at every length and asks `load` for an error with the path.
fn every_cut_is_an_error(path: &Path, whole: &[u8], load: impl Fn(&Path) -> Result<()>) {
    for len in 0..whole.len() {
        std::fs::write(path, &whole[..len]).expect("a writable file");
        let error = load(path).expect_err(&format!("{len} of {} bytes are no whole file", whole.len()));
        assert_eq!(error.kind, ErrorKind::Io, "cut at {len}: {error}");
        assert!(error.message.starts_with(&path.display().to_string()), "cut at {len}: {error}");
    }
}

/// Changes every byte of the first 400 to several values; a load may succeed or fail, but returns.
fn no_changed_byte_ends_the_process(path: &Path, whole: &[u8], values: &[u8], load: impl Fn(&Path) -> Result<()>) {
    let mut refused = 0;
    for at in 0..whole.len().min(400) {
        for &value in values {
            let mut changed = whole.to_vec();
            changed[at] = value;
            std::fs::write(path, &changed).expect("a writable file");
            if let Err(error) = load(path) {
                refused += 1;
                assert!(error.message.contains(&path.display().to_string()), "byte {at} = {value}: {error}");
            }
        }
    }
    assert!(refused > 0, "no change was noticed");
}

fn load_all_safetensors(path: &Path) -> Result<()> {
    let (arrays, _) = load_safetensors(path)?;
    crate::transforms::eval(arrays.values())
}

fn load_all_gguf(path: &Path) -> Result<()> {
    let (arrays, _) = load_gguf(path)?;
    crate::transforms::eval(arrays.values())
}

#[test]
fn every_cut_of_a_safetensors_file_is_an_error_with_its_path() -> Result<()> {
    let folder = Folder::new("cut-safetensors");
    let path = folder.file("a.safetensors");
    save_safetensors(&path, &sample()?, None)?;
    let whole = std::fs::read(&path).expect("the saved file");
    every_cut_is_an_error(&path, &whole, load_all_safetensors);
    Ok(())
}

#[test]
fn no_changed_byte_of_a_safetensors_header_ends_the_process() -> Result<()> {
    let folder = Folder::new("changed-safetensors");
    let path = folder.file("a.safetensors");
    save_safetensors(&path, &sample()?, None)?;
    let whole = std::fs::read(&path).expect("the saved file");
    no_changed_byte_ends_the_process(&path, &whole, b"\0 9,}\"", load_all_safetensors);
    Ok(())
}

#[test]
fn every_cut_of_a_gguf_file_is_an_error_with_its_path() -> Result<()> {
    let folder = Folder::new("cut-gguf");
    let path = folder.file("a.gguf");
    save_gguf(&path, &sample()?, &sample_metadata()?)?;
    let whole = std::fs::read(&path).expect("the saved file");
    // The last tensor may be followed by padding that nobody needs.
    let layout = gguf_layout::read(&path)?;
    let used = layout.tensors.iter().map(|tensor| tensor.start + tensor.bytes).max().expect("three tensors");
    every_cut_is_an_error(&path, &whole[..used as usize], load_all_gguf);
    Ok(())
}

#[test]
fn no_changed_byte_of_a_gguf_header_ends_the_process() -> Result<()> {
    let folder = Folder::new("changed-gguf");
    let path = folder.file("a.gguf");
    save_gguf(&path, &sample()?, &sample_metadata()?)?;
    let whole = std::fs::read(&path).expect("the saved file");
    no_changed_byte_ends_the_process(&path, &whole, &[0, 1, 4, 8, 9, 12, 30, 127, 255], load_all_gguf);
    Ok(())
}

#[test]
fn every_cut_of_an_npy_file_is_an_error_with_its_path() -> Result<()> {
    let folder = Folder::new("cut-npy");
    let path = folder.file("a.npy");
    save(&path, &Array::from_slice(&[1.0f32, 2.0, 3.0], &[3])?)?;
    let whole = std::fs::read(&path).expect("the saved file");
    every_cut_is_an_error(&path, &whole, |path| load(path).map(|_| ()));
    no_changed_byte_ends_the_process(&path, &whole, b"\0 19,)'\xff", |path| load(path).map(|_| ()));
    Ok(())
}

/// A GGUF file of one tensor, built by hand.
fn gguf_of_one_tensor(kind: u32, dims: &[u64], data: &[u8]) -> Vec<u8> {
    let mut bytes = b"GGUF".to_vec();
    bytes.extend(3u32.to_le_bytes());
    bytes.extend(1u64.to_le_bytes());
    bytes.extend(0u64.to_le_bytes());
    bytes.extend(8u64.to_le_bytes());
    bytes.extend(b"x.weight");
    bytes.extend((dims.len() as u32).to_le_bytes());
    dims.iter().for_each(|dim| bytes.extend(dim.to_le_bytes()));
    bytes.extend(kind.to_le_bytes());
    bytes.extend(0u64.to_le_bytes());
    bytes.resize(bytes.len().next_multiple_of(32), 0);
    bytes.extend(data);
    bytes
}

#[test]
fn a_bfloat16_tensor_of_a_gguf_file_stays_bfloat16() -> Result<()> {
    let folder = Folder::new("gguf-bf16");
    let path = folder.file("a.gguf");
    // 1e30 has no float16; MLX's own reader would make it infinite.
    let values = [1.0f32, -2.5, 1e30, 0.25].map(half::bf16::from_f32);
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    std::fs::write(&path, gguf_of_one_tensor(30, &[2, 2], &data)).expect("a writable file");
    let (arrays, _) = load_gguf(&path)?;
    assert_eq!((arrays["x.weight"].dtype(), arrays["x.weight"].shape()), (Dtype::Bfloat16, [2, 2].as_slice()));
    assert_eq!(arrays["x.weight"].to_vec::<half::bf16>()?, values);
    Ok(())
}

#[test]
fn a_quantised_tensor_of_a_gguf_file_becomes_packed_weight_scales_and_biases() -> Result<()> {
    let folder = Folder::new("gguf-q4");
    let path = folder.file("a.gguf");
    // One block of Q4_0: scale 0.5, then 16 bytes whose nibbles are the codes; the value is scale * (code - 8).
    let mut data = half::f16::from_f32(0.5).to_le_bytes().to_vec();
    data.extend((0..16u8).map(|i| i | (15 - i) << 4));
    std::fs::write(&path, gguf_of_one_tensor(2, &[32, 1], &data)).expect("a writable file");
    let (arrays, _) = load_gguf(&path)?;
    let names: Vec<&str> = arrays.keys().map(String::as_str).collect();
    assert_eq!(names, ["x.biases", "x.scales", "x.weight"]);
    assert_eq!(arrays["x.scales"].to_vec::<half::f16>()?, [half::f16::from_f32(0.5)]);
    assert_eq!(arrays["x.biases"].to_vec::<half::f16>()?, [half::f16::from_f32(-4.0)]);
    // Low nibbles are the first 16 elements, high nibbles the last 16; MLX packs eight codes a word, lowest first.
    assert_eq!(arrays["x.weight"].to_vec::<u32>()?, [0x7654_3210, 0xfedc_ba98, 0x89ab_cdef, 0x0123_4567]);
    Ok(())
}

#[test]
fn an_unknown_tensor_type_and_a_broken_row_name_the_tensor() {
    let folder = Folder::new("gguf-types");
    let path = folder.file("a.gguf");
    let refusal = |kind, dims: &[u64]| {
        std::fs::write(&path, gguf_of_one_tensor(kind, dims, &[0; 64])).expect("a writable file");
        let message = load_gguf(&path).expect_err("the tensor is wrong").message;
        message[path.display().to_string().len()..].to_owned()
    };
    assert_eq!(refusal(6, &[32]), ": x.weight: tensor type 6, which MLX does not read");
    assert_eq!(refusal(2, &[33]), ": x.weight: rows of 33 are no whole blocks of 32");
    assert_eq!(refusal(0, &[1 << 40]), ": x.weight: dimension 1099511627776 is larger than MLX can count");
    assert_eq!(refusal(0, &[17]), ": tensor x.weight needs 68 bytes, but the file of 128 bytes ends 4 bytes too early");
    assert_eq!(refusal(0, &[1; 9]), ": x.weight: 9 dimensions, wanted at most 8");
}
