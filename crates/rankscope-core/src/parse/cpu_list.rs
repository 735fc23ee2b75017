//! Lists of CPUs: `0-3,6` (cpuset files, Cpus_allowed_list).

/// The highest CPU number taken seriously; the kernel's own ceiling (NR_CPUS) is 8192 on x86-64.
const MAX_CPU: usize = 65_535;

/// A set of CPU numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuSet(Vec<u64>);

impl CpuSet {
    pub fn count(&self) -> u32 {
        self.0.iter().map(|w| w.count_ones()).sum()
    }

    pub fn and(&self, other: &CpuSet) -> CpuSet {
        CpuSet(self.0.iter().zip(&other.0).map(|(a, b)| a & b).collect())
    }

    /// Word by word: a text can name the whole range a hundred thousand times.
    fn insert(&mut self, first: usize, last: usize) {
        if self.0.len() <= last / 64 {
            self.0.resize(last / 64 + 1, 0);
        }
        for word in first / 64..=last / 64 {
            let from = if word == first / 64 { u64::MAX << (first % 64) } else { u64::MAX };
            let to = if word == last / 64 { u64::MAX >> (63 - last % 64) } else { u64::MAX };
            self.0[word] |= from & to;
        }
    }
}

/// `None` when it is not a list of CPUs; an empty text is the empty set.
pub fn parse(text: &[u8]) -> Option<CpuSet> {
    let text = text.trim_ascii();
    let mut set = CpuSet::default();
    if text.is_empty() {
        return Some(set);
    }
    for part in text.split(|b| *b == b',') {
        let mut ends = part.splitn(2, |b| *b == b'-').map(|t| super::number(t.trim_ascii()));
        let first = usize::try_from(ends.next()??).ok()?;
        let last = match ends.next() {
            Some(last) => usize::try_from(last?).ok()?,
            None => first,
        };
        if first > last || last > MAX_CPU {
            return None;
        }
        set.insert(first, last);
    }
    Some(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_singles_and_nonsense() {
        let set = parse(b"1-3,6\n").unwrap();
        assert_eq!(set.count(), 4);
        assert_eq!(set.and(&parse(b"1-2").unwrap()).count(), 2);
        assert_eq!(parse(b"\n").unwrap().count(), 0);
        assert_eq!(parse(b"0-127").unwrap().count(), 128);
        assert_eq!(parse(b"63-64,127,128-130").unwrap().count(), 6);
        for bad in [&b"3-1"[..], b"a", b"1,", b"0-99999999999", b"-1"] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
    }
}
