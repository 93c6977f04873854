//! Which run this is: everything that decides its numbers, so that only the same run is resumed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use models::source::ModelSource;
use serde::{Deserialize, Serialize};
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

/// Settings by key, and SHA-256 in hexadecimal of what is in the files.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Fingerprint {
    /// Values of the keys that decide the numbers, as TOML.
    pub settings: BTreeMap<String, String>,
    /// Of the model's configuration and samples of its weights.
    pub model: String,
    /// Of the tokenizer.
    pub tokenizer: String,
    /// Of the encoded training rows.
    pub rows: String,
}

/// What differs between two runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The key of a setting, or the kind of file.
    pub field: String,
    /// In the saved run.
    pub saved: String,
    /// In this run.
    pub wanted: String,
}

impl Fingerprint {
    /// Of the run that `resolved` describes.
    ///
    /// # Errors
    /// A tokenizer that cannot be written down, a weight file that cannot be read.
    pub fn of(resolved: &Resolved, source: &ModelSource, text: &ModelText, data: &Dataset) -> Result<Self> {
        let keys = keys().filter(|key| TABLES.contains(&key.table) && !FREE.contains(&key.path));
        let value = |path: &str| resolved.config.get(path).map(|value| value.to_string());
        let tokenizer = text.tokenizer().fingerprint().map_err(|error| model_error("describe the tokenizer", error))?;
        Ok(Self {
            settings: keys.filter_map(|key| Some((key.path.to_owned(), value(key.path)?))).collect(),
            model: hash_model(source)?,
            tokenizer: hexadecimal(&Sha256::digest(tokenizer)),
            rows: hash_rows(&data.train),
        })
    }

    /// The first thing in which this run differs from a `saved` one.
    pub fn difference(&self, saved: &Self) -> Option<Difference> {
        let files = [
            ("model", &saved.model, &self.model),
            ("tokenizer", &saved.tokenizer, &self.tokenizer),
            ("training rows", &saved.rows, &self.rows),
        ];
        // A changed setting often changes the rows too; it is the cause, so it is named first.
        let mut keys = saved.settings.keys().chain(self.settings.keys());
        let changed = keys.find(|key| saved.settings.get(*key) != self.settings.get(*key)).map(|key| {
            let value = |settings: &BTreeMap<String, String>| settings.get(key).cloned().unwrap_or("no value".into());
            Difference { field: key.clone(), saved: value(&saved.settings), wanted: value(&self.settings) }
        });
        changed.or_else(|| {
            let (field, ..) = files.into_iter().find(|(_, saved, own)| saved != own)?;
            Some(Difference {
                field: field.to_owned(),
                saved: "other ones than in this run".to_owned(),
                wanted: "the same".to_owned(),
            })
        })
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hash_rows(rows: &Examples) -> String {
    let mut hash = Sha256::new();
    let mut add = |example: &Example| {
        example.ids.iter().zip(&example.mask).for_each(|(id, trained)| {
            hash.update(id.to_le_bytes());
            hash.update([u8::from(*trained)]);
        });
        hash.update([0xff; 5]);
    };
    match rows {
        Examples::Sft(examples) => examples.iter().for_each(&mut add),
        Examples::Preference(pairs) => pairs.iter().for_each(|pair| {
            add(&pair.chosen);
            add(&pair.rejected);
        }),
    }
    hexadecimal(&hash.finalize())
}

fn hash_model(source: &ModelSource) -> Result<String> {
    let mut hash = Sha256::new();
    for file in model_files(source)? {
        add_file(&mut hash, &file).map_err(|error| TrainError::io(Stage::Checkpoint, "read", &file, error))?;
    }
    Ok(hexadecimal(&hash.finalize()))
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

    fn run(settings: &[(&str, &str)], rows: &str) -> Fingerprint {
        let settings = settings.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        Fingerprint { settings, rows: rows.to_owned(), ..Fingerprint::default() }
    }

    fn difference(saved: &Fingerprint, own: &Fingerprint) -> Option<(String, String, String)> {
        own.difference(saved).map(|found| (found.field, found.saved, found.wanted))
    }

    #[test]
    fn a_changed_setting_is_named_with_both_values_and_before_the_rows() {
        let saved = run(&[("lora.rank", "8"), ("train.seed", "0")], "a");
        assert_eq!(difference(&saved, &saved), None);
        let other = run(&[("lora.rank", "16"), ("train.seed", "0")], "b");
        assert_eq!(difference(&saved, &other), Some(("lora.rank".into(), "8".into(), "16".into())));
        let shorter = run(&[("lora.rank", "8")], "a");
        assert_eq!(difference(&saved, &shorter), Some(("train.seed".into(), "0".into(), "no value".into())));
        assert_eq!(difference(&shorter, &saved), Some(("train.seed".into(), "no value".into(), "0".into())));
    }

    #[test]
    fn other_rows_are_named_as_such() {
        let found = difference(&run(&[], "a"), &run(&[], "b")).unwrap();
        assert_eq!(found, ("training rows".into(), "other ones than in this run".into(), "the same".into()));
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
