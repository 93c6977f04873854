//! Which run this is: a hash of everything that decides its numbers, so that only the same run is resumed.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use models::source::ModelSource;
use sha2::{Digest, Sha256};

use crate::base::{ModelText, model_error};
use crate::config::Resolved;
use crate::config::schema::keys;
use crate::data::{Dataset, Example, Examples};
use crate::error::{Result, Stage, TrainError};

/// Tables whose keys decide the numbers. How long a run is does not: it may be prolonged.
const TABLES: [&str; 6] = ["data", "method", "lora", "optimizer", "schedule", "train"];
/// Keys that do not. Model and rows count by what is in them: the files may be moved.
const FREE: [&str; 5] = ["train.iters", "train.epochs", "data.train", "data.valid", "train.max_nonfinite_steps"];
/// Bytes of a weight file that are read at its start, middle and end.
const SAMPLE: u64 = 64 << 10;

/// SHA-256 in hexadecimal over the settings, the model, the tokenizer and the encoded training rows.
///
/// # Errors
/// A tokenizer that cannot be written down, a weight file that cannot be read.
pub fn of(resolved: &Resolved, source: &ModelSource, text: &ModelText, data: &Dataset) -> Result<String> {
    let mut hash = Sha256::new();
    for key in keys().filter(|key| TABLES.contains(&key.table) && !FREE.contains(&key.path)) {
        if let Some(value) = resolved.config.get(key.path) {
            hash.update(format!("{} = {value}\n", key.path));
        }
    }
    for file in model_files(source)? {
        add_file(&mut hash, &file).map_err(|error| TrainError::io(Stage::Checkpoint, "read", &file, error))?;
    }
    hash.update(text.tokenizer().fingerprint().map_err(|error| model_error("describe the tokenizer", error))?);
    let mut add = |example: &Example| {
        example.ids.iter().zip(&example.mask).for_each(|(id, trained)| {
            hash.update(id.to_le_bytes());
            hash.update([u8::from(*trained)]);
        });
        hash.update([0xff; 5]);
    };
    match &data.train {
        Examples::Sft(examples) => examples.iter().for_each(&mut add),
        Examples::Preference(pairs) => pairs.iter().for_each(|pair| {
            add(&pair.chosen);
            add(&pair.rejected);
        }),
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Files that hold the model, in order of their names.
fn model_files(source: &ModelSource) -> Result<Vec<PathBuf>> {
    let dir = match source {
        ModelSource::Gguf(file) => return Ok(vec![file.clone()]),
        ModelSource::Folder(dir) => dir,
    };
    let read = |error| TrainError::io(Stage::Checkpoint, "read", dir, error);
    let holds = |path: &Path| {
        path.file_name().is_some_and(|name| name == "config.json")
            || path.extension().is_some_and(|ending| ending == "safetensors")
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).map_err(read)? {
        files.push(entry.map_err(read)?.path());
    }
    files.retain(|path| holds(path));
    files.sort();
    Ok(files)
}

/// Adds a file's length and three samples of it: weights of gigabytes are told apart without reading them all.
fn add_file(hash: &mut Sha256, path: &Path) -> io::Result<()> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    hash.update(length.to_le_bytes());
    for start in [0, length / 2, length.saturating_sub(SAMPLE)] {
        file.seek(SeekFrom::Start(start))?;
        let mut sample = Vec::new();
        file.by_ref().take(SAMPLE).read_to_end(&mut sample)?;
        hash.update(sample);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashed(bytes: &[u8]) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        fs::write(&path, bytes).unwrap();
        let mut hash = Sha256::new();
        add_file(&mut hash, &path).unwrap();
        hash.finalize().to_vec()
    }

    #[test]
    fn files_that_differ_in_length_start_middle_or_end_differ() {
        let base = vec![7; 400 << 10];
        let changed = |at: usize| {
            let mut bytes = base.clone();
            bytes[at] = 8;
            bytes
        };
        let files = [base.clone(), base[1..].to_vec(), changed(0), changed(200 << 10), changed((400 << 10) - 1)];
        let hashes: Vec<_> = files.iter().map(|bytes| hashed(bytes)).collect();
        assert_eq!(hashes[0], hashed(&base));
        for (index, hash) in hashes.iter().enumerate() {
            assert!(!hashes[..index].contains(hash), "file {index}");
        }
    }

    #[test]
    fn only_files_that_hold_the_model_count() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.safetensors", "config.json", "README.md", "a.safetensors"] {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        let files = model_files(&ModelSource::Folder(folder.path().to_owned())).unwrap();
        let names: Vec<_> = files.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["a.safetensors", "b.safetensors", "config.json"]);
    }
}
