//! Sizes as people and Kubernetes write them: `64GiB`, `64Gi`, `68719476736`; `8`, `0.5`, `500m`.

const UNITS: [(&str, f64); 14] = [
    ("", 1.0),
    ("k", 1e3),
    ("K", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("P", 1e15),
    ("Ki", 1024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
    ("Pi", 1_125_899_906_842_624.0),
    ("Ei", 1_152_921_504_606_846_976.0),
    ("E", 1e18),
];

/// Bytes; `None` unless it is a number above 0 with a known unit.
pub fn bytes(text: &str) -> Option<f64> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = unit.trim().trim_end_matches(['B', 'b']);
    let factor = UNITS.iter().find(|(name, _)| *name == unit)?.1;
    positive(number).map(|n| n * factor)
}

/// Cores; `500m` is half a core.
pub fn cores(text: &str) -> Option<f64> {
    let text = text.trim();
    match text.strip_suffix('m') {
        Some(milli) => positive(milli).map(|n| n / 1000.0),
        None => positive(text),
    }
}

fn positive(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    text.parse().ok().filter(|n: &f64| plain && *n > 0.0 && n.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings() {
        for text in ["64GiB", "64Gi", "68719476736", "64 GiB", "65536Mi", "68719476736B"] {
            assert_eq!(bytes(text), Some(68_719_476_736.0), "{text}");
        }
        assert_eq!(bytes("1.5G"), Some(1.5e9));
        for text in ["", "Gi", "-1", "0", "1e9", "64Qi", "nan", "1.2.3"] {
            assert_eq!(bytes(text), None, "{text}");
        }
        assert_eq!((cores("8"), cores("500m"), cores("6.35")), (Some(8.0), Some(0.5), Some(6.35)));
        assert_eq!((cores("0"), cores("m"), cores("8c"), cores("inf")), (None, None, None, None));
    }
}
