//! /proc/net/dev: bytes received and sent by each interface of one network namespace.

use super::{lines, number, text, tokens};

/// One interface; counters in bytes since it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    pub name: String,
    pub receive: u64,
    pub transmit: u64,
}

/// Calls `each` for every interface line that has the documented form; the two heading lines have none.
pub fn for_each(bytes: &[u8], mut each: impl FnMut(&[u8], u64, u64)) {
    for (_, line) in lines(bytes) {
        // Old kernels print no blank after the colon. Numbers hold none, so the last colon ends the name.
        let Some(colon) = line.iter().rposition(|b| *b == b':') else { continue };
        let name = line[..colon].trim_ascii();
        let mut columns = tokens(&line[colon + 1..]).map(number);
        let (Some(Some(receive)), Some(Some(transmit))) = (columns.next(), columns.nth(7)) else { continue };
        if !name.is_empty() {
            each(name, receive, transmit);
        }
    }
}

pub fn parse(bytes: &[u8]) -> Vec<Interface> {
    let mut all = Vec::new();
    for_each(bytes, |name, receive, transmit| all.push(Interface { name: text(name), receive, transmit }));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_and_without_a_blank_after_the_colon() {
        let head = "Inter-|   Receive  |  Transmit\n face |bytes packets errs|bytes packets\n";
        let rows = "    lo:  5 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n  eth0:1000000 7 0 0 0 0 0 0 2000 1 0 0 0 0 0 0\n bad: 1 2\n";
        let all = parse(format!("{head}{rows}").as_bytes());
        assert_eq!(all.len(), 2);
        assert_eq!((all[1].name.as_str(), all[1].receive, all[1].transmit), ("eth0", 1_000_000, 2000));
    }
}
