//! Decides whether the CBLAS symbols are exported: they are unless `MLX_BLAS` names another BLAS, and never on macOS,
//! where MLX uses Accelerate.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=MLX_BLAS");
    println!("cargo::rustc-check-cfg=cfg(export_blas)");

    let target_os = env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    let choice = env::var("MLX_BLAS").unwrap_or_default();
    let builtin = matches!(choice.as_str(), "" | "builtin");
    if builtin && target_os != "macos" {
        println!("cargo::rustc-cfg=export_blas");
    }
    let other = if builtin { "Accelerate" } else { &choice };
    println!("cargo::rustc-env=MLX_CPU_KERNELS_OTHER_BLAS={other}");
}
