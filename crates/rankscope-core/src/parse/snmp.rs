//! /proc/<pid>/net/netstat and /proc/<pid>/net/snmp: pairs of lines, names and then values, that begin with their group.

use super::number;

/// Value of a name in a group; `None`: it isn't there, or is no number.
pub fn value(text: &[u8], group: &str, name: &str) -> Option<u64> {
    let mut lines = text.split(|byte| *byte == b'\n').filter_map(|line| of_group(line, group));
    let at = lines.next()?.position(|word| word == name.as_bytes())?;
    number(lines.next()?.nth(at)?)
}

fn of_group<'a>(line: &'a [u8], group: &str) -> Option<impl Iterator<Item = &'a [u8]>> {
    let rest = line.strip_prefix(group.as_bytes())?.strip_prefix(b":")?;
    Some(rest.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"TcpExt: SyncookiesSent InOctets\nTcpExt: 0 7\n\
        IpExt: InNoRoutes InTruncatedPkts InOctets\nIpExt: 0 0 18446744073709551615\n";

    #[test]
    fn a_value_by_its_group_and_name() {
        assert_eq!(value(TEXT, "IpExt", "InOctets"), Some(u64::MAX));
        assert_eq!(value(TEXT, "TcpExt", "InOctets"), Some(7));
        assert_eq!(value(TEXT, "IpExt", "OutOctets"), None);
        assert_eq!(value(b"IpExt: InOctets", "IpExt", "InOctets"), None);
        assert_eq!(value(b"IpExt: InOctets\nIpExt: -1\n", "IpExt", "InOctets"), None);
    }
}
