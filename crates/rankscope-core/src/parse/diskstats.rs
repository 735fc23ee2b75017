//! /proc/diskstats: bytes read and written by each block device, partitions and devices that stand on others included.

use super::{lines, number, tokens};

/// A sector is 512 bytes here, whatever the device's own is (Documentation/admin-guide/iostats.rst).
const SECTOR: u64 = 512;

/// Calls `each` with name, bytes read and bytes written of every device. Gives the first line that does not have the
/// documented form; such lines are left out.
pub fn for_each(text: &[u8], mut each: impl FnMut(&[u8], u64, u64)) -> Option<u32> {
    let mut first_odd = None;
    for (at, line) in lines(text) {
        match device(line) {
            Some((name, read, write)) => each(name, read, write),
            None => {
                first_odd.get_or_insert(at);
            }
        }
    }
    first_odd
}

fn device(line: &[u8]) -> Option<(&[u8], u64, u64)> {
    let mut parts = tokens(line);
    parts.next().and_then(number)?;
    parts.next().and_then(number)?;
    let name = parts.next().filter(|name| !name.iter().all(u8::is_ascii_digit))?;
    let mut columns = [&b""[..]; 7];
    let mut count = 0;
    for token in parts {
        if let Some(column) = columns.get_mut(count) {
            *column = token;
        }
        count += 1;
    }
    let [read, write] = match count {
        // Partitions before Linux 2.6.25: reads, sectors, writes, sectors.
        4 => [columns[1], columns[3]],
        // Later kernels only append: four columns for discards, two for flushes.
        11.. => [columns[2], columns[6]],
        _ => return None,
    };
    let bytes = |sectors| number(sectors).map(|n| n.saturating_mul(SECTOR));
    Some((name, bytes(read)?, bytes(write)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (Vec<(String, u64, u64)>, Option<u32>) {
        let mut all = Vec::new();
        let odd = for_each(text.as_bytes(), |name, read, write| {
            all.push((crate::parse::text(name), read / SECTOR, write / SECTOR));
        });
        (all, odd)
    }

    #[test]
    fn every_width() {
        let widths = [
            ("8 1 sda1 990 19800 1990 39800", 19800, 39800),
            ("   8       1 sda1 990 10 19800 290 1990 20 39800 590 0 690 880", 19800, 39800),
            ("   8      16 sdb 7 0 56 2 0 0 0 0 0 2 2 0 0 0", 56, 0),
            ("   8       0 sda 1000 10 20000 300 2000 20 40000 600 0 700 900 5 0 80 1", 20000, 40000),
            ("   8       0 sda 1000 10 20000 300 2000 20 40000 600 0 700 900 5 0 80 1 3 4", 20000, 40000),
        ];
        for (line, read, write) in widths {
            let (all, odd) = parse(line);
            assert_eq!((all.len(), odd), (1, None), "{line}");
            assert_eq!((all[0].1, all[0].2), (read, write), "{line}");
        }
    }

    #[test]
    fn an_odd_line_loses_itself_only() {
        let text = "8 0 sda 1 0 8 0 1 0 16 0 0 0 0\n9 0 md0 x\n\n8 16 sdb 1 0 -8 0 1 0 16 0 0 0 0\n8 32 sdc 1 0 24 0 1 0 0 0 -1 0 0\n";
        let (all, odd) = parse(text);
        assert_eq!(all, [("sda".into(), 8, 16), ("sdc".into(), 24, 0)]);
        assert_eq!(odd, Some(2));
        // Linux 2.4 has the number of blocks before the name.
        assert_eq!(
            parse("3 0 39082680 hda 446216 784926 9550688 4382310 424847 312726 5922052 1 0 2 3\n").1,
            Some(1)
        );
        assert_eq!(parse(""), (Vec::new(), None));
    }
}
