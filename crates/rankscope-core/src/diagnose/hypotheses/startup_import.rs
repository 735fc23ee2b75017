//! The program still imports its modules.

use super::super::facts::Facts;
use super::super::facts::doing::Doing;
use super::super::thresholds as t;
use super::case::{Case, percent};

pub fn judge(facts: &Facts) -> Case {
    let mut case = Case::new("startup_import", facts);
    let imports = facts.rank().and_then(|r| r.share(&[Doing::Import]));
    let imports = case.at_least("main_thread.imports_share", imports, t::MAIN_SHARE);
    case.all(&[imports]);
    case.explains(facts.rank().map_or(0.0, |r| r.doing.of(&[Doing::Import])), facts);
    case.reason = format!("modules were imported in {} of that time", percent(case.share));
    case.remedy(
        "put the Python environment on a local disk or into the image, not on a network file system",
        "an import opens thousands of small files",
    );
    case.remedy("look at `python -X importtime`", "it names the slow modules");
    case
}
