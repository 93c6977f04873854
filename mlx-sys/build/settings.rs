//! What the environment asks for. Every variable is read here and nowhere else.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::error::{BuildError, Result};

/// The MLX release that the wheels in `vendor/wheels.txt` hold and that mlx-c 0.7.0 is written for.
pub const MLX_VERSION: &str = "0.32.2";
/// The mlx-c release that `vendor/mlx-c` pins.
pub const MLX_C_VERSION: &str = "0.7.0";

/// Which build of MLX is linked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    Cpu,
    Cuda12,
    Cuda13,
    Metal,
}

impl Backend {
    /// The name that `MLX_BACKEND` and `vendor/wheels.txt` use.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Cpu => "cpu",
            Backend::Cuda12 => "cuda12",
            Backend::Cuda13 => "cuda13",
            Backend::Metal => "metal",
        }
    }

    fn parse(name: &str) -> Option<Backend> {
        [Backend::Cpu, Backend::Cuda12, Backend::Cuda13, Backend::Metal].into_iter().find(|b| b.name() == name)
    }
}

/// Where MLX itself comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MlxSource {
    /// The released wheel of the backend, fetched into the cache.
    Wheel,
    /// `MLX_PREFIX`: an installed MLX with `include/` and `lib/`.
    Prefix(PathBuf),
    /// `MLX_SOURCE`: a checkout of MLX, built here with cmake.
    Checkout(PathBuf),
}

/// Whose matrix products MLX's CPU backend calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blas {
    /// The `cblas_*` functions of `mlx-cpu-kernels`, linked into every program.
    Builtin,
    /// The library that the wheel brings (or that an installed MLX links).
    Wheel,
    /// A shared library, put before the wheel's.
    Library(PathBuf),
}

impl Blas {
    /// The word or path that `MLX_BLAS` would give.
    pub fn name(&self) -> String {
        match self {
            Blas::Builtin => "builtin".into(),
            Blas::Wheel => "wheel".into(),
            Blas::Library(path) => path.display().to_string(),
        }
    }
}

/// Everything the environment decides about the native build.
#[derive(Debug, Clone)]
pub struct Settings {
    pub backend: Backend,
    pub mlx: MlxSource,
    /// `MLX_SOURCE_DEPS`: what MLX's cmake files would fetch, a folder each, for a checkout built without a network.
    pub mlx_dependencies: Option<PathBuf>,
    /// `MLX_C_SOURCE`: a folder of mlx-c's sources (the one that holds `mlx/c/`).
    pub mlx_c: Option<PathBuf>,
    pub blas: Blas,
    /// `LIBCLANG_PATH`: libclang or its folder, as bindgen understands it.
    pub libclang: Option<PathBuf>,
    /// The folder that holds downloads and compiled parts, shared by all builds of a user.
    pub cache: PathBuf,
    pub target: Target,
}

/// The platform that is built for, and the one that builds.
#[derive(Debug, Clone)]
pub struct Target {
    pub triple: String,
    pub host: String,
}

impl Target {
    /// Whether the target is a Mac.
    pub fn is_macos(&self) -> bool {
        self.triple.contains("apple-darwin")
    }

    /// The backend a build without `MLX_BACKEND` gets; `None` where MLX releases nothing.
    fn default_backend(&self) -> Option<Backend> {
        match self.triple.as_str() {
            "aarch64-apple-darwin" => Some(Backend::Metal),
            "x86_64-unknown-linux-gnu" | "aarch64-unknown-linux-gnu" => Some(Backend::Cpu),
            _ => None,
        }
    }
}

impl Settings {
    /// Reads the settings through `read`, which returns a variable's value, so that tests need not touch the process.
    pub fn read(read: &mut dyn FnMut(&str) -> Option<OsString>) -> Result<Settings> {
        // An empty variable is how scripts switch one off; it means the same as none.
        let mut get = |name: &str| read(name).filter(|value| !value.is_empty());
        let target = Target {
            triple: get("TARGET").unwrap_or_default().to_string_lossy().into_owned(),
            host: get("HOST").unwrap_or_default().to_string_lossy().into_owned(),
        };
        let mlx = mlx_source(&mut get)?;
        let backend = backend(&mut get, &target)?;
        if mlx == MlxSource::Wheel && target.triple != target.host {
            return Err(BuildError::new(format!(
                "MLX for {} is not fetched on {}: pip fetches wheels for its own machine only",
                target.triple, target.host
            ))
            .hint("set MLX_PREFIX to a folder with MLX's include/ and lib/ for that platform"));
        }
        Ok(Settings {
            backend,
            mlx_dependencies: get("MLX_SOURCE_DEPS").map(PathBuf::from),
            mlx,
            mlx_c: folder(&mut get, "MLX_C_SOURCE", "mlx/c/mlx.h", "the folder of mlx-c's sources")?,
            blas: blas(&mut get, &target)?,
            libclang: get("LIBCLANG_PATH").map(PathBuf::from),
            cache: cache_folder(&mut get, &target)?,
            target,
        })
    }
}

type Get<'a> = &'a mut dyn FnMut(&str) -> Option<OsString>;

fn mlx_source(get: Get<'_>) -> Result<MlxSource> {
    let prefix = folder(get, "MLX_PREFIX", "include/mlx/version.h", "an installed MLX, with include/ and lib/")?;
    let source = folder(get, "MLX_SOURCE", "mlx/version.h", "a checkout of MLX")?;
    match (prefix, source) {
        (Some(_), Some(_)) => {
            Err(BuildError::new("MLX_PREFIX and MLX_SOURCE are both set, and each names the MLX to use")
                .hint("unset one of them"))
        }
        (Some(prefix), None) => Ok(MlxSource::Prefix(prefix)),
        (None, Some(source)) => Ok(MlxSource::Checkout(source)),
        (None, None) => Ok(MlxSource::Wheel),
    }
}

/// A variable that names a folder which must hold `witness`.
fn folder(get: Get<'_>, name: &str, witness: &str, meaning: &str) -> Result<Option<PathBuf>> {
    let Some(value) = get(name) else { return Ok(None) };
    let path = PathBuf::from(value);
    if path.join(witness).is_file() {
        // A relative path would mean this package's folder here and another one in the linker.
        return path.canonicalize().map(Some).map_err(|e| BuildError::io("resolve", &path, &e));
    }
    Err(BuildError::new(format!("{name}={} has no {witness}", path.display()))
        .hint(format!("{name} names {meaning}; unset it to fetch the pinned release instead")))
}

fn backend(get: Get<'_>, target: &Target) -> Result<Backend> {
    let asked = match get("MLX_BACKEND") {
        Some(name) => Backend::parse(&name.to_string_lossy()).ok_or_else(|| {
            BuildError::new(format!("MLX_BACKEND={} is not a backend", name.to_string_lossy()))
                .hint("MLX_BACKEND is one of cpu, cuda12, cuda13, metal")
        })?,
        None => target.default_backend().ok_or_else(|| {
            BuildError::new(format!("MLX has no release for {}", target.triple)).hint(
                "MLX is released for x86_64 and aarch64 Linux (glibc 2.35 or newer) and for Apple silicon (macOS 14 or \
                 newer); with an MLX of your own set MLX_BACKEND and MLX_PREFIX",
            )
        })?,
    };
    if (asked == Backend::Metal) != target.is_macos() {
        return Err(BuildError::new(format!("MLX_BACKEND={} does not exist on {}", asked.name(), target.triple))
            .hint("metal is the backend of Apple silicon; cpu, cuda12 and cuda13 are those of Linux"));
    }
    Ok(asked)
}

fn blas(get: Get<'_>, target: &Target) -> Result<Blas> {
    match get("MLX_BLAS") {
        // A Mac's libmlx uses the Accelerate framework, bound to it by name (two-level namespace): nothing to put before it.
        None if target.is_macos() => Ok(Blas::Wheel),
        None => Ok(Blas::Builtin),
        Some(value) if value == "wheel" => Ok(Blas::Wheel),
        Some(_) if target.is_macos() => {
            Err(BuildError::new("MLX_BLAS cannot be changed on macOS, where MLX uses Accelerate")
                .hint("unset MLX_BLAS"))
        }
        Some(value) if value == "builtin" => Ok(Blas::Builtin),
        Some(value) => {
            let path = PathBuf::from(&value);
            if path.is_file() {
                return path.canonicalize().map(Blas::Library).map_err(|e| BuildError::io("resolve", &path, &e));
            }
            Err(BuildError::new(format!("MLX_BLAS={} is neither builtin, wheel nor a file", path.display()))
                .hint("name a shared library that has cblas_sgemm, such as /usr/lib/x86_64-linux-gnu/libopenblas.so.0"))
        }
    }
}

fn cache_folder(get: Get<'_>, target: &Target) -> Result<PathBuf> {
    if let Some(path) = get("MLX_RS_CACHE") {
        let path = PathBuf::from(path);
        return std::path::absolute(&path).map_err(|e| BuildError::io("resolve", &path, &e));
    }
    if let Some(path) = get("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute()) {
        return Ok(path.join("mlx-rs"));
    }
    let home = get("HOME").map(PathBuf::from).ok_or_else(|| {
        BuildError::new("there is no folder to keep downloads in: neither MLX_RS_CACHE, XDG_CACHE_HOME nor HOME is set")
            .hint("set MLX_RS_CACHE to a folder that can be written to")
    })?;
    Ok(home.join(if target.host.contains("apple-darwin") { "Library/Caches" } else { ".cache" }).join("mlx-rs"))
}
