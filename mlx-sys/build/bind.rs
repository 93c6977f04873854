//! Writes the Rust declarations of every function in mlx-c's headers.

use std::path::{Path, PathBuf};

use crate::cache::{self, Cache};
use crate::compile;
use crate::error::{BuildError, Result};
use crate::fetch;
use crate::pins::Wheel;
use crate::settings::Settings;

/// Binds the headers below `source` into `bindings.rs` in `out_dir`.
pub fn headers(cache: &Cache, settings: &Settings, source: &Path, wheel: &Wheel, out_dir: &Path) -> Result<()> {
    let libclang = libclang(cache, settings, wheel)?;
    // SAFETY: the build script has one thread here, and this is how libclang's loader is told where to look.
    unsafe { std::env::set_var("LIBCLANG_PATH", &libclang) };
    let includes: String = public_headers(source)?.iter().map(|header| format!("#include \"{header}\"\n")).collect();
    let mut builder = bindgen::Builder::default()
        .header_contents("mlx_c.h", &includes)
        .clang_arg(format!("-I{}", source.display()))
        .allowlist_item("_?mlx_.*|MLX_.*")
        // Half floats exist as a C type on ARM only and have no Rust type that is passed the same way. Arrays of them
        // are read through the accessors of 16-bit integers on every platform alike.
        .blocklist_item("float16_t|bfloat16_t|mlx_array_(item|data)_b?float16")
        // Only ever passed on as a pointer; its fields are the C library's own affair.
        .opaque_type("_IO_FILE|__sFILE")
        .prepend_enum_name(false)
        .generate_comments(true)
        .layout_tests(false);
    // A libclang may come without clang's own headers (the wheel does, and so do some distributions' packages). The C
    // compiler's stand in for them; searched last, they never hide clang's.
    if let Some(folder) = compile::compiler_headers() {
        builder = builder.clang_args(["-idirafter", &folder.display().to_string()]);
    }
    let bindings = builder.generate().map_err(|e| {
        BuildError::new("cannot bind mlx-c's headers")
            .cause(e.to_string())
            .hint(format!("libclang was taken from {}; LIBCLANG_PATH names another", libclang.display()))
    })?;
    let file = out_dir.join("bindings.rs");
    bindings.write_to_file(&file).map_err(|e| BuildError::io("write", &file, &e))
}

/// mlx-c's headers as `#include` names them, private ones apart.
fn public_headers(source: &Path) -> Result<Vec<String>> {
    let folder = source.join("mlx/c");
    let files = cache::files(&folder)?;
    let names = files.iter().filter_map(|path| path.strip_prefix(&folder).ok()?.to_str());
    Ok(names.filter(|name| name.ends_with(".h") && !name.contains('/')).map(|name| format!("mlx/c/{name}")).collect())
}

/// The libclang to use: the named one, an installed one, or the wheel's.
fn libclang(cache: &Cache, settings: &Settings, wheel: &Wheel) -> Result<PathBuf> {
    if let Some(path) = settings.libclang.clone().or_else(installed) {
        return Ok(path);
    }
    let folder = fetch::wheel(cache, wheel)?;
    let path = folder.join(format!("{}.data/platlib/clang/native", wheel.folder()));
    if !path.is_dir() {
        return Err(BuildError::new(format!("the wheel of {} has no {}", wheel.folder(), path.display()))
            .hint("LIBCLANG_PATH names another libclang"));
    }
    Ok(path)
}

/// The newest libclang of the system's packages, of Homebrew or of Xcode.
fn installed() -> Option<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = Vec::new();
    for entry in std::fs::read_dir("/usr/lib").into_iter().flatten().flatten() {
        let name = entry.file_name();
        if let Some(version) = name.to_str().and_then(|name| name.strip_prefix("llvm-")?.parse().ok()) {
            versions.push((version, entry.path().join("lib")));
        }
    }
    versions.sort();
    let fixed = [
        "/usr/lib64",
        "/usr/lib",
        "/opt/homebrew/opt/llvm/lib",
        "/Library/Developer/CommandLineTools/usr/lib",
        "/Applications/Xcode.app/Contents/Developer/Toolchains/XcodeDefault.xctoolchain/usr/lib",
    ];
    let mut folders = versions.into_iter().rev().map(|(_, folder)| folder).chain(fixed.map(PathBuf::from));
    let names = ["libclang.so", "libclang.so.1", "libclang.dylib"];
    folders.find(|folder| names.iter().any(|name| folder.join(name).is_file()))
}
