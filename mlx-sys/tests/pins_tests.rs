//! `build/pins.rs`: what `vendor/` says.

use crate::pins::{check_version, crate_checksum, header_version, wheels};
use crate::settings::{MLX_C_VERSION, MLX_VERSION};

const WHEELS: &str = include_str!("../../vendor/wheels.txt");
const LOCK: &str = include_str!("../../vendor/mlx-c/Cargo.lock");

fn header(patch: u32) -> String {
    format!(
        "#pragma once\n#define MLX_VERSION_MAJOR 0\n#define MLX_VERSION_MINOR 32\n#define  MLX_VERSION_PATCH {patch}\n"
    )
}

#[test]
fn every_backend_pins_the_same_mlx_with_hashes() {
    for (section, package) in
        [("cpu", "mlx-cpu"), ("cuda12", "mlx-cuda-12"), ("cuda13", "mlx-cuda-13"), ("metal", "mlx-metal")]
    {
        let pinned = wheels(WHEELS, section).expect("a section of wheels.txt");
        // The first one is where the build looks for MLX itself.
        assert_eq!((pinned[0].name.as_str(), pinned[0].version.as_str()), (package, MLX_VERSION), "[{section}]");
        assert!(pinned.iter().all(|wheel| wheel.requirement.contains("--hash=sha256:")), "[{section}]");
    }
}

#[test]
fn the_cuda_sections_pin_what_the_library_needs() {
    let names = |section| -> Vec<String> {
        wheels(WHEELS, section).expect("a section").into_iter().map(|wheel| wheel.name).collect()
    };
    for part in ["cublas", "cudnn", "cufft", "cuda-nvrtc", "nccl"] {
        for section in ["cuda12", "cuda13"] {
            assert!(names(section).iter().any(|name| name.contains(part)), "[{section}] has no {part}");
        }
    }
}

#[test]
fn a_section_is_read_up_to_the_next_one() {
    let text = "# about\n# [a]\none==1.0 \\\n    --hash=sha256:aa\ntwo==2 \\\n    --hash=sha256:bb\n# [b]\nthree==3 \\\n    --hash=sha256:cc\n";
    let pinned = wheels(text, "a").expect("section a");
    assert_eq!(pinned.len(), 2);
    assert_eq!(pinned[0].requirement, "one==1.0 \\\n    --hash=sha256:aa\n");
    assert_eq!(
        (pinned[1].name.as_str(), pinned[1].version.as_str(), pinned[1].folder().as_str()),
        ("two", "2", "two-2")
    );
}

#[test]
fn a_package_without_a_hash_and_a_missing_section_are_named() {
    let error = wheels("# [a]\none==1.0\n", "a").expect_err("no hash");
    assert_eq!(error.to_string(), "error: vendor/wheels.txt: one has no hash");
    let error = wheels("# [a]\n", "b").expect_err("no section");
    assert_eq!(error.to_string(), "error: vendor/wheels.txt has no section [b]");
}

#[test]
fn the_lock_file_pins_the_sources_of_mlx_c() {
    let checksum = crate_checksum(LOCK, "mlx-sys", MLX_C_VERSION).expect("the pin");
    assert_eq!(checksum.len(), 64);
    let error = crate_checksum(LOCK, "mlx-sys", "9.9.9").expect_err("another version");
    assert_eq!(error.to_string(), "error: vendor/mlx-c/Cargo.lock does not pin mlx-sys 9.9.9");
}

#[test]
fn a_header_names_its_release() {
    assert_eq!(header_version(&header(2)).as_deref(), Some("0.32.2"));
    assert_eq!(header_version("#define MLX_VERSION_MAJOR 0\n"), None);
}

#[test]
fn headers_of_another_mlx_are_refused_in_words() {
    assert!(check_version(&header(2), "include/mlx/version.h", "0.32.2", "MLX_PREFIX").is_ok());
    let error =
        check_version(&header(4), "/opt/mlx/include/mlx/version.h", "0.32.2", "MLX_PREFIX").expect_err("0.32.4");
    assert_eq!(
        error.to_string(),
        "error: /opt/mlx/include/mlx/version.h is MLX 0.32.4, and mlx-c is written for MLX 0.32.2\n\
         hint: MLX_PREFIX must name MLX 0.32.2; unset it to fetch that release"
    );
}
