//! Provides MLX, compiles mlx-c and our primitives against it and binds mlx-c's headers. The steps are the modules of `build/`;
//! `docs/NATIVE.md` tells the whole story.

#[path = "build/bind.rs"]
mod bind;
#[path = "build/cache.rs"]
mod cache;
#[path = "build/checkout.rs"]
mod checkout;
#[path = "build/compile.rs"]
mod compile;
#[path = "build/error.rs"]
mod error;
#[path = "build/fetch.rs"]
mod fetch;
#[path = "build/pins.rs"]
mod pins;
#[path = "build/runtime.rs"]
mod runtime;
#[path = "build/settings.rs"]
mod settings;

use std::fs;
use std::path::{Path, PathBuf};

use cache::Cache;
use error::{BuildError, Result};
use runtime::{Origin, Runtime};
use settings::{Blas, MLX_C_VERSION, MLX_VERSION, MlxSource, Settings};

fn main() {
    if let Err(error) = run() {
        error.report();
        std::process::exit(1);
    }
}

fn run() -> Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=native");
    let settings = Settings::read(&mut |name| {
        // TARGET and HOST are cargo's own words to a build script, no variables of the user's.
        if !matches!(name, "TARGET" | "HOST") {
            println!("cargo::rerun-if-env-changed={name}");
        }
        std::env::var_os(name)
    })?;
    let out_dir = PathBuf::from(std::env::var_os("OUT_DIR").ok_or_else(|| BuildError::new("OUT_DIR is not set"))?);
    let vendor = Path::new("../vendor").canonicalize().map_err(|e| BuildError::io("find", Path::new("vendor"), &e))?;
    let pins_path = vendor.join("wheels.txt");
    println!("cargo::rerun-if-changed={}", pins_path.display());
    println!("cargo::rerun-if-changed={}", vendor.join("mlx-c").display());
    let pins_text = fs::read_to_string(&pins_path).map_err(|e| BuildError::io("read", &pins_path, &e))?;

    let cache = Cache::open(&settings.cache, &settings.target.host)?;
    let origin = mlx(&cache, &settings, &pins_text, &out_dir)?;
    let include = origin.prefix().join("include");
    check_headers(&include, &settings)?;
    let runtime = runtime::install(&origin, &settings, &out_dir)?;
    let source = fetch::mlx_c(&cache, &settings, &vendor)?;
    compile::mlx_c(&cache, &settings, &source, &include, &out_dir)?;
    compile::primitives(&cache, &settings, &source, &include, &out_dir)?;
    let libclang = pins::wheels(&pins_text, "libclang")?.swap_remove(0);
    bind::headers(&cache, &settings, &source, &libclang, &out_dir)?;
    announce(&runtime, &settings, &source, &out_dir);
    Ok(())
}

/// Finds, fetches or builds MLX.
fn mlx(cache: &Cache, settings: &Settings, pins: &str, out_dir: &Path) -> Result<Origin> {
    match &settings.mlx {
        MlxSource::Prefix(prefix) => Ok(Origin::Prefix(prefix.clone())),
        MlxSource::Checkout(folder) => checkout::build(folder, settings, out_dir).map(Origin::Prefix),
        MlxSource::Wheel => {
            let wheels = pins::wheels(pins, settings.backend.name())?;
            let folders: Result<Vec<PathBuf>> = wheels.iter().map(|wheel| fetch::wheel(cache, wheel)).collect();
            folders.map(Origin::Wheels)
        }
    }
}

fn check_headers(include: &Path, settings: &Settings) -> Result<()> {
    let path = include.join("mlx/version.h");
    let header = fs::read_to_string(&path).map_err(|e| BuildError::io("read", &path, &e))?;
    let origin = match settings.mlx {
        MlxSource::Wheel => "vendor/wheels.txt",
        MlxSource::Prefix(_) => "MLX_PREFIX",
        MlxSource::Checkout(_) => "MLX_SOURCE",
    };
    pins::check_version(&header, &path.display().to_string(), MLX_VERSION, origin)
}

/// Tells cargo what to link and the packages above what their programs need.
fn announce(runtime: &Runtime, settings: &Settings, source: &Path, out_dir: &Path) {
    println!("cargo::rerun-if-changed={}", runtime.marker.display());
    println!("cargo::rustc-link-search=native={}", out_dir.display());
    // Each before what it calls: the primitives report through mlx-c.
    println!("cargo::rustc-link-lib=static=mlxrs");
    println!("cargo::rustc-link-lib=static=mlxc");
    // Inside the target folder, so cargo puts it on the library path of what it runs.
    println!("cargo::rustc-link-search=native={}", runtime.lib.display());
    println!("cargo::rustc-link-lib=dylib=mlx");
    if settings.target.is_macos() {
        println!("cargo::rustc-link-lib=dylib=c++");
        for framework in ["Metal", "Foundation", "QuartzCore", "Accelerate"] {
            println!("cargo::rustc-link-lib=framework={framework}");
        }
    } else {
        println!("cargo::rustc-link-lib=dylib=stdc++");
    }

    let exports = settings.blas == Blas::Builtin && compile::linker_exports(settings, out_dir);
    let args = runtime::link_args(&runtime.lib, settings, exports);
    for arg in &args {
        println!("cargo::rustc-link-arg={arg}");
    }
    // cargo hands link arguments to no other package: their build scripts repeat these (DEP_MLX_LINK_ARGS).
    println!("cargo::metadata=link_args={}", args.join("\t"));
    println!("cargo::metadata=rpath={}", runtime.lib.display());

    println!("cargo::rustc-check-cfg=cfg(mlx_blas_builtin)");
    if settings.blas == Blas::Builtin {
        println!("cargo::rustc-cfg=mlx_blas_builtin");
    }
    println!("cargo::rustc-env=MLX_SYS_MLX_VERSION={MLX_VERSION}");
    println!("cargo::rustc-env=MLX_SYS_MLX_C_VERSION={MLX_C_VERSION}");
    println!("cargo::rustc-env=MLX_SYS_BACKEND={}", settings.backend.name());
    println!("cargo::rustc-env=MLX_SYS_BLAS={}", settings.blas.name());
    println!("cargo::rustc-env=MLX_SYS_LIB_DIR={}", runtime.lib.display());
    println!("cargo::rustc-env=MLX_SYS_C_HEADERS={}", source.join("mlx/c").display());
}
