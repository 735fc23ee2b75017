//! How a recording ended, in Python's words.

use pyo3::prelude::*;
use rankscope::clock;
use rankscope::commands::record;
use rankscope_core::ending::{Asked, Exit, Traceback};

/// From a dict of `_recorder.py`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct End {
    exit_code: i32,
    /// By Ctrl-C.
    interrupted: bool,
    /// With its module.
    exception: Option<String>,
    message: String,
    /// Innermost frame.
    place: Option<String>,
}

impl From<End> for record::End {
    fn from(end: End) -> record::End {
        let interrupt = || Asked {
            signal: libc::SIGINT,
            unix_ms: clock::unix_ms(),
            sender: None,
            sender_name: None,
            time_limit: None,
        };
        record::End {
            exit: match end.interrupted {
                true => Exit::Signal { signal: libc::SIGINT, core_dumped: false },
                false => Exit::Code(end.exit_code),
            },
            told_by: "rankscope in the process",
            asked: end.interrupted.then(interrupt),
            traceback: end
                .exception
                .map(|name| Traceback::new(&name, &end.message, end.place, "the exception")),
        }
    }
}
