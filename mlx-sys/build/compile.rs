//! Compiles mlx-c and our primitives into static libraries, once for a source, MLX, compiler and set of flags.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cache::{self, Cache};
use crate::error::{BuildError, Result};
use crate::runtime::EXPORTS;
use crate::settings::{MLX_VERSION, Settings};

/// A static library to compile.
struct Library<'a> {
    /// Its name for the linker.
    name: &'static str,
    /// What it is called in messages.
    title: &'static str,
    /// Folders whose headers and sources it is made of, besides MLX's headers.
    folders: &'a [&'a Path],
    sources: Vec<PathBuf>,
}

/// Puts `libmlxc.a` into `out_dir`, compiling it unless the cache has it.
pub fn mlx_c(cache: &Cache, settings: &Settings, source: &Path, include: &Path, out_dir: &Path) -> Result<()> {
    let sources = sources(&source.join("mlx/c"))?;
    if sources.is_empty() {
        return Err(BuildError::new(format!("{} has no C++ files", source.join("mlx/c").display()))
            .hint("MLX_C_SOURCE names the folder of mlx-c's sources"));
    }
    let library = Library { name: "mlxc", title: "mlx-c", folders: &[&source.join("mlx")], sources };
    compile(cache, settings, &library, source, include, out_dir)
}

/// Puts `libmlxrs.a`, the primitives in `native/`, into `out_dir`, compiling it unless the cache has it.
pub fn primitives(cache: &Cache, settings: &Settings, source: &Path, include: &Path, out_dir: &Path) -> Result<()> {
    let native = Path::new("native").canonicalize().map_err(|e| BuildError::io("find", Path::new("native"), &e))?;
    let folders = [native.as_path(), &source.join("mlx")];
    let library = Library { name: "mlxrs", title: "the CPU primitives", folders: &folders, sources: sources(&native)? };
    compile(cache, settings, &library, source, include, out_dir)
}

fn compile(
    cache: &Cache,
    settings: &Settings,
    library: &Library,
    source: &Path,
    include: &Path,
    out_dir: &Path,
) -> Result<()> {
    let shim = Path::new("native/format_shim.h");
    let shim = shim.canonicalize().map_err(|e| BuildError::io("find", shim, &e))?;
    if settings.target.is_macos() && std::env::var_os("MACOSX_DEPLOYMENT_TARGET").is_none() {
        // The oldest system that MLX's wheel runs on; for older ones libc++ hides std::format.
        // SAFETY: the build script has one thread here.
        unsafe { std::env::set_var("MACOSX_DEPLOYMENT_TARGET", "14.0") };
    }
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++20")
        .include(source)
        .include(include)
        .flag("-include")
        .flag(&shim)
        // The same library serves debug and release builds: the code only passes calls on.
        .opt_level(2)
        .debug(false)
        .pic(true)
        .warnings(false)
        .cargo_metadata(false)
        // The linker line is written by the build script; what cc would print names one library of several.
        .cpp_link_stdlib(None);
    let compiler = build.try_get_compiler().map_err(|e| no_compiler(&e.to_string()))?;
    // Not all of `include`: CUDA's wheels add headers for the run-time compiler that mlx-c does not see.
    let headers = include.join("mlx");
    let folders: Vec<&Path> = library.folders.iter().copied().chain([headers.as_path()]).collect();
    let key = cache::digest(
        &folders,
        &[
            &settings.target.triple,
            &version_of(compiler.path())?,
            "c++20 -O2 -fPIC",
            &fs::read_to_string(&shim).map_err(|e| BuildError::io("read", &shim, &e))?,
        ],
    )?;
    let file = format!("lib{}.a", library.name);
    let folder = cache.entry(&format!("{}-{}", library.name, key.get(..16).unwrap_or(&key)), &key, |folder| {
        let objects = out_dir.join(library.name);
        build.files(&library.sources).out_dir(&objects).try_compile(library.name).map_err(|e| {
            BuildError::new(format!("cannot compile {}", library.title)).cause(e.to_string()).hint(format!(
                "it needs a C++20 compiler (g++ 12 or clang 16 and newer) and the headers of MLX {MLX_VERSION}; CXX names another compiler"
            ))
        })?;
        copy(&objects.join(&file), &folder.join(&file))
    })?;
    // The copy outlives a cache that is emptied between two builds.
    copy(&folder.join(&file), &out_dir.join(&file))
}

/// The C++ files below `folder`.
fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let files = cache::files(folder)?;
    Ok(files.into_iter().filter(|path| path.extension().is_some_and(|ext| ext == "cpp")).collect())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).map(|_| ()).map_err(|e| BuildError::io("copy", from, &e))
}

fn version_of(compiler: &Path) -> Result<String> {
    let output = Command::new(compiler).arg("--version").output();
    let output = output.map_err(|e| no_compiler(&format!("{}: {e}", compiler.display())))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn no_compiler(why: &str) -> BuildError {
    BuildError::new("mlx-c cannot be compiled without a C++ compiler")
        .cause(why)
        .hint("install one (Debian: apt-get install g++; macOS: xcode-select --install), or name it in CXX")
}

/// The folder of the C compiler's own headers (`stddef.h`), for a libclang that came without any.
pub fn compiler_headers() -> Option<PathBuf> {
    let compiler = cc::Build::new().cargo_metadata(false).try_get_compiler().ok()?;
    let output = Command::new(compiler.path()).arg("-print-file-name=include").output().ok()?;
    let folder = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    folder.join("stddef.h").is_file().then_some(folder)
}

/// Whether the linker that rustc will use knows the options in [`EXPORTS`]: GNU ld before 2.35 and gold do not.
pub fn linker_exports(settings: &Settings, out_dir: &Path) -> bool {
    let Some(rustc) = std::env::var_os("RUSTC") else { return false };
    let source = out_dir.join("probe.rs");
    if fs::write(&source, "fn main() {}\n").is_err() {
        return false;
    }
    let mut probe = Command::new(rustc);
    probe.args(["--edition=2024", "--crate-name=probe", "--target", &settings.target.triple]);
    probe.arg("-o").arg(out_dir.join("probe")).arg(&source);
    if let Some(linker) = std::env::var_os("RUSTC_LINKER") {
        probe.arg("-C").arg(format!("linker={}", linker.to_string_lossy()));
    }
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    probe.args(flags.split('\x1f').filter(|flag| !flag.is_empty()));
    probe.args(EXPORTS.map(|export| format!("-Clink-arg={export}")));
    probe.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}
