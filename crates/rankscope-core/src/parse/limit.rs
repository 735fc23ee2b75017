//! Limits: every spelling of "unlimited", and quotas with their fractions.

use super::{Malformed, number, tokens};

/// From here on a v1 value means "unlimited": LONG_MAX rounded down to the page size (any up to 64 KiB), LONG_MAX
/// itself (3.10), ULONG_MAX. No machine has 8 EiB.
const UNLIMITED_FROM: u64 = (1 << 63) - (1 << 20);

/// memory.max, memory.high, memory.swap.max, memory.limit_in_bytes, memory.memsw.limit_in_bytes, pids.max.
/// `None`: unlimited.
pub fn bytes(text: &[u8]) -> Result<Option<u64>, Malformed> {
    let token = tokens(text).next().unwrap_or_default();
    match (token, number(token)) {
        (b"max" | b"-1", _) => Ok(None),
        (_, Some(value)) => Ok(finite(value)),
        _ => Err(Malformed { line: 1, expected: "`max` or a number of bytes" }),
    }
}

/// A limit that was found as a plain number, such as hierarchical_memory_limit.
pub fn finite(value: u64) -> Option<u64> {
    (value < UNLIMITED_FROM).then_some(value)
}

/// cpu.max: `$MAX $PERIOD` in microseconds. Cores; `None`: no quota.
pub fn cpu_max(text: &[u8]) -> Result<Option<f64>, Malformed> {
    let bad = Malformed { line: 1, expected: "`max` or a quota, and a period" };
    let mut parts = tokens(text);
    let quota = parts.next().ok_or(bad)?;
    if quota == b"max" {
        return Ok(None);
    }
    // The kernel's default period is 100 ms; it always prints one.
    let period = parts.next().map_or(Some(100_000), number);
    cores(number(quota).ok_or(bad)?, period.ok_or(bad)?).ok_or(bad).map(Some)
}

/// cpu.cfs_quota_us: `None` when it is -1.
pub fn cfs_quota(text: &[u8]) -> Result<Option<u64>, Malformed> {
    match tokens(text).next() {
        Some(b"-1") => Ok(None),
        Some(token) => number(token).map(Some).ok_or(Malformed { line: 1, expected: "-1 or microseconds" }),
        None => Err(Malformed { line: 1, expected: "-1 or microseconds" }),
    }
}

/// `None` for a quota or period of 0, which the kernel refuses.
pub fn cores(quota_us: u64, period_us: u64) -> Option<f64> {
    (quota_us > 0 && period_us > 0).then(|| quota_us as f64 / period_us as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_unlimited() {
        for text in [
            "9223372036854771712",
            "9223372036854710272",
            "9223372036854775807",
            "18446744073709551615",
            "max",
            "-1",
        ] {
            assert_eq!(bytes(text.as_bytes()), Ok(None), "{text}");
        }
        assert_eq!(bytes(b"1099511627776\n"), Ok(Some(1 << 40)));
        assert_eq!(bytes(b"0\n"), Ok(Some(0)));
        assert!(bytes(b"12x").is_err() && bytes(b"").is_err());
    }

    #[test]
    fn quotas_keep_their_fractions() {
        assert_eq!(cpu_max(b"635000 100000\n"), Ok(Some(6.35)));
        assert_eq!(cpu_max(b"max 100000\n"), Ok(None));
        assert!(cpu_max(b"50000 0\n").is_err() && cpu_max(b"").is_err() && cpu_max(b"x 1").is_err());
        assert_eq!(cfs_quota(b"-1\n"), Ok(None));
        assert_eq!(cfs_quota(b"50000\n"), Ok(Some(50_000)));
    }
}
