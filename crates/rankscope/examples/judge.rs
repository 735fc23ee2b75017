//! Observations that `rankscope diagnose --observations FILE` or `make bench-diagnose` has kept, judged by today's rules:
//! `judge FILE…` prints a line each; `judge -v FILE…` the ladder and every hypothesis too.

use std::error::Error;
use std::io::Write;

use rankscope_core::diagnose::observations::Observations;
use rankscope_core::diagnose::{diagnose, ladder};

fn main() -> Result<(), Box<dyn Error>> {
    let (options, files): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument == "-v");
    let mut out = std::io::stdout().lock();
    for file in files {
        let seen: Observations = serde_json::from_slice(&std::fs::read(&file)?)?;
        let found = diagnose(&seen, &|_, _| Vec::new());
        writeln!(out, "{file}: {}: {}", found.verdict.cause, found.verdict.summary)?;
        if !options.is_empty() {
            for line in ladder(&seen, &found) {
                writeln!(out, "  {line}")?;
            }
            for hypothesis in &found.hypotheses {
                writeln!(out, "  {}", serde_json::to_string(hypothesis)?)?;
            }
            for stack in &found.top_stacks {
                writeln!(out, "  {:.3} {}: {}", stack.idle_weight, stack.thread, stack.frames.join(" < "))?;
            }
        }
    }
    Ok(())
}
