//! The folder that keeps downloads and compiled parts between builds, checkouts and profiles.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::error::{BuildError, Result};

const STAMP: &str = ".stamp";
const PARTIAL: &str = ".partial";

/// The opened cache. While it lives, no other build changes the folder.
pub struct Cache {
    root: PathBuf,
    // Held for its lock, which the system releases even if this process is killed.
    _lock: Option<File>,
}

impl Cache {
    /// Opens `folder` for the platform `triple`, waiting for a build that is using it.
    pub fn open(folder: &Path, triple: &str) -> Result<Cache> {
        let root = folder.join(triple);
        let hint = "set MLX_RS_CACHE to a folder that can be written to";
        let lock = match create_lock(&root) {
            Ok(file) => {
                file.lock().map_err(|e| BuildError::io("lock", &root.join("lock"), &e).hint(hint))?;
                Some(file)
            }
            // A filled cache may be mounted read-only: nothing will be written then, so no lock is needed.
            Err(_) if root.is_dir() => None,
            Err(e) => return Err(BuildError::io("create the cache folder", &root, &e).hint(hint)),
        };
        let cache = Cache { root, _lock: lock };
        cache.remove_leftovers();
        Ok(cache)
    }

    /// The folder `name`, made by `fill` unless it is there whole.
    ///
    /// `identity` says what the folder must hold (hashes of its sources): a folder with another identity, or with a
    /// file missing or of another length, is made anew. `fill` writes to a temporary folder that is renamed when
    /// complete, so that a killed build leaves nothing half-made.
    pub fn entry(&self, name: &str, identity: &str, fill: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
        let folder = self.root.join(name);
        if is_whole(&folder, identity) {
            return Ok(folder);
        }
        let partial = self.root.join(format!("{name}{PARTIAL}"));
        fs::create_dir_all(&partial).map_err(|e| {
            BuildError::io("create", &partial, &e).hint("set MLX_RS_CACHE to a folder that can be written to")
        })?;
        fill(&partial)?;
        let stamp = format!("{identity}\n{}", listing(&partial)?);
        fs::write(partial.join(STAMP), stamp).map_err(|e| BuildError::io("write", &partial.join(STAMP), &e))?;
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(|e| BuildError::io("remove the damaged", &folder, &e))?;
        }
        fs::rename(&partial, &folder).map_err(|e| BuildError::io("rename", &partial, &e))?;
        Ok(folder)
    }

    /// Removes what a killed build left; the lock makes sure that nobody is writing it.
    fn remove_leftovers(&self) {
        for entry in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().ends_with(PARTIAL) {
                // If it cannot be removed, creating the folder anew will say so.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

fn create_lock(root: &Path) -> std::io::Result<File> {
    fs::create_dir_all(root)?;
    OpenOptions::new().create(true).truncate(false).write(true).open(root.join("lock"))
}

fn is_whole(folder: &Path, identity: &str) -> bool {
    let Ok(stamp) = fs::read_to_string(folder.join(STAMP)) else { return false };
    let Some(files) = stamp.strip_prefix(identity).and_then(|rest| rest.strip_prefix('\n')) else { return false };
    files.lines().all(|line| {
        let Some((size, path)) = line.split_once(' ') else { return false };
        fs::metadata(folder.join(path)).is_ok_and(|meta| Ok(meta.len()) == size.parse())
    })
}

/// One line `length path` for each file below `folder`, sorted by path.
fn listing(folder: &Path) -> Result<String> {
    let mut text = String::new();
    for path in files(folder)? {
        let size = fs::metadata(&path).map_err(|e| BuildError::io("read", &path, &e))?.len();
        let relative = path.strip_prefix(folder).unwrap_or(&path);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{size} {}", relative.display());
    }
    Ok(text)
}

/// Every file below `folder`, sorted.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(|e| BuildError::io("list", &folder, &e))?;
        for entry in entries {
            let path = entry.map_err(|e| BuildError::io("list", &folder, &e))?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Copies every file below `from` to the same place below `to`, through `place`.
pub fn copy_tree(from: &Path, to: &Path, place: fn(&Path, &Path) -> std::io::Result<()>) -> Result<()> {
    for source in files(from)? {
        let relative = source.strip_prefix(from).unwrap_or(&source);
        if relative == Path::new(STAMP) {
            continue;
        }
        let target = to.join(relative);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(|e| BuildError::io("create", parent, &e))?;
        }
        place(&source, &target).map_err(|e| BuildError::io("write", &target, &e))?;
    }
    Ok(())
}

/// The hexadecimal sha256 of all files below `folder`, names included, and of `extra`.
pub fn digest(folders: &[&Path], extra: &[&str]) -> Result<String> {
    let mut hash = Sha256::new();
    for folder in folders {
        for path in files(folder)? {
            hash.update(path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().as_bytes());
            hash.update([0]);
            hash.update(fs::read(&path).map_err(|e| BuildError::io("read", &path, &e))?);
        }
    }
    for text in extra {
        hash.update([0]);
        hash.update(text.as_bytes());
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
