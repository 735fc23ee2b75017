//! File systems are asked by a helper *process*: a thread that is stuck in statvfs on a mount that hangs would keep the
//! whole recorder unkillable. The helper is this same executable under another name. It is reaped when it ends at once,
//! as it does unless it is stuck; nobody waits for one that is. Where rankscope is a guest in another program, the helper
//! is nobody's child: that program's own `wait` must not find one that it did not start.
//!
//! Requests: path, NUL. Answers: `ANSWER_WORDS` little-endian words. Both are smaller than PIPE_BUF, hence atomic.

mod client;
mod server;

pub use client::Client;
pub use server::serve;

/// argv[0] of the helper.
pub const NAME: &str = "rankscope-statvfs";
/// argv[1] of a helper that is to be nobody's child.
pub const ORPHAN: &str = "orphan";
/// What the kernel keeps of it as the helper's name (15 bytes).
pub const COMM: &str = "rankscope-statv";
/// id, errno (0: fine), f_frsize, f_blocks, f_bfree, f_bavail.
const ANSWER_WORDS: usize = 6;
const ANSWER_BYTES: usize = ANSWER_WORDS * 8;
