//! `build/runtime.rs`: the libraries beside the programs.

use std::fs;
use std::path::{Path, PathBuf};

use crate::runtime::{Origin, install, link_args, profile_folder};
use crate::settings::{Backend, Blas, MlxSource, Settings, Target};

fn settings(triple: &str, backend: Backend, blas: Blas) -> Settings {
    Settings {
        backend,
        mlx: MlxSource::Wheel,
        mlx_dependencies: None,
        mlx_c: None,
        blas,
        libclang: None,
        cache: PathBuf::new(),
        target: Target { triple: triple.into(), host: triple.into() },
    }
}

fn linux(backend: Backend, blas: Blas) -> Settings {
    settings("x86_64-unknown-linux-gnu", backend, blas)
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a parent")).expect("the folder can be made");
    fs::write(path, text).expect("the file can be written");
}

#[test]
fn the_profile_folder_is_above_build() {
    let found = |path: &str| profile_folder(Path::new(path)).display().to_string();
    assert_eq!(found("/t/debug/build/mlx-sys-0123/out"), "/t/debug");
    assert_eq!(
        found("/t/aarch64-unknown-linux-gnu/release/build/mlx-sys/0123/out"),
        "/t/aarch64-unknown-linux-gnu/release"
    );
    assert_eq!(found("/elsewhere/out"), "/elsewhere/out");
}

#[test]
fn wheels_keep_their_layout_and_share_folders() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (mlx, extra) = (folder.path().join("mlx-cuda"), folder.path().join("cublas"));
    write(&mlx.join("mlx/lib/libmlx.so"), "mlx");
    write(&mlx.join("mlx_cuda.libs/libblas.so"), "blas");
    write(&mlx.join("nvidia/__init__.py"), "");
    write(&extra.join("nvidia/__init__.py"), "");
    write(&extra.join("nvidia/cu13/lib/libcublasLt.so.13"), "cublas");
    let out_dir = folder.path().join("target/debug/build/mlx-sys-0/out");
    let origin = Origin::Wheels(vec![mlx, extra]);
    let runtime = install(&origin, &linux(Backend::Cuda13, Blas::Wheel), &out_dir).expect("laid out");
    assert_eq!(runtime.lib, folder.path().join("target/debug/mlx-runtime/mlx/lib"));
    let read = |path: &str| fs::read_to_string(runtime.lib.join(path)).expect("a file of the layout");
    // The paths are those of the libraries' own rpath.
    assert_eq!(read("libmlx.so"), "mlx");
    assert_eq!(read("../../mlx_cuda.libs/libblas.so"), "blas");
    assert_eq!(read("../../nvidia/cu13/lib/libcublasLt.so.13"), "cublas");
}

#[test]
fn another_mlx_replaces_the_one_that_was_there() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (wheel, prefix) = (folder.path().join("wheel"), folder.path().join("prefix"));
    write(&wheel.join("mlx/lib/libmlx.so"), "of the wheel");
    write(&wheel.join("mlx_cpu.libs/libblas.so"), "blas");
    write(&prefix.join("lib/libmlx.so"), "of the prefix");
    let out_dir = folder.path().join("target/debug/build/mlx-sys-0/out");
    let settings = linux(Backend::Cpu, Blas::Builtin);
    let first = install(&Origin::Wheels(vec![wheel.clone()]), &settings, &out_dir).expect("laid out");
    assert_eq!(fs::read_to_string(first.lib.join("libmlx.so")).expect("a library"), "of the wheel");
    let second = install(&Origin::Prefix(prefix.clone()), &settings, &out_dir).expect("laid out");
    assert_eq!(fs::read_to_string(second.lib.join("libmlx.so")).expect("a library"), "of the prefix");
    assert!(!second.folder.join("mlx_cpu.libs").exists());
    // Taking the link away again must not take what it points to.
    install(&Origin::Wheels(vec![wheel]), &settings, &out_dir).expect("laid out");
    assert!(prefix.join("lib/libmlx.so").is_file());
}

#[test]
fn a_prefix_with_a_static_library_only_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write(&folder.path().join("lib/libmlx.a"), "");
    let origin = Origin::Prefix(folder.path().to_path_buf());
    let result = install(&origin, &linux(Backend::Cpu, Blas::Builtin), &folder.path().join("debug/build/x/out"));
    let text = result.map(|_| ()).expect_err("no shared library").to_string();
    let path = folder.path().display();
    assert_eq!(
        text,
        format!(
            "error: {path} has no lib/libmlx.so\nhint: MLX must be built as a shared library (BUILD_SHARED_LIBS=ON)"
        )
    );
}

#[test]
fn programs_look_beside_themselves_first() {
    let args = link_args(Path::new("/t/mlx-runtime/mlx/lib"), &linux(Backend::Cpu, Blas::Builtin), true);
    assert_eq!(
        args,
        [
            "-Wl,-rpath,$ORIGIN/mlx-runtime/mlx/lib",
            "-Wl,-rpath,$ORIGIN/../mlx-runtime/mlx/lib",
            "-Wl,-rpath,/t/mlx-runtime/mlx/lib",
            "-Wl,--enable-new-dtags",
            "-Wl,--export-dynamic-symbol=cblas_sgemm",
            "-Wl,--export-dynamic-symbol=cblas_dgemm",
        ]
    );
}

#[test]
fn a_mac_gets_no_arguments_of_gnu_linkers() {
    let settings = settings("aarch64-apple-darwin", Backend::Metal, Blas::Wheel);
    let args = link_args(Path::new("/t/lib"), &settings, false);
    assert_eq!(
        args,
        [
            "-Wl,-rpath,@loader_path/mlx-runtime/mlx/lib",
            "-Wl,-rpath,@loader_path/../mlx-runtime/mlx/lib",
            "-Wl,-rpath,/t/lib"
        ]
    );
}

#[test]
fn cuda_links_without_a_driver_and_a_named_blas_is_kept() {
    let blas = Blas::Library(PathBuf::from("/opt/blas/libblas.so"));
    let args = link_args(Path::new("/t/lib"), &linux(Backend::Cuda12, blas), true);
    assert_eq!(
        args[4..],
        ["-Wl,--allow-shlib-undefined", "-Wl,--no-as-needed,/opt/blas/libblas.so,--as-needed", "-Wl,-rpath,/opt/blas"]
    );
}

#[test]
fn an_old_linker_exports_every_symbol() {
    let args = link_args(Path::new("/t/lib"), &linux(Backend::Cpu, Blas::Builtin), false);
    assert_eq!(args[4..], ["-Wl,--export-dynamic"]);
    let args = link_args(Path::new("/t/lib"), &linux(Backend::Cpu, Blas::Wheel), true);
    assert!(args.iter().all(|arg| !arg.contains("export")), "{args:?}");
}
