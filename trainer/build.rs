//! Links this package's programs so that they find MLX; `mlx-sys` says how.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for arg in std::env::var("DEP_MLX_LINK_ARGS").unwrap_or_default().split_terminator('\t') {
        println!("cargo::rustc-link-arg={arg}");
    }
}
