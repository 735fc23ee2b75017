//! What can be typed. Commands get plain structs from here and never see clap.

mod here;
mod job;
mod record;
mod values;

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

pub use here::*;
pub use job::*;
pub use record::*;

#[derive(Parser, Debug)]
#[command(
    name = "rankscope",
    version,
    about = "What each rank of a training job really uses, why it died, and why it is slow",
    max_term_width = 100
)]
pub struct Cli {
    /// Print JSON
    #[arg(long, global = true, env = "RANKSCOPE_JSON", value_parser = clap::builder::FalseyValueParser::new())]
    pub json: bool,
    /// Say more
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Start a command, record what it uses, and end with its exit code
    Run(RunArgs),
    /// Record a process that is running already, until it ends
    Watch(WatchArgs),
    /// Print what is measured here and now, and why the rest is missing
    Sample(SampleArgs),
    /// Which number is whose: limits, scopes and identities, here
    Scope(ScopeArgs),
    /// Say what works here, what does not, and what would help
    Doctor(DoctorArgs),
    /// Say why a job is slow: what its GPUs wait for, with the wrong answers ruled out
    Diagnose(DiagnoseArgs),
    /// Say why a job died, from its record or its MLflow run
    Postmortem(PostmortemArgs),
    /// Make a page of what was recorded of a job: one HTML file, charts and verdict
    Report(ReportArgs),
    /// Put the ranks of a job beside each other, or a job before and after a change
    Compare(CompareArgs),
    /// Deliver what a record holds and MLflow does not have yet
    Sync(SyncArgs),
    /// Close MLflow runs whose job and recorder died without a word
    Reap(ReapArgs),
    /// Write the kernel files that rankscope reads to a directory, for --root (no environment, no command lines)
    Snapshot(SnapshotArgs),
    /// Hold a trainer's hyperparameter file against what its version takes, and say what costs time; edits nothing
    Advise(AdviseArgs),
    /// Say whose numbers an MLflow run's system metrics are: the node's, or your container's
    Audit(AuditArgs),
}

impl Cli {
    /// What was typed, else what the environment says. A variable that makes no sense must not keep a job from
    /// starting: `run` then goes without it, and the list says why.
    pub fn of(args: &[OsString]) -> Result<(Cli, Vec<String>), clap::Error> {
        let mut command = Cli::command();
        let mut ignored = Vec::new();
        let mut without: Vec<String> = Vec::new();
        loop {
            let parsed = command.clone().try_get_matches_from(args).and_then(|m| Cli::from_arg_matches(&m));
            let error = match parsed {
                Ok(cli) if without.is_empty() || matches!(cli.command, Command::Run(_)) => {
                    return Ok((cli, ignored));
                }
                Ok(_) => return Err(command.error(clap::error::ErrorKind::InvalidValue, ignored.join("; "))),
                Err(error) => error,
            };
            let Some(option) = option_of(&error).filter(|option| !without.contains(option)) else {
                return Err(error);
            };
            ignored.push(first_line(&error));
            command = command
                .mut_args(|a| forget(a, &option))
                .mut_subcommand("run", |run| run.mut_args(|a| forget(a, &option)));
            without.push(option);
        }
    }
}

/// `interval` of an error about `--interval <SECONDS>`.
fn option_of(error: &clap::Error) -> Option<String> {
    match error.get(clap::error::ContextKind::InvalidArg)? {
        clap::error::ContextValue::String(text) => {
            Some(text.strip_prefix("--")?.split([' ', '[']).next()?.to_owned())
        }
        _ => None,
    }
}

fn first_line(error: &clap::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

/// The option without its environment variable.
fn forget(arg: clap::Arg, option: &str) -> clap::Arg {
    if arg.get_long() == Some(option) { arg.env(None) } else { arg }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }
}
