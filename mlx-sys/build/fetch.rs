//! Brings the native parts into the cache: wheels through pip, mlx-c's sources through cargo.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::cache::{self, Cache};
use crate::error::{BuildError, Result};
use crate::pins::{self, Wheel};
use crate::settings::{MLX_C_VERSION, Settings};

/// Unpacks `wheel` into the cache, fetching it when it is not there, and returns its folder.
pub fn wheel(cache: &Cache, wheel: &Wheel) -> Result<PathBuf> {
    cache.entry(&wheel.folder(), wheel.requirement.trim_end(), |folder| {
        let download = folder.join("download");
        fs::create_dir_all(&download).map_err(|e| BuildError::io("create", &download, &e))?;
        let requirements = download.join("requirements.txt");
        fs::write(&requirements, &wheel.requirement).map_err(|e| BuildError::io("write", &requirements, &e))?;
        let output = Command::new("python3")
            .args([
                "-m",
                "pip",
                "download",
                "--quiet",
                "--disable-pip-version-check",
                "--no-deps",
                "--require-hashes",
                "--only-binary=:all:",
            ])
            .arg("--dest")
            .arg(&download)
            .arg("--requirement")
            .arg(&requirements)
            // Nothing is installed, so a user's rule to install into virtual environments only does not apply.
            .env("PIP_REQUIRE_VIRTUALENV", "0")
            .output();
        check(output, |why| pip_failure(wheel, &why))?;
        let file = cache::files(&download)?
            .into_iter()
            .find(|path| path.extension().is_some_and(|ext| ext == "whl"))
            .ok_or_else(|| {
            BuildError::new(format!("pip downloaded no wheel of {}", wheel.folder())).offline_hint()
        })?;
        let output = Command::new("python3").args(["-m", "zipfile", "-e"]).arg(&file).arg(folder).output();
        check(output, |why| {
            BuildError::new(format!("cannot unpack {}", file.display())).cause(why.text()).hint("is the disk full?")
        })?;
        fs::remove_dir_all(&download).map_err(|e| BuildError::io("remove", &download, &e))
    })
}

/// The folder of mlx-c's sources: `MLX_C_SOURCE`, or the pinned crate's.
pub fn mlx_c(cache: &Cache, settings: &Settings, vendor: &Path) -> Result<PathBuf> {
    if let Some(folder) = &settings.mlx_c {
        return Ok(folder.clone());
    }
    let manifest = vendor.join("mlx-c/Cargo.toml");
    let lock_path = vendor.join("mlx-c/Cargo.lock");
    let lock = fs::read_to_string(&lock_path).map_err(|e| BuildError::io("read", &lock_path, &e))?;
    let checksum = pins::crate_checksum(&lock, "mlx-sys", MLX_C_VERSION)?;
    cache.entry(&format!("mlx-c-{MLX_C_VERSION}"), &checksum, |folder| {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["metadata", "--locked", "--format-version=1", "--filter-platform"])
            .arg(&settings.target.host)
            .arg("--manifest-path")
            .arg(&manifest)
            .output();
        let output = check(output, |why| {
            BuildError::new(format!("cannot fetch the sources of mlx-c {MLX_C_VERSION}"))
                .cause(why.text())
                .offline_hint()
        })?;
        let sources = crate_folder(&output.stdout, "mlx-sys", MLX_C_VERSION)?.join("src/mlx-c");
        cache::copy_tree(&sources, folder, |from, to| fs::copy(from, to).map(|_| ()))
    })
}

/// The folder of a package in the output of `cargo metadata`.
pub fn crate_folder(metadata: &[u8], name: &str, version: &str) -> Result<PathBuf> {
    let wrong =
        |why: &str| BuildError::new(format!("cargo metadata does not say where {name} {version} lies")).cause(why);
    let metadata: serde_json::Value = serde_json::from_slice(metadata).map_err(|e| wrong(&e.to_string()))?;
    let packages = metadata["packages"].as_array().ok_or_else(|| wrong("it lists no packages"))?;
    packages
        .iter()
        .find(|package| package["name"] == name && package["version"] == version)
        .and_then(|package| Path::new(package["manifest_path"].as_str()?).parent())
        .map(Path::to_path_buf)
        .ok_or_else(|| wrong("the package is not listed"))
}

/// Why a program gave no result.
#[derive(Debug)]
pub enum Failure {
    /// It could not be started.
    Missing(String),
    /// It ran and failed; what it wrote to stderr.
    Failed(String),
}

impl Failure {
    fn text(&self) -> &str {
        match self {
            Failure::Missing(text) | Failure::Failed(text) => text,
        }
    }
}

fn check(output: std::io::Result<Output>, error: impl FnOnce(Failure) -> BuildError) -> Result<Output> {
    match output {
        Ok(output) if output.status.success() => Ok(output),
        Ok(output) => Err(error(Failure::Failed(String::from_utf8_lossy(&output.stderr).into_owned()))),
        Err(e) => Err(error(Failure::Missing(e.to_string()))),
    }
}

/// The error for a wheel that pip did not bring, with the remedy that its output calls for.
pub fn pip_failure(wheel: &Wheel, why: &Failure) -> BuildError {
    let error = BuildError::new(format!("cannot fetch the package {} {}", wheel.name, wheel.version)).cause(why.text());
    let text = match why {
        Failure::Missing(_) => {
            return error
                .hint("install Python 3 with pip, which fetches it (Debian: apt-get install python3 python3-pip)")
                .offline_hint();
        }
        Failure::Failed(text) => text,
    };
    if text.contains("No module named pip") {
        error.hint("install pip (Debian: apt-get install python3-pip; elsewhere: python3 -m ensurepip)").offline_hint()
    } else if text.contains("DO NOT MATCH THE HASHES") {
        error.hint(
            "the file that arrived is not the released one: empty pip's cache (python3 -m pip cache purge) and ask \
             whoever runs the package mirror",
        )
    } else if text.contains("No matching distribution") {
        error
            .hint("its wheels need glibc 2.35 or newer (Debian 12, Ubuntu 22.04) or macOS 14 on Apple silicon; old pips do not see them: python3 -m pip install --upgrade pip")
            .offline_hint()
    } else {
        error.offline_hint()
    }
}
