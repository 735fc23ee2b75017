//! Node files: /proc/stat, /proc/meminfo, /proc/loadavg, /proc/uptime.

use super::keyed::{self, Field};
use super::{Malformed, lines, number, tokens};

/// The aggregate `cpu` line of /proc/stat, in clock ticks (proc_stat(5)). Columns that an old kernel lacks are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    pub user: u64,
    pub nice: u64,
    pub system: u64,
    pub idle: u64,
    pub iowait: u64,
    pub irq: u64,
    pub softirq: u64,
    pub steal: u64,
    // Guest times are part of user and nice already.
}

impl CpuTimes {
    /// Everything but idle and iowait; steal counts, as in psutil.
    pub fn busy(&self) -> u64 {
        [self.nice, self.system, self.irq, self.softirq, self.steal]
            .iter()
            .fold(self.user, |sum, t| sum.saturating_add(*t))
    }
}

pub fn cpu_times(text: &[u8]) -> Result<CpuTimes, Malformed> {
    let bad = |line| Malformed { line, expected: "`cpu` and at least four numbers" };
    let (line_number, line) = lines(text).find(|(_, l)| l.starts_with(b"cpu ")).ok_or(bad(1))?;
    let mut columns = [0u64; 8];
    let mut count = 0;
    for (column, token) in columns.iter_mut().zip(tokens(line).skip(1)) {
        *column = number(token).ok_or(bad(line_number))?;
        count += 1;
    }
    if count < 4 {
        return Err(bad(line_number));
    }
    let [user, nice, system, idle, iowait, irq, softirq, steal] = columns;
    Ok(CpuTimes { user, nice, system, idle, iowait, irq, softirq, steal })
}

/// Online CPUs: the `cpu<N>` lines of /proc/stat.
pub fn online_cpus(text: &[u8]) -> u32 {
    let is_cpu =
        |line: &[u8]| line.strip_prefix(b"cpu").and_then(|l| l.first()).is_some_and(u8::is_ascii_digit);
    lines(text).filter(|(_, l)| is_cpu(l)).count() as u32
}

/// The two fields of /proc/meminfo that are used, in kB.
pub fn meminfo(text: &[u8]) -> [Field; 2] {
    keyed::lookup(text, ["MemTotal:", "MemAvailable:"])
}

/// /proc/loadavg: the one-minute load, and the pid that this pid namespace gave out last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadAvg {
    pub one_minute: f64,
    pub last_pid: Option<u64>,
}

pub fn loadavg(text: &[u8]) -> Result<LoadAvg, Malformed> {
    let mut parts = tokens(text);
    let one_minute =
        parts.next().and_then(decimal).ok_or(Malformed { line: 1, expected: "a load with decimals" })?;
    Ok(LoadAvg { one_minute, last_pid: parts.nth(3).and_then(number) })
}

/// Seconds since boot, from /proc/uptime.
pub fn uptime(text: &[u8]) -> Result<f64, Malformed> {
    tokens(text).next().and_then(decimal).ok_or(Malformed { line: 1, expected: "seconds with decimals" })
}

/// `123.45`, never negative, infinite or NaN.
fn decimal(token: &[u8]) -> Option<f64> {
    if !token.iter().all(|b| b.is_ascii_digit() || *b == b'.') {
        return None;
    }
    std::str::from_utf8(token).ok()?.parse().ok().filter(|v: &f64| v.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_and_new_widths() {
        let old =
            cpu_times(b"cpu 2000 10 1000 30000 150 0 0 0\ncpu0 2000 10 1000 30000 150 0 0 0\n").unwrap();
        assert_eq!(old.busy(), 3010);
        let new = cpu_times(b"cpu  600 0 100 300 0 0 0 0 500 0\n").unwrap();
        assert_eq!(new.busy(), 700, "guest time is in user already");
        assert!(cpu_times(b"cpu 1 2 x 4\n").is_err());
        assert!(cpu_times(b"intr 5\n").is_err());
        assert_eq!(online_cpus(b"cpu 1 2 3 4\ncpu0 1\ncpu11 1\ncpufreq 1\n"), 2);
    }

    #[test]
    fn loadavg_gives_the_last_pid() {
        assert_eq!(
            loadavg(b"0.50 0.2 0.1 2/78 2049\n"),
            Ok(LoadAvg { one_minute: 0.5, last_pid: Some(2049) })
        );
        assert!(loadavg(b"nan\n").is_err());
        assert_eq!(uptime(b"12.34 56.78\n"), Ok(12.34));
    }
}
