//! How exact a share is that was counted in samples.

const Z: f64 = 1.96;

/// The interval in which the true share lies with 95 % (Wilson); readings at random moments. `None`: nothing was counted.
pub fn interval(hits: u64, samples: u64) -> Option<(f64, f64)> {
    if samples == 0 {
        return None;
    }
    let n = samples as f64;
    let share = hits.min(samples) as f64 / n;
    let (square, scale) = (Z * Z, 1.0 + Z * Z / n);
    let middle = (share + square / (2.0 * n)) / scale;
    let half = Z / scale * (share * (1.0 - share) / n + square / (4.0 * n * n)).sqrt();
    Some(((middle - half).max(0.0), (middle + half).min(1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrower_with_more_samples() {
        let (low, high) = interval(600, 1200).expect("samples");
        assert!((low - 0.472).abs() < 1e-3 && (high - 0.528).abs() < 1e-3);
        let (low, high) = interval(5, 10).expect("samples");
        assert!(low < 0.25 && high > 0.75);
    }

    #[test]
    fn at_the_ends_it_is_not_certain() {
        assert_eq!(interval(0, 0), None);
        let (low, high) = interval(0, 20).expect("samples");
        assert!(low.abs() < 1e-12 && high > 0.1);
        let (low, high) = interval(20, 20).expect("samples");
        assert!(low < 0.9 && (high - 1.0).abs() < 1e-12);
    }
}
