//! The folder of a run: who may write into it, and how files get there whole or not at all.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Detail, Place, Result, Stage, TrainError};

/// The adapter, as mlx-lm names it.
pub const ADAPTER_FILE: &str = "adapters.safetensors";
/// What the adapter is, as mlx-lm names it.
pub const ADAPTER_CONFIG_FILE: &str = "adapter_config.json";
/// Moments of the optimizer; numbered.
pub const OPTIMIZER_FILE: &str = "optimizer_state.safetensors";
/// Step, place in the data, and what else a resumed run needs.
pub const STATE_FILE: &str = "trainer_state.json";
/// One record per report.
pub const METRICS_FILE: &str = "metrics.jsonl";
/// The resolved configuration.
pub const CONFIG_FILE: &str = "config.toml";

const RUN_FILES: [&str; 6] = [ADAPTER_FILE, ADAPTER_CONFIG_FILE, OPTIMIZER_FILE, STATE_FILE, METRICS_FILE, CONFIG_FILE];

/// What may be done with a folder that an earlier run has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderUse {
    /// Nothing.
    New,
    /// Its files are replaced.
    Overwrite,
    /// The run goes on.
    Resume,
}

/// A folder that can be written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFolder {
    dir: PathBuf,
}

impl RunFolder {
    /// Takes `dir`, which is created when it is not there. What an earlier run left stays until [`RunFolder::clear`],
    /// so that a run which fails early has destroyed nothing; other files are never touched.
    ///
    /// # Errors
    /// A used folder that is neither to be overwritten nor resumed, an unused one to be resumed, a path that is no
    /// folder, a folder that cannot be written to.
    pub fn open(dir: &Path, folder_use: FolderUse) -> Result<Self> {
        if dir.exists() && !dir.is_dir() {
            return Err(TrainError::output(Detail::new(Place::file(dir), "", "a file", "a folder for the results")));
        }
        let folder = Self { dir: dir.to_owned() };
        let used = if dir.exists() { folder.run_files()? } else { Vec::new() };
        match (folder_use, used.first()) {
            (FolderUse::New, Some(first)) => {
                let got = format!("{} of an earlier run", file_name(first));
                let detail = Detail::new(Place::file(dir), "", got, "an unused folder");
                return Err(TrainError::output(detail.hint(
                    "--resume goes on with that run, --overwrite replaces it, --adapter-path names another folder",
                )));
            }
            (FolderUse::Resume, _) if !folder.path(STATE_FILE).is_file() => {
                let detail =
                    Detail::new(Place::file(dir), "", format!("no {STATE_FILE}"), "the state of a run to resume");
                let hint = match used.first() {
                    None => "leave out --resume to start a run",
                    Some(_) => "the run there ended before its first save: --overwrite starts it anew",
                };
                return Err(TrainError::checkpoint(detail.hint(hint)));
            }
            _ => {}
        }
        fs::create_dir_all(dir).map_err(|error| unwritable("create", dir, error))?;
        folder.probe()?;
        Ok(folder)
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The file of this name in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The numbered adapter of `step`, as mlx-lm names it.
    pub fn checkpoint(&self, step: u64) -> PathBuf {
        self.path(&format!("{step:07}_{ADAPTER_FILE}"))
    }

    /// Removes what earlier runs left: their results, and temporary files of an interrupted save.
    ///
    /// # Errors
    /// A file that cannot be removed.
    pub fn clear(&self) -> Result<()> {
        self.run_files()?.iter().try_for_each(|path| remove(path))
    }

    /// The numbered adapters, oldest first.
    ///
    /// # Errors
    /// A folder that cannot be read.
    pub fn checkpoints(&self) -> Result<Vec<(u64, PathBuf)>> {
        self.numbered_files(ADAPTER_FILE)
    }

    /// Removes the oldest numbered adapters until `limit` are left; 0 keeps all.
    ///
    /// # Errors
    /// A file that cannot be removed.
    pub fn keep_newest(&self, limit: u64) -> Result<()> {
        let found = self.checkpoints()?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let surplus = if limit == 0 { 0 } else { found.len().saturating_sub(limit) };
        found[..surplus].iter().try_for_each(|(_, path)| remove(path))
    }

    /// Removes the numbered optimizer states except `kept`: only the newest save can be resumed.
    ///
    /// # Errors
    /// A file that cannot be removed.
    pub fn remove_optimizer_states_but(&self, kept: &Path) -> Result<()> {
        let found = self.numbered_files(OPTIMIZER_FILE)?;
        found.iter().filter(|(_, path)| path != kept).try_for_each(|(_, path)| remove(path))
    }

    /// Removes what a save after `step` left that was cut off before its end.
    ///
    /// # Errors
    /// A file that cannot be removed.
    pub fn remove_after(&self, step: u64) -> Result<()> {
        let is_left = |name: &str| name.starts_with('.') || numbered(name).is_some_and(|(number, _)| number > step);
        let files = self.run_files()?;
        files.iter().filter(|path| is_left(file_name(path))).try_for_each(|path| remove(path))
    }

    /// Files `0000100_NAME` by their number.
    fn numbered_files(&self, name: &str) -> Result<Vec<(u64, PathBuf)>> {
        let step = |path: &Path| numbered(file_name(path)).filter(|(_, rest)| *rest == name).map(|(step, _)| step);
        let files = self.run_files()?.into_iter();
        let mut found: Vec<_> = files.filter_map(|path| Some((step(&path)?, path))).collect();
        found.sort();
        Ok(found)
    }

    /// Files that a run made, in order of their names.
    fn run_files(&self) -> Result<Vec<PathBuf>> {
        let read = |error| TrainError::io(Stage::Output, "read", &self.dir, error);
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.dir).map_err(read)? {
            let path = entry.map_err(read)?.path();
            if is_run_file(file_name(&path)) && path.is_file() {
                files.push(path);
            }
        }
        files.sort();
        Ok(files)
    }

    fn probe(&self) -> Result<()> {
        let path = temporary(&self.dir.join(METRICS_FILE));
        File::create_new(&path)
            .and_then(|_| fs::remove_file(&path))
            .map_err(|error| unwritable("write to", &self.dir, error))
    }
}

fn unwritable(action: &'static str, dir: &Path, error: std::io::Error) -> TrainError {
    TrainError::io(Stage::Output, action, dir, error)
        .with_hint("name a folder that you may write to with --adapter-path or output.dir")
}

fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

fn remove(path: &Path) -> Result<()> {
    fs::remove_file(path).map_err(|error| TrainError::io(Stage::Output, "remove", path, error))
}

fn is_run_file(name: &str) -> bool {
    let name = match name.strip_prefix('.').and_then(|hidden| hidden.split_once(TEMPORARY)) {
        Some((_, target)) => target,
        None => name,
    };
    RUN_FILES.contains(&name) || numbered(name).is_some_and(|(_, rest)| RUN_FILES.contains(&rest))
}

fn numbered(name: &str) -> Option<(u64, &str)> {
    let (number, rest) = name.split_once('_')?;
    let digits = number.len() >= 7 && number.bytes().all(|byte| byte.is_ascii_digit());
    if digits { Some((number.parse().ok()?, rest)) } else { None }
}

/// Stands in the names of files that are being written.
const TEMPORARY: &str = ".tmp.";

fn temporary(path: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    path.with_file_name(format!(".{}-{count}{TEMPORARY}{}", std::process::id(), file_name(path)))
}

/// Writes `path` whole or not at all: into a temporary file beside it, to disk, then renamed over the old one. When it
/// fails, e.g. because the disk is full, the old file is untouched and the temporary one is gone.
///
/// # Errors
/// What `write` reports; a file that cannot be created, synced or renamed.
pub fn write_atomically(path: &Path, write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<()> {
    let guard = Temporary(temporary(path));
    let place = || -> std::io::Result<()> {
        let mut file = std::io::BufWriter::new(File::create_new(&guard.0)?);
        write(&mut file)?;
        // Data first, then the name: after a crash the name must not point to a hole.
        file.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()?;
        fs::rename(&guard.0, path)
    };
    place().map_err(|error| not_written(path, error))?;
    sync_parent(path)
}

/// Makes a rename in the folder of `path` durable, on systems that can sync folders.
fn sync_parent(path: &Path) -> Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    match File::open(folder).and_then(|file| file.sync_all()) {
        Err(error) if !matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => {
            Err(TrainError::io(Stage::Output, "sync", folder, error))
        }
        _ => Ok(()),
    }
}

fn not_written(path: &Path, error: std::io::Error) -> TrainError {
    let full = matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge);
    let error = TrainError::io(Stage::Output, "write", path, error);
    if full { error.with_hint("free some space; what was saved before is untouched") } else { error }
}

/// Removes the temporary file whatever happens; after the rename there is none.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests;
