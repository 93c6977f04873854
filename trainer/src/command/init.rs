//! `init`: a commented configuration to start from.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;

use super::print;
use crate::config::reference::commented_toml;
use crate::error::{Detail, Place, Result, Stage, TrainError};

/// Writes the configuration to `file` and says so on `out`; `-` writes it to `out`.
///
/// # Errors
/// A file that is there already, or cannot be written.
pub fn run(file: &Path, out: &mut dyn Write) -> Result<()> {
    if file == Path::new("-") {
        return print(out, &commented_toml());
    }
    let refused = |error: std::io::Error| match error.kind() {
        ErrorKind::AlreadyExists => {
            let detail = Detail::new(Place::file(file), "", "a file of this name", "a new one");
            TrainError::config(detail.hint("name another file: mlx-train init FILE"))
        }
        _ => TrainError::io(Stage::Config, "write", file, error),
    };
    let mut created = File::create_new(file).map_err(refused)?;
    created
        .write_all(commented_toml().as_bytes())
        .map_err(|error| TrainError::io(Stage::Config, "write", file, error))?;
    let name = file.display();
    print(out, &format!("wrote {name}; set model.path and data.train in it, then: mlx-train train {name}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_is_written_and_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.toml");
        let mut out = Vec::new();
        run(&path, &mut out).unwrap();
        assert!(String::from_utf8(out).unwrap().starts_with(&format!("wrote {}", path.display())));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), commented_toml());
        std::fs::write(&path, "mine").unwrap();
        let error = run(&path, &mut Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), format!("{}: found a file of this name, wanted a new one", path.display()));
        assert_eq!(error.exit_code(), 2);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    }

    #[test]
    fn a_dash_writes_to_standard_output() {
        let mut out = Vec::new();
        run(Path::new("-"), &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), commented_toml());
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        let error = run(Path::new("no/such/c.toml"), &mut Vec::new()).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.exit_code()), ("cannot write no/such/c.toml", 2));
    }
}
