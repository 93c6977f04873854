//! Builds an MLX of the user's own from a checkout of its sources, with cmake.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{BuildError, Result};
use crate::pins;
use crate::settings::{Backend, MLX_VERSION, Settings};

/// What MLX's cmake files would fetch: the name cmake knows it by, and its folder in `MLX_SOURCE_DEPS`.
const DEPENDENCIES: [(&str, &str); 4] =
    [("FMT", "fmt"), ("JSON", "json"), ("GGUFLIB", "gguflib"), ("METAL_CPP", "metal_cpp")];

/// Builds the checkout in `folder` and returns the folder with its `include/` and `lib/`.
pub fn build(folder: &Path, settings: &Settings, out_dir: &Path) -> Result<PathBuf> {
    let header_path = folder.join("mlx/version.h");
    let header = fs::read_to_string(&header_path).map_err(|e| BuildError::io("read", &header_path, &e))?;
    pins::check_version(&header, &header_path.display().to_string(), MLX_VERSION, "MLX_SOURCE")?;
    println!("cargo::rerun-if-changed={}", folder.join("mlx").display());
    check_cmake()?;

    let install = out_dir.join("mlx-checkout");
    let is_cuda = matches!(settings.backend, Backend::Cuda12 | Backend::Cuda13);
    let mut config = cmake::Config::new(folder);
    config
        .profile("Release")
        .out_dir(&install)
        .define("BUILD_SHARED_LIBS", "ON")
        .define("CMAKE_INSTALL_LIBDIR", "lib")
        .define("MLX_BUILD_TESTS", "OFF")
        .define("MLX_BUILD_EXAMPLES", "OFF")
        .define("MLX_BUILD_BENCHMARKS", "OFF")
        .define("MLX_BUILD_PYTHON_BINDINGS", "OFF")
        .define("MLX_BUILD_METAL", on(settings.backend == Backend::Metal))
        .define("MLX_BUILD_CUDA", on(is_cuda));
    if let Some(dependencies) = &settings.mlx_dependencies {
        config.define("FETCHCONTENT_FULLY_DISCONNECTED", "ON");
        for (name, subfolder) in DEPENDENCIES {
            let path = dependencies.join(subfolder);
            if path.is_dir() {
                config.define(format!("FETCHCONTENT_SOURCE_DIR_{name}"), path);
            }
        }
    }
    // The cmake crate reports a failed build by panicking; its text has already gone to cargo's output.
    let built = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| config.build()));
    built.map_err(|_| {
        BuildError::new(format!("cannot build the checkout of MLX in {}", folder.display()))
            .cause("cmake's output is above")
            .hint(
                "MLX fetches its dependencies by git; MLX_SOURCE_DEPS names a folder that has them in fmt/, json/, \
                 gguflib/ and, for Metal, metal_cpp/; unset MLX_SOURCE to use the released MLX",
            )
    })
}

fn on(flag: bool) -> &'static str {
    if flag { "ON" } else { "OFF" }
}

fn check_cmake() -> Result<()> {
    println!("cargo::rerun-if-env-changed=CMAKE");
    let program = std::env::var_os("CMAKE").unwrap_or_else(|| "cmake".into());
    let output = std::process::Command::new(&program).arg("--version").output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        _ => Err(BuildError::new(format!("MLX_SOURCE needs cmake, and `{}` does not run", program.to_string_lossy()))
            .hint("install cmake (Debian: apt-get install cmake), name it in CMAKE, or unset MLX_SOURCE")),
    }
}
