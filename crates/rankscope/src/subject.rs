//! The name under which an identity's series stand.

use rankscope_core::series::Scope;

use crate::env_vars;

/// Subjects of one recorder.
#[derive(Clone, Debug)]
pub struct Subjects {
    rank: String,
    node: String,
}

impl Subjects {
    /// `live`: the environment speaks for the process that is measured.
    pub fn new(live: bool, node_name: &str) -> Subjects {
        let rank = if live { env_vars::Job::ours().place.rank.unwrap_or(0) } else { 0 };
        Subjects { rank: format!("rank_{rank}"), node: format!("node_{}", letters(node_name)) }
    }

    pub fn of(&self, scope: Scope) -> &str {
        match scope {
            Scope::Node => &self.node,
            Scope::Container | Scope::Pod | Scope::Rootfs | Scope::Mount | Scope::Gpu | Scope::Process => {
                &self.rank
            }
        }
    }
}

/// Letters that a series name may have.
fn letters(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "_-.".contains(c) { c } else { '_' }).collect()
}
