//! The list of pinned model packages.
//!
//! It is a pip requirements file, one `name==version --hash=sha256:…` a line. A line `#: name file=PATH sha256=…`
//! after it, a comment to pip, names the model file inside the package and its own checksum.

use std::path::Path;

use crate::error::{ModelError, Result};

/// A pinned package with a model inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelPackage {
    /// Name of the package.
    pub name: String,
    /// Its exact version.
    pub version: String,
    /// SHA-256 of the package, in hexadecimal.
    pub package_sha256: String,
    /// The model file inside the package.
    pub file: String,
    /// SHA-256 of the model file, in hexadecimal.
    pub file_sha256: String,
}

impl ModelPackage {
    /// `name==version`.
    pub fn pin(&self) -> String {
        format!("{}=={}", self.name, self.version)
    }

    /// Its folder in the cache.
    pub(super) fn folder(&self) -> String {
        format!("{}-{}", self.name, self.version)
    }

    /// Its line in a requirements file.
    pub(super) fn requirement(&self) -> String {
        format!("{} --hash=sha256:{}\n", self.pin(), self.package_sha256)
    }
}

/// The package called `name` in the text of a list.
pub(super) fn find(list: &str, name: &str) -> Result<ModelPackage> {
    let packages = parse(list)?;
    let known: Vec<_> = packages.iter().map(|package| package.name.clone()).collect();
    packages.into_iter().find(|package| package.name == name).ok_or_else(|| {
        let near = known.iter().max_by(|a, b| strsim::jaro_winkler(a, name).total_cmp(&strsim::jaro_winkler(b, name)));
        let error = ModelError::package(
            Path::new("vendor/models.txt"),
            "",
            format!("no package \"{name}\""),
            format!("one of: {}", known.join(", ")),
        );
        match near.filter(|near| strsim::jaro_winkler(near, name) > 0.8) {
            Some(near) => error.with_hint(format!("did you mean pip:{near}?")),
            None => error,
        }
    })
}

/// All packages of a list.
pub(super) fn parse(list: &str) -> Result<Vec<ModelPackage>> {
    let mut packages: Vec<ModelPackage> = Vec::new();
    for (line, number) in list.lines().map(str::trim).zip(1..) {
        let fail = |wanted: &str| {
            let place = format!("line {number}");
            Err(ModelError::package(Path::new("vendor/models.txt"), place, format!("\"{line}\""), wanted))
        };
        if let Some(rest) = line.strip_prefix("#:") {
            let words: Vec<_> = rest.split_whitespace().collect();
            let (Some(package), [name, file, sha256]) = (packages.last_mut(), words.as_slice()) else {
                return fail("#: NAME file=PATH sha256=HEX after the package's line");
            };
            let (Some(file), Some(sha256)) = (file.strip_prefix("file="), sha256.strip_prefix("sha256=")) else {
                return fail("#: NAME file=PATH sha256=HEX after the package's line");
            };
            if package.name != *name || !is_sha256(sha256) || !is_inside(file) {
                return fail("the name of the line before, a path inside the package and 64 hexadecimal digits");
            }
            (package.file, package.file_sha256) = (file.to_owned(), sha256.to_owned());
        } else if !line.is_empty() && !line.starts_with('#') {
            let parts =
                line.split_once(" --hash=sha256:").and_then(|(pin, sha256)| Some((pin.split_once("==")?, sha256)));
            match parts {
                Some(((name, version), sha256)) if is_sha256(sha256) => packages.push(ModelPackage {
                    name: name.to_owned(),
                    version: version.trim().to_owned(),
                    package_sha256: sha256.to_owned(),
                    file: String::new(),
                    file_sha256: String::new(),
                }),
                _ => return fail("NAME==VERSION --hash=sha256:HEX"),
            }
        }
    }
    match packages.iter().find(|package| package.file.is_empty()) {
        None => Ok(packages),
        Some(package) => Err(ModelError::package(
            Path::new("vendor/models.txt"),
            package.pin(),
            "no line for its model file",
            "#: NAME file=PATH sha256=HEX",
        )),
    }
}

fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_inside(file: &str) -> bool {
    !file.is_empty() && Path::new(file).components().all(|part| matches!(part, std::path::Component::Normal(_)))
}
