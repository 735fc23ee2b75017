//! How a time is cut into buckets. The last minutes get finer ones: that is where a job dies.

/// A stretch that is cut evenly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub from_unix_ms: i64,
    pub until_unix_ms: i64,
    pub bucket_ms: i64,
}

/// One piece, or a coarse one and a fine one after it. A bucket is (begin, end].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grid {
    pub pieces: Vec<Piece>,
}

/// The end that is always cut finely.
const TAIL_MS: i64 = 600_000;
/// Of the buckets, those for it.
const TAIL_SHARE: i64 = 4;
/// A sample takes its time, so this is what is left of a bucket that holds one.
const SHORTEST_MS: i64 = 20;

impl Grid {
    pub fn new(from_unix_ms: i64, until_unix_ms: i64, points: usize) -> Grid {
        let points = i64::try_from(points).unwrap_or(i64::MAX).max(TAIL_SHARE);
        let piece = |from: i64, until: i64, points: i64| Piece {
            from_unix_ms: from,
            until_unix_ms: until,
            bucket_ms: ((until - from).max(1) / points.max(1)).max(SHORTEST_MS),
        };
        let until = until_unix_ms.max(from_unix_ms + 1);
        let tail = points / TAIL_SHARE;
        let pieces = match until - TAIL_MS {
            // Where that would be finer than the whole anyway.
            middle if (until - from_unix_ms) / points > TAIL_MS / tail => {
                vec![piece(from_unix_ms, middle, points - tail), piece(middle, until, tail)]
            }
            _ => vec![piece(from_unix_ms, until, points)],
        };
        Grid { pieces }
    }

    /// Which bucket a moment falls into; before the first and after the last there is one more.
    pub fn bucket(&self, unix_ms: i64) -> (usize, i64) {
        let at = self.pieces.iter().position(|p| unix_ms <= p.until_unix_ms).unwrap_or(self.pieces.len());
        let piece = self.pieces.get(at.min(self.pieces.len().saturating_sub(1)));
        piece.map_or((at, 0), |p| (at, (unix_ms - p.from_unix_ms - 1).div_euclid(p.bucket_ms.max(1))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_time_is_cut_evenly_and_a_long_one_finely_at_its_end() {
        let short = Grid::new(0, 600_000, 300);
        assert_eq!(short.pieces.len(), 1);
        assert_eq!(short.pieces[0].bucket_ms, 2000);
        let long = Grid::new(0, 360_000_000, 200);
        assert_eq!(long.pieces.len(), 2);
        assert_eq!(long.pieces[0].bucket_ms, 359_400_000 / 150);
        assert_eq!(long.pieces[1].bucket_ms, 12_000);
        assert!(Grid::new(5, 5, 0).pieces[0].bucket_ms > 0, "an empty time is one too");
    }

    #[test]
    fn buckets_are_in_order_and_end_with_their_last_moment() {
        let grid = Grid::new(0, 600_000, 300);
        assert_eq!(grid.bucket(2000), grid.bucket(1));
        assert!(grid.bucket(2001) > grid.bucket(2000));
        let long = Grid::new(0, 360_000_000, 200);
        let times: Vec<_> = (0..3600).map(|n| long.bucket(n * 100_000 + 1)).collect();
        assert!(times.is_sorted());
    }
}
