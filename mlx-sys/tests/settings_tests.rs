//! `build/settings.rs`: what the environment may ask for, and what is said when it asks for something else.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::settings::{Backend, Blas, MlxSource, Settings};

const LINUX: &str = "x86_64-unknown-linux-gnu";
const MAC: &str = "aarch64-apple-darwin";

fn read(target: &str, variables: &[(&str, &str)]) -> Result<Settings> {
    let mut all = vec![("TARGET", target), ("HOST", target), ("HOME", "/home/user")];
    all.extend_from_slice(variables);
    Settings::read(&mut |name| all.iter().rev().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value)))
}

fn failure(target: &str, variables: &[(&str, &str)]) -> String {
    read(target, variables).expect_err("the settings are wrong").to_string()
}

fn folder_with(file: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join(file);
    fs::create_dir_all(path.parent().expect("a parent")).expect("the folder can be made");
    fs::write(path, "").expect("the file can be written");
    folder
}

#[test]
fn linux_defaults_to_the_cpu_and_our_matrix_products() {
    let settings = read(LINUX, &[]).expect("the defaults");
    assert_eq!((settings.backend, settings.mlx, settings.blas), (Backend::Cpu, MlxSource::Wheel, Blas::Builtin));
    assert_eq!(settings.cache, Path::new("/home/user/.cache/mlx-rs"));
    assert_eq!((settings.mlx_c, settings.libclang), (None, None));
}

#[test]
fn a_mac_defaults_to_metal_and_accelerate() {
    let settings = read(MAC, &[]).expect("the defaults");
    assert_eq!((settings.backend, settings.blas), (Backend::Metal, Blas::Wheel));
    assert_eq!(settings.cache, Path::new("/home/user/Library/Caches/mlx-rs"));
}

#[test]
fn an_empty_variable_is_as_good_as_none() {
    let settings = read(LINUX, &[("MLX_BACKEND", ""), ("MLX_PREFIX", ""), ("MLX_BLAS", "")]).expect("the defaults");
    assert_eq!((settings.backend, settings.mlx, settings.blas), (Backend::Cpu, MlxSource::Wheel, Blas::Builtin));
}

#[test]
fn the_cache_is_where_it_is_told_to_be() {
    let cache = |variables: &[(&str, &str)]| read(LINUX, variables).expect("settings").cache;
    assert_eq!(cache(&[("XDG_CACHE_HOME", "/x")]), PathBuf::from("/x/mlx-rs"));
    assert_eq!(cache(&[("XDG_CACHE_HOME", "/x"), ("MLX_RS_CACHE", "/c")]), PathBuf::from("/c"));
    // A relative XDG_CACHE_HOME is to be ignored, says its specification.
    assert_eq!(cache(&[("XDG_CACHE_HOME", "x")]), PathBuf::from("/home/user/.cache/mlx-rs"));
}

#[test]
fn an_unknown_backend_lists_the_known_ones() {
    assert_eq!(
        failure(LINUX, &[("MLX_BACKEND", "rocm")]),
        "error: MLX_BACKEND=rocm is not a backend\nhint: MLX_BACKEND is one of cpu, cuda12, cuda13, metal"
    );
}

#[test]
fn a_backend_of_the_other_system_is_refused() {
    assert!(
        failure(LINUX, &[("MLX_BACKEND", "metal")]).starts_with("error: MLX_BACKEND=metal does not exist on x86_64")
    );
    assert!(
        failure(MAC, &[("MLX_BACKEND", "cuda13")]).starts_with("error: MLX_BACKEND=cuda13 does not exist on aarch64")
    );
    assert_eq!(read(LINUX, &[("MLX_BACKEND", "cuda13")]).expect("cuda").backend, Backend::Cuda13);
}

#[test]
fn a_platform_without_a_release_says_which_have_one() {
    let text = failure("x86_64-pc-windows-msvc", &[]);
    assert!(
        text.starts_with("error: MLX has no release for x86_64-pc-windows-msvc\nhint: MLX is released for"),
        "{text}"
    );
}

#[test]
fn another_platform_than_the_host_is_not_fetched_for() {
    let text = failure("aarch64-unknown-linux-gnu", &[("HOST", LINUX)]);
    assert!(text.contains("is not fetched on x86_64-unknown-linux-gnu"), "{text}");
    assert!(text.contains("hint: set MLX_PREFIX"), "{text}");
    let prefix = folder_with("include/mlx/version.h");
    let prefix = prefix.path().to_str().expect("a UTF-8 path");
    assert!(read("aarch64-unknown-linux-gnu", &[("HOST", LINUX), ("MLX_PREFIX", prefix)]).is_ok());
}

#[test]
fn a_prefix_without_headers_is_refused() {
    assert_eq!(
        failure(LINUX, &[("MLX_PREFIX", "/no/such")]),
        "error: MLX_PREFIX=/no/such has no include/mlx/version.h\n\
         hint: MLX_PREFIX names an installed MLX, with include/ and lib/; unset it to fetch the pinned release instead"
    );
}

#[test]
fn a_prefix_and_a_checkout_exclude_each_other() {
    let (prefix, checkout) = (folder_with("include/mlx/version.h"), folder_with("mlx/version.h"));
    let path = |folder: &tempfile::TempDir| folder.path().to_str().expect("a UTF-8 path").to_owned();
    let both = [("MLX_PREFIX", path(&prefix)), ("MLX_SOURCE", path(&checkout))];
    let both: Vec<(&str, &str)> = both.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert!(failure(LINUX, &both).starts_with("error: MLX_PREFIX and MLX_SOURCE are both set"));
    let checkout = checkout.path().canonicalize().expect("the folder exists");
    assert_eq!(read(LINUX, &both[1..]).expect("a checkout").mlx, MlxSource::Checkout(checkout));
}

#[test]
fn the_blas_is_a_word_or_a_file() {
    assert_eq!(read(LINUX, &[("MLX_BLAS", "wheel")]).expect("a word").blas, Blas::Wheel);
    let folder = folder_with("libblas.so");
    let file = folder.path().canonicalize().expect("the folder exists").join("libblas.so");
    let named = read(LINUX, &[("MLX_BLAS", file.to_str().expect("a UTF-8 path"))]).expect("a file").blas;
    assert_eq!(named, Blas::Library(file));
    let text = failure(LINUX, &[("MLX_BLAS", "openblas")]);
    assert!(
        text.starts_with("error: MLX_BLAS=openblas is neither builtin, wheel nor a file\nhint: name a shared"),
        "{text}"
    );
    assert!(failure(MAC, &[("MLX_BLAS", "builtin")]).contains("MLX uses Accelerate"));
}
