//! Which version of a trainer's package is installed in the virtual environment that is active: by the name of a
//! folder, without starting Python.

use std::path::Path;

use rankscope_core::catalogue::trainer::Trainer;
use rankscope_core::catalogue::version::Version;

use crate::env_vars;

/// And where it was found.
pub fn version(trainer: &Trainer) -> Option<(Version, String)> {
    let environment = env_vars::virtual_env()?;
    let package = trainer.package.as_ref()?.replace('-', "_").to_lowercase();
    let pythons = Path::new(&environment).join("lib").read_dir().ok()?;
    let sites = pythons.filter_map(Result::ok).map(|python| python.path().join("site-packages"));
    let names = sites.filter_map(|site| site.read_dir().ok()).flatten().filter_map(Result::ok);
    let versions = names.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let (found, version) = name.strip_suffix(".dist-info")?.rsplit_once('-')?;
        (found.to_lowercase() == package).then(|| Version::parse(version))?
    });
    versions.max().map(|version| (version, environment))
}
