//! `mlx-train` from the outside: the real program on a model that trains in milliseconds.

mod bad_config;
mod bad_data;
mod bad_model;
mod bad_output;
mod cli;
mod fixture;
mod generate;
mod inspect;
mod nonfinite;
mod readme;
mod resume;
mod stop;
mod train;
