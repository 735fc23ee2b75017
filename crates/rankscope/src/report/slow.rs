//! Why the job is slow, by the end of its records: what `diagnose --run` says of them.

use std::path::PathBuf;

use rankscope_core::catalogue::Catalogue;
use rankscope_core::report::{Material, slow};

use crate::diagnose::{judge, recorded};

const LOOKED_S: f64 = 600.0;
/// Of more ranks the samples of ten minutes would take longer to read than the rest of the page.
const MOST_RECORDS: usize = 128;

/// Adds nothing where it is not slow, or that can't be told.
pub fn look(material: &mut Material, files: &[PathBuf]) {
    if files.len() > MOST_RECORDS {
        material.remarks.push(format!(
            "why it is slow was not looked at, as there are more than {MOST_RECORDS} records; `rankscope diagnose --run DIR` does"
        ));
        return;
    }
    if let Ok(seen) = recorded::read(files, Some(LOOKED_S)) {
        material.slow = slow(&seen, &judge(&seen, &Catalogue::built_in()));
    }
}
