//! Files through the public interface. Damaged files are tested inside the crate.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mlx_rs_core::io::{self, GgufMetadata};
use mlx_rs_core::{Array, Dtype, ErrorKind, Result, ops};

/// A folder that goes with its test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("mlx-rs-core-files-{}-{name}", std::process::id()));
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

/// One array of every dtype that a file format may have.
fn one_of_each() -> Result<BTreeMap<String, Array>> {
    let ramp = Array::from_slice(&[0.0f32, 1.0, 2.0, 3.0], &[2, 2])?;
    Dtype::ALL.into_iter().map(|dtype| Ok((dtype.name().to_owned(), ramp.astype(dtype)?))).collect()
}

fn assert_same(left: &Array, right: &Array) -> Result<()> {
    assert_eq!((left.dtype(), left.shape()), (right.dtype(), right.shape()));
    assert_eq!(left.to_bytes()?, right.to_bytes()?);
    Ok(())
}

#[test]
fn safetensors_keep_names_dtypes_bytes_and_metadata() -> Result<()> {
    let folder = Folder::new("safetensors");
    let path = folder.file("a.safetensors");
    let mut arrays = one_of_each()?;
    // MLX's writer has no name for it.
    arrays.remove("float64");
    arrays.insert("empty".to_owned(), Array::from_slice::<f32>(&[], &[0, 3])?);
    let metadata = BTreeMap::from([("format".to_owned(), "pt".to_owned()), ("note".to_owned(), "naïve ☂".to_owned())]);
    io::save_safetensors(&path, &arrays, Some(&metadata))?;
    let (read, read_metadata) = io::load_safetensors(&path)?;
    assert_eq!(read_metadata, metadata);
    assert_eq!(read.keys().collect::<Vec<_>>(), arrays.keys().collect::<Vec<_>>());
    arrays.iter().try_for_each(|(name, array)| assert_same(array, &read[name]))
}

#[test]
fn views_are_saved_as_what_they_show() -> Result<()> {
    let folder = Folder::new("views");
    let grid = Array::from_slice(&[0i32, 1, 2, 3, 4, 5], &[2, 3])?;
    let views = BTreeMap::from([
        ("transposed", ops::transpose(&grid, None)?),
        ("broadcast", ops::broadcast_to(&Array::from_slice(&[7i32, 8], &[2])?, &[2, 2])?),
        ("backwards", ops::slice(&grid, &[1, 2], &[-3, -4], &[-1, -1])?),
    ]);
    let check = |read: &BTreeMap<String, Array>| -> Result<()> {
        assert_eq!(read["transposed"].to_vec::<i32>()?, [0, 3, 1, 4, 2, 5]);
        assert_eq!(read["broadcast"].to_vec::<i32>()?, [7, 8, 7, 8]);
        assert_eq!(read["backwards"].to_vec::<i32>()?, [5, 4, 3, 2, 1, 0]);
        Ok(())
    };
    let path = folder.file("a.safetensors");
    io::save_safetensors(&path, &views, None)?;
    check(&io::load_safetensors(&path)?.0)?;
    let path = folder.file("a.gguf");
    io::save_gguf(&path, &views, &BTreeMap::new())?;
    check(&io::load_gguf(&path)?.0)?;
    let path = folder.file("a.npy");
    io::save(&path, &views["transposed"])?;
    assert_eq!(io::load(&path)?.to_vec::<i32>()?, [0, 3, 1, 4, 2, 5]);
    Ok(())
}

#[test]
fn safetensors_are_written_to_exactly_the_given_name() -> Result<()> {
    let folder = Folder::new("names");
    let path = folder.file("adapters.tmp");
    let arrays = BTreeMap::from([("w", Array::scalar(1.0f32)?)]);
    io::save_safetensors(&path, &arrays, None)?;
    let names: Vec<_> = std::fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["adapters.tmp"]);
    assert_eq!(io::load_safetensors(&path)?.1, BTreeMap::from([("format".to_owned(), "mlx".to_owned())]));
    Ok(())
}

#[test]
fn metadata_without_a_format_is_refused() -> Result<()> {
    let folder = Folder::new("format");
    let path = folder.file("a.safetensors");
    let metadata = BTreeMap::from([("note".to_owned(), "x".to_owned())]);
    let error = io::save_safetensors::<&str>(&path, [], Some(&metadata)).unwrap_err();
    assert!(error.message.ends_with("the metadata has no `format`, wanted for example `format = \"mlx\"`"), "{error}");
    assert!(!path.exists());
    Ok(())
}

#[test]
fn two_arrays_of_one_name_are_refused() -> Result<()> {
    let folder = Folder::new("twice");
    let one = Array::scalar(1.0f32)?;
    let error = io::save_safetensors(folder.file("a.safetensors"), [("w", &one), ("w", &one)], None).unwrap_err();
    assert!(error.message.ends_with("two arrays are named \"w\""), "{error}");
    Ok(())
}

#[test]
fn a_graph_that_fails_leaves_the_old_file_alone() -> Result<()> {
    let folder = Folder::new("old-file");
    let path = folder.file("a.safetensors");
    let good = BTreeMap::from([("w".to_owned(), Array::scalar(1.0f32)?)]);
    io::save_safetensors(&path, &good, None)?;
    let before = std::fs::read(&path).unwrap();
    // A singular matrix has no inverse, which only the evaluation finds out.
    let singular = mlx_rs_core::linalg::inv(&ops::zeros(&[2, 2], Dtype::Float32)?)?;
    let outcome = io::save_safetensors(&path, [("w", &singular)], None);
    assert!(outcome.is_err());
    assert_eq!(std::fs::read(&path).unwrap(), before);
    Ok(())
}

#[test]
fn a_missing_file_a_folder_and_an_unwritable_place_name_their_path() -> Result<()> {
    let folder = Folder::new("missing");
    let check = |outcome: Result<()>, path: &Path| {
        let error = outcome.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Io, "{error}");
        assert!(error.message.starts_with(&path.display().to_string()), "{error}");
    };
    let missing = folder.file("none.safetensors");
    for path in [&missing, &folder.0] {
        check(io::load_safetensors(path).map(drop), path);
        check(io::load_gguf(path).map(drop), path);
        check(io::load(path).map(drop), path);
    }
    let array = Array::scalar(1.0f32)?;
    let nowhere = folder.file("no-such-folder").join("a.gguf");
    check(io::save_safetensors(&nowhere, [("w", &array)], None), &nowhere);
    check(io::save_gguf(&nowhere, [("w", &array)], &BTreeMap::new()), &nowhere);
    check(io::save(&nowhere, &array), &nowhere);
    Ok(())
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_with_the_systems_reason() -> Result<()> {
    let array = Array::from_slice(&[1.0f32; 4], &[4])?;
    for outcome in [io::save_safetensors("/dev/full", [("w", &array)], None), io::save("/dev/full", &array)] {
        let error = outcome.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Io);
        assert!(error.message.starts_with("/dev/full: No space left on device"), "{error}");
    }
    Ok(())
}

#[test]
fn gguf_keeps_arrays_and_three_kinds_of_metadata() -> Result<()> {
    let folder = Folder::new("gguf");
    let path = folder.file("a.gguf");
    let all = one_of_each()?;
    let arrays: BTreeMap<&str, &Array> = ["float32", "float16", "int8", "int16", "int32"].map(|n| (n, &all[n])).into();
    let metadata = BTreeMap::from([
        ("general.name".to_owned(), GgufMetadata::String("naïve ☂".to_owned())),
        ("tokens".to_owned(), GgufMetadata::Strings(vec!["<s>".to_owned(), String::new(), "b".to_owned()])),
        ("layers".to_owned(), GgufMetadata::Array(Array::scalar(30u32)?)),
        ("scores".to_owned(), GgufMetadata::Array(Array::from_slice(&[0.5f32, -1.0], &[2])?)),
    ]);
    io::save_gguf(&path, arrays.iter().map(|(name, array)| (name, *array)), &metadata)?;
    let (read, read_metadata) = io::load_gguf(&path)?;
    assert_eq!(read.len(), arrays.len());
    arrays.iter().try_for_each(|(name, array)| assert_same(array, &read[*name]))?;
    assert_eq!(read_metadata.len(), metadata.len());
    for (key, value) in &metadata {
        match (value, &read_metadata[key]) {
            (GgufMetadata::String(left), GgufMetadata::String(right)) => assert_eq!(left, right),
            (GgufMetadata::Strings(left), GgufMetadata::Strings(right)) => assert_eq!(left, right),
            (GgufMetadata::Array(left), GgufMetadata::Array(right)) => assert_same(left, right)?,
            (left, right) => panic!("{key}: wrote {left:?}, read {right:?}"),
        }
    }
    Ok(())
}

#[test]
fn gguf_refuses_what_it_cannot_hold() -> Result<()> {
    let folder = Folder::new("gguf-refused");
    let array = Array::from_slice(&[1.0f32], &[1])?;
    let none = BTreeMap::new();
    let error = io::save_gguf(folder.file("a.bin"), [("w", &array)], &none).unwrap_err();
    assert!(error.message.ends_with("the name does not end in `.gguf`"), "{error}");
    let path = folder.file("a.gguf");
    let error = io::save_gguf(&path, [("w", &array.astype(Dtype::Bfloat16)?)], &none).unwrap_err();
    assert!(error.message.contains("bfloat16"), "{error}");
    let flat = BTreeMap::from([("k".to_owned(), GgufMetadata::Array(ops::zeros(&[2, 2], Dtype::Float32)?))]);
    let error = io::save_gguf(&path, [("w", &array)], &flat).unwrap_err();
    assert_eq!(error.message, "metadata \"k\" has shape [2, 2], wanted a number or a filled list");
    Ok(())
}

#[test]
fn npy_keeps_every_dtype_and_shape() -> Result<()> {
    let folder = Folder::new("npy");
    let path = folder.file("a.npy");
    for array in one_of_each()?.values() {
        io::save(&path, array)?;
        assert_same(array, &io::load(&path)?)?;
    }
    for shape in [vec![], vec![1], vec![0], vec![2, 0, 3], vec![1, 2, 3, 4]] {
        let array = ops::ones(&shape, Dtype::Float32)?;
        io::save(&path, &array)?;
        assert_same(&array, &io::load(&path)?)?;
    }
    Ok(())
}

#[test]
fn an_npy_file_in_column_order_is_read_by_rows() -> Result<()> {
    let folder = Folder::new("fortran");
    let path = folder.file("a.npy");
    let header = "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }";
    let mut bytes = b"\x93NUMPY\x02\x00".to_vec();
    bytes.extend((header.len() as u32).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend([0i16, 3, 1, 4, 2, 5].iter().flat_map(|value| value.to_le_bytes()));
    std::fs::write(&path, bytes).unwrap();
    let array = io::load(&path)?;
    assert_eq!((array.shape(), array.to_vec::<i16>()?), ([2, 3].as_slice(), vec![0, 1, 2, 3, 4, 5]));
    Ok(())
}
