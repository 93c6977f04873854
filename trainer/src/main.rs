//! `mlx-train`: command line in, exit status out.
#![forbid(unsafe_code)]

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use mlx_rs_core::{Device, runtime};
use tracing_subscriber::EnvFilter;
use trainer::base::ModelText;
use trainer::cli::{self, Cli, Command};
use trainer::command;
use trainer::data::inspect::Marks;
use trainer::error::{EXIT_DONE, Result};

fn main() -> ExitCode {
    let cli = match cli::parse(std::env::args_os(), &version_lines()) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    start_logging(cli.verbose);
    let status = match run(cli) {
        Ok(()) => EXIT_DONE,
        Err(error) => {
            // Nothing is left to tell when standard error is closed too.
            let _ = error.print(&mut std::io::stderr());
            error.exit_code()
        }
    };
    ExitCode::from(status)
}

fn run(cli: Cli) -> Result<()> {
    let out: &mut dyn Write = &mut std::io::stdout();
    match cli.command {
        Command::Train(args) => command::train::run(&args.load()?),
        Command::Generate(args) => command::generate::run(&args, out, &mut std::io::stderr()),
        Command::Check(args) => command::check::run(&args.load()?, out),
        Command::Inspect(args) => {
            let resolved = args.config.load()?;
            let text = ModelText::find(resolved.config.model.path.as_str())?.ending_with(&resolved)?;
            let marks = if std::io::stdout().is_terminal() { Marks::Colour } else { Marks::Brackets };
            command::inspect::run(&resolved, &text, args.samples, marks, out)
        }
        Command::Init(args) => command::init::run(&args.file, out),
    }
}

/// What every report of a fault needs: versions, backend, library, BLAS.
fn version_lines() -> Vec<String> {
    let loaded = mlx_rs_core::version().unwrap_or_else(|error| error.to_string());
    vec![
        format!("mlx {loaded} (built for {}), mlx-c {}", runtime::MLX_VERSION, runtime::MLX_C_VERSION),
        format!("backend {}, gpus {}", runtime::BACKEND, Device::gpu_count()),
        format!("libraries {}", runtime::LIB_DIR),
        format!("blas {}", mlx_rs_core::blas_in_force()),
    ]
}

fn start_logging(verbose: u8) {
    let level = ["warn", "info", "debug", "trace"][usize::from(verbose.min(3))];
    let variable = if std::env::var_os("TRAINER_LOG").is_some() { "TRAINER_LOG" } else { "RUST_LOG" };
    let filter = EnvFilter::builder().with_env_var(variable).try_from_env().unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).without_time().init();
}
