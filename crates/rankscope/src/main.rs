use std::process::ExitCode;

fn main() -> ExitCode {
    rankscope::run(std::env::args_os())
}
