//! What this build is linked with.

/// The release of MLX whose headers mlx-c was compiled against, such as `0.32.2`.
pub const MLX_VERSION: &str = env!("MLX_SYS_MLX_VERSION");

/// The release of mlx-c that is bound, such as `0.7.0`.
pub const MLX_C_VERSION: &str = env!("MLX_SYS_MLX_C_VERSION");

/// The build of MLX that is linked: `cpu`, `cuda12`, `cuda13` or `metal`.
pub const BACKEND: &str = env!("MLX_SYS_BACKEND");

/// Whose matrix products MLX's CPU backend calls: `builtin` (those of `mlx-cpu-kernels`), `wheel` (what MLX was
/// released with) or the path of a shared library.
pub const BLAS: &str = env!("MLX_SYS_BLAS");

/// The folder of the `libmlx` that this build linked. A program looks beside itself first (`mlx-runtime/mlx/lib`).
pub const LIB_DIR: &str = env!("MLX_SYS_LIB_DIR");
