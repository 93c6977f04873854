//! What `vendor/` pins: wheels with their hashes, and the checksum of the crate that packages mlx-c.

use crate::error::{BuildError, Result};

/// One package of `vendor/wheels.txt`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wheel {
    pub name: String,
    pub version: String,
    /// The lines as pip reads them, hashes included.
    pub requirement: String,
}

impl Wheel {
    /// `name-version`, the wheel's folder in the cache.
    pub fn folder(&self) -> String {
        format!("{}-{}", self.name, self.version)
    }
}

/// The packages under `# [section]` of a `wheels.txt`, in the order they are written.
pub fn wheels(text: &str, section: &str) -> Result<Vec<Wheel>> {
    let heading = format!("# [{section}]");
    let mut wheels: Vec<Wheel> = Vec::new();
    let lines = text.lines().skip_while(|line| line.trim_end() != heading).skip(1);
    for line in lines.take_while(|line| !line.starts_with("# [")) {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some((name, rest)) = line.split_once("==") {
            let version = rest.trim_end_matches('\\').trim().to_owned();
            wheels.push(Wheel { name: name.trim().to_owned(), version, requirement: String::new() });
        }
        let Some(wheel) = wheels.last_mut() else {
            return Err(BuildError::new(format!("vendor/wheels.txt: `{line}` belongs to no package")));
        };
        wheel.requirement.push_str(line);
        wheel.requirement.push('\n');
    }
    match wheels.iter().find(|wheel| !wheel.requirement.contains("--hash=sha256:")) {
        Some(wheel) => Err(BuildError::new(format!("vendor/wheels.txt: {} has no hash", wheel.name))),
        None if wheels.is_empty() => Err(BuildError::new(format!("vendor/wheels.txt has no section [{section}]"))),
        None => Ok(wheels),
    }
}

/// The checksum of `name` `version` in the text of a `Cargo.lock`.
pub fn crate_checksum(lock: &str, name: &str, version: &str) -> Result<String> {
    let (name_line, version_line) = (format!("name = \"{name}\""), format!("version = \"{version}\""));
    lock.split("[[package]]")
        .filter(|block| block.lines().any(|l| l == name_line) && block.lines().any(|l| l == version_line))
        .find_map(|block| block.lines().find_map(|l| l.strip_prefix("checksum = \"")?.strip_suffix('"')))
        .map(String::from)
        .ok_or_else(|| BuildError::new(format!("vendor/mlx-c/Cargo.lock does not pin {name} {version}")))
}

/// The release that a `mlx/version.h` names, such as `0.32.2`.
pub fn header_version(header: &str) -> Option<String> {
    let part = |name: &str| {
        header.lines().find_map(|line| {
            let mut words = line.split_whitespace();
            (words.next() == Some("#define") && words.next() == Some(name)).then(|| words.next().map(str::to_owned))?
        })
    };
    Some(format!("{}.{}.{}", part("MLX_VERSION_MAJOR")?, part("MLX_VERSION_MINOR")?, part("MLX_VERSION_PATCH")?))
}

/// Refuses headers of another MLX before the compiler does it in its own words.
pub fn check_version(header: &str, path: &str, wanted: &str, origin: &str) -> Result<()> {
    match header_version(header) {
        Some(found) if found == wanted => Ok(()),
        found => {
            let found = found.unwrap_or_else(|| "of an unknown release".into());
            Err(BuildError::new(format!("{path} is MLX {found}, and mlx-c is written for MLX {wanted}"))
                .hint(format!("{origin} must name MLX {wanted}; unset it to fetch that release")))
        }
    }
}
