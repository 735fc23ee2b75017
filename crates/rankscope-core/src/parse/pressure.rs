//! Pressure stall information (Documentation/accounting/psi.rst): /proc/pressure/* and *.pressure of a cgroup.

use super::{Malformed, lines, number, tokens};

/// Total stall time in microseconds. A line that this kernel does not print is `None` (cpu has no `full` before 5.13).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    pub some_us: Option<u64>,
    pub full_us: Option<u64>,
}

pub fn parse(text: &[u8]) -> Result<Pressure, Malformed> {
    let mut pressure = Pressure::default();
    for (line_number, line) in lines(text) {
        let mut parts = tokens(line);
        let slot = match parts.next() {
            Some(b"some") => &mut pressure.some_us,
            Some(b"full") => &mut pressure.full_us,
            _ => continue,
        };
        let total = parts.find_map(|t| t.strip_prefix(b"total="));
        let bad = Malformed { line: line_number, expected: "total=<microseconds>" };
        *slot = Some(total.and_then(number).ok_or(bad)?);
    }
    if pressure == Pressure::default() {
        return Err(Malformed { line: 1, expected: "a `some` or `full` line" });
    }
    Ok(pressure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_some_on_old_kernels() {
        let p = parse(b"some avg10=0.10 avg60=0.21 avg300=0.25 total=1234567\n").unwrap();
        assert_eq!(p, Pressure { some_us: Some(1_234_567), full_us: None });
        assert!(parse(b"").is_err());
        assert!(parse(b"some avg10=0.10 total=x\n").is_err());
    }
}
