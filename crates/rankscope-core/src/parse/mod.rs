//! Kernel text → plain structs. Pure: bytes in, struct out. A parser never panics on any input, and one odd field
//! loses that field only.

pub mod block_io;
pub mod cgroup_file;
pub mod cpu_list;
pub mod diskstats;
pub mod keyed;
pub mod limit;
pub mod mountinfo;
pub mod net_dev;
pub mod node;
pub mod pid;
pub mod pressure;
pub mod quantity;
pub mod snmp;

use std::fmt;

/// A text that does not have its documented form: which line (from 1), and what was expected there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    pub line: u32,
    pub expected: &'static str,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: expected {}", self.line, self.expected)
    }
}

/// Lines without their newline, numbered from 1.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    let mut rest = Some(text);
    let next = move || {
        let text = rest?;
        let end = memchr::memchr(b'\n', text);
        rest = end.map(|end| &text[end + 1..]);
        Some(&text[..end.unwrap_or(text.len())])
    };
    std::iter::from_fn(next).zip(1u32..).filter(|(line, _)| !line.is_empty()).map(|(line, n)| (n, line))
}

/// Tokens between blanks.
pub(crate) fn tokens(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|t| !t.is_empty())
}

/// A decimal number without sign, as the kernel prints it; `None` also when it does not fit.
pub fn number(token: &[u8]) -> Option<u64> {
    if token.is_empty() {
        return None;
    }
    token.iter().try_fold(0u64, |n, b| {
        let digit = b.is_ascii_digit().then(|| u64::from(b - b'0'))?;
        n.checked_mul(10)?.checked_add(digit)
    })
}

/// The first number of a file that holds just one.
pub fn single(text: &[u8]) -> Result<u64, Malformed> {
    tokens(text).next().and_then(number).ok_or(Malformed { line: 1, expected: "a number" })
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_do_not_wrap() {
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(number(b"18446744073709551616"), None);
        assert_eq!(number(b"-1"), None);
        assert_eq!(number(b""), None);
        assert_eq!(single(b"42\n"), Ok(42));
        assert!(single(b"\n").is_err());
    }
}
