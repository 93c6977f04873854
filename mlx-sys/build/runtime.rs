//! Lays the shared libraries out next to the programs and says how programs find them there.
//!
//! The layout is the wheel's own, in `<target>/<profile>/mlx-runtime/`: `mlx/lib/libmlx.so` looks for its libraries
//! in `../../mlx_cpu.libs` or `../../nvidia` and for the headers of its run-time compiler in `../include`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::cache;
use crate::error::{BuildError, Result};
use crate::settings::{Backend, Blas, Settings};

/// The folder, next to the programs, that holds what they load.
const FOLDER: &str = "mlx-runtime";

/// Where the libraries come from.
pub enum Origin {
    /// Unpacked wheels; the first one holds `mlx/`.
    Wheels(Vec<PathBuf>),
    /// A folder with `include/` and `lib/`.
    Prefix(PathBuf),
}

impl Origin {
    /// The folder with MLX's `include/` and `lib/`.
    pub fn prefix(&self) -> PathBuf {
        match self {
            Origin::Wheels(wheels) => wheels.first().map(|wheel| wheel.join("mlx")).unwrap_or_default(),
            Origin::Prefix(prefix) => prefix.clone(),
        }
    }
}

/// The laid-out libraries.
pub struct Runtime {
    /// `mlx-runtime`.
    pub folder: PathBuf,
    /// The folder of `libmlx` in it.
    pub lib: PathBuf,
    /// A file that is gone when the layout is.
    pub marker: PathBuf,
}

/// Lays the libraries of `origin` out in the profile folder that `out_dir` belongs to.
pub fn install(origin: &Origin, settings: &Settings, out_dir: &Path) -> Result<Runtime> {
    let folder = profile_folder(out_dir).join(FOLDER);
    let runtime = Runtime { lib: folder.join("mlx/lib"), marker: folder.join("contents.txt"), folder };
    let library = library_name(settings);
    if !origin.prefix().join("lib").join(library).is_file() {
        return Err(BuildError::new(format!("{} has no lib/{library}", origin.prefix().display()))
            .hint("MLX must be built as a shared library (BUILD_SHARED_LIBS=ON)"));
    }
    let contents = contents(origin);
    let is_current = fs::read_to_string(&runtime.marker).is_ok_and(|text| text == contents);
    if is_current && runtime.lib.join(library).is_file() {
        return Ok(runtime);
    }
    if runtime.folder.exists() {
        fs::remove_dir_all(&runtime.folder).map_err(|e| BuildError::io("remove", &runtime.folder, &e))?;
    }
    fs::create_dir_all(&runtime.folder).map_err(|e| BuildError::io("create", &runtime.folder, &e))?;
    match origin {
        Origin::Wheels(wheels) => {
            for wheel in wheels {
                cache::copy_tree(wheel, &runtime.folder, link_or_copy)?;
            }
        }
        Origin::Prefix(prefix) => {
            // A link, not copies: what an installed library needs lies at unknown places around it.
            let link = runtime.folder.join("mlx");
            std::os::unix::fs::symlink(prefix, &link).map_err(|e| BuildError::io("link", &link, &e))?;
        }
    }
    write_marker(&runtime.marker, &contents)?;
    Ok(runtime)
}

fn contents(origin: &Origin) -> String {
    let folders = match origin {
        Origin::Wheels(wheels) => wheels.as_slice(),
        Origin::Prefix(prefix) => std::slice::from_ref(prefix),
    };
    folders.iter().map(|folder| format!("{}\n", folder.display())).collect()
}

fn write_marker(path: &Path, contents: &str) -> Result<()> {
    let write = || {
        fs::write(path, contents)?;
        // cargo watches this file and would take one younger than the build for an edited one.
        fs::File::options().write(true).open(path)?.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(86_400))
    };
    write().map_err(|e| BuildError::io("write", path, &e))
}

fn link_or_copy(from: &Path, to: &Path) -> std::io::Result<()> {
    // Wheels of one vendor may bring the same file (nvidia/__init__.py).
    if to.exists() {
        fs::remove_file(to)?;
    }
    // A hard link costs no space, but the cache may be on another file system.
    fs::hard_link(from, to).or_else(|_| fs::copy(from, to).map(|_| ()))
}

fn library_name(settings: &Settings) -> &'static str {
    if settings.target.is_macos() { "libmlx.dylib" } else { "libmlx.so" }
}

/// `<target>/<profile>` for an `OUT_DIR` of `<target>/<profile>/build/<package>/out`; `OUT_DIR` itself elsewhere.
pub fn profile_folder(out_dir: &Path) -> PathBuf {
    out_dir
        .ancestors()
        .find(|folder| folder.file_name().is_some_and(|name| name == "build"))
        .and_then(Path::parent)
        .unwrap_or(out_dir)
        .to_path_buf()
}

/// The linker arguments that every program needs, in order.
pub fn link_args(lib: &Path, settings: &Settings, exports: bool) -> Vec<String> {
    let origin = if settings.target.is_macos() { "@loader_path" } else { "$ORIGIN" };
    let mut args = vec![
        // Beside a program, one up from a test or an example, and at last where this build put it.
        format!("-Wl,-rpath,{origin}/{FOLDER}/mlx/lib"),
        format!("-Wl,-rpath,{origin}/../{FOLDER}/mlx/lib"),
        format!("-Wl,-rpath,{}", lib.display()),
    ];
    if settings.target.is_macos() {
        return args;
    }
    // LD_LIBRARY_PATH must win over the rpath: that is how a program built for the CPU runs on CUDA.
    args.push("-Wl,--enable-new-dtags".into());
    if matches!(settings.backend, Backend::Cuda12 | Backend::Cuda13) {
        // libcuda belongs to the driver, and the machine that builds need not have one.
        args.push("-Wl,--allow-shlib-undefined".into());
    }
    match &settings.blas {
        Blas::Builtin if exports => args.extend(EXPORTS.map(String::from)),
        // Older linkers can only export every symbol of a program.
        Blas::Builtin => args.push("-Wl,--export-dynamic".into()),
        Blas::Wheel => {}
        Blas::Library(path) => {
            // Needed directly by the program, it is searched before what libmlx needs; nothing refers to it yet, so
            // the linker must be told to keep it.
            args.push(format!("-Wl,--no-as-needed,{},--as-needed", path.display()));
            if let Some(folder) = path.parent() {
                args.push(format!("-Wl,-rpath,{}", folder.display()));
            }
        }
    }
    args
}

/// Puts the program's own matrix products where libmlx's look-up of them begins.
pub const EXPORTS: [&str; 2] = ["-Wl,--export-dynamic-symbol=cblas_sgemm", "-Wl,--export-dynamic-symbol=cblas_dgemm"];
