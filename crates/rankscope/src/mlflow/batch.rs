//! Metrics and tags → batches within the server's limits. The same input always gives the same bytes: the server
//! keeps an exact duplicate once, so a re-send after a lost answer changes nothing.

use serde::Serialize;

use super::types::{Metric, Param, Tag};

/// Of metrics, params and tags together.
pub const MAX_METRICS: usize = 1000;
pub const MAX_TAGS: usize = 100;
/// Serialised; servers refuse bodies from 1,000,000 bytes on.
pub const MAX_BODY: usize = 999_000;

/// One log-batch request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    pub metrics: Vec<Metric>,
    pub params: Vec<Param>,
    pub tags: Vec<Tag>,
}

#[derive(Serialize)]
struct Body<'a> {
    run_id: &'a str,
    metrics: &'a [Metric],
    params: &'a [Param],
    tags: &'a [Tag],
}

impl Batch {
    /// The bytes that go out.
    pub fn body(&self, run_id: &str) -> Vec<u8> {
        let body = Body { run_id, metrics: &self.metrics, params: &self.params, tags: &self.tags };
        // Texts, integers and finite floats: nothing here can fail to serialise.
        serde_json::to_vec(&body).unwrap_or_default()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn len(&self) -> usize {
        self.metrics.len() + self.params.len() + self.tags.len()
    }

    /// In parts of at most this many items.
    pub fn parts(self, at_most: usize) -> Vec<Self> {
        if self.len() <= at_most {
            return vec![self];
        }
        match self.halves() {
            Ok((first, second)) => [first.parts(at_most), second.parts(at_most)].concat(),
            Err(single) => vec![single],
        }
    }

    /// Of a single item.
    pub fn key(&self) -> String {
        let metrics = self.metrics.iter().map(Metric::key);
        let others = self.params.iter().map(Param::key).chain(self.tags.iter().map(Tag::key));
        metrics.chain(others).next().unwrap_or_default().to_owned()
    }

    /// Two halves, for a server or gateway with smaller limits. `Err`: a single item.
    pub fn halves(mut self) -> Result<(Self, Self), Self> {
        fn tail<T>(items: &mut Vec<T>, spare: &mut usize) -> Vec<T> {
            let moved = items.len().min(*spare);
            *spare -= moved;
            items.split_off(items.len() - moved)
        }
        if self.len() < 2 {
            return Err(self);
        }
        let mut spare = self.len() / 2;
        let tags = tail(&mut self.tags, &mut spare);
        let params = tail(&mut self.params, &mut spare);
        let metrics = tail(&mut self.metrics, &mut spare);
        Ok((self, Self { metrics, params, tags }))
    }
}

/// MLflow 2 looks up what it has already by 100 metrics at a time, and refuses the rest of a larger batch.
const PIECE: usize = 100;

impl Batch {
    /// In pieces that every server takes a second time.
    pub fn pieces(&self) -> Vec<Self> {
        let piece = |metrics: &[Metric]| Self { metrics: metrics.to_vec(), ..Self::default() };
        let mut pieces: Vec<Self> = self.metrics.chunks(PIECE).map(piece).collect();
        if pieces.is_empty() {
            pieces.push(Self::default());
        }
        if let Some(first) = pieces.first_mut() {
            first.params.clone_from(&self.params);
            first.tags.clone_from(&self.tags);
        }
        pieces
    }
}

/// As few batches as the limits allow, metrics in the given order, tags behind them.
pub fn batches(metrics: Vec<Metric>, tags: Vec<Tag>) -> Vec<Batch> {
    let mut out = Filling::default();
    for metric in metrics {
        out.make_room(&metric, usize::MAX);
        out.last.metrics.push(metric);
    }
    for tag in tags {
        out.make_room(&tag, MAX_TAGS - 1);
        out.last.tags.push(tag);
    }
    if !out.last.is_empty() {
        out.full.push(out.last);
    }
    out.full
}

#[derive(Default)]
struct Filling {
    full: Vec<Batch>,
    last: Batch,
    bytes: usize,
}

impl Filling {
    /// Starts a new batch if `item` doesn't fit into the last one.
    fn make_room(&mut self, item: &impl Serialize, tags_at_most: usize) {
        // A run id is 32 characters long, the frame 52.
        const FRAME: usize = 200;
        let bytes = 1 + serde_json::to_vec(item).map_or(0, |json| json.len());
        let over = FRAME + self.bytes + bytes > MAX_BODY;
        if over || self.last.len() >= MAX_METRICS || self.last.tags.len() > tags_at_most {
            self.full.push(std::mem::take(&mut self.last));
            self.bytes = 0;
        }
        self.bytes += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(n: i64, key: &str) -> Metric {
        Metric::new(key, n as f64 / 7.0, 1_700_000_000_000 + n, n).unwrap()
    }

    #[test]
    fn form() {
        let batch = Batch {
            metrics: vec![Metric::new("system/x", 12.5, 1_700_000_000_123, 7).unwrap(), metric(0, "a")],
            params: vec![],
            tags: vec![Tag::new("k", "v\"\n").unwrap()],
        };
        let expected = r#"{"run_id":"r1","metrics":[{"key":"system/x","value":12.5,"timestamp":1700000000123,"step":7},{"key":"a","value":0.0,"timestamp":1700000000000,"step":0}],"params":[],"tags":[{"key":"k","value":"v\"\n"}]}"#;
        assert_eq!(String::from_utf8(batch.body("r1")).unwrap(), expected);
    }

    #[test]
    fn what_would_corrupt_a_batch_cannot_be_built() {
        use super::super::types::Refused;
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(Metric::new("a", value, 0, 0), Err(Refused::NotFinite));
        }
        assert_eq!(Metric::new("a//b", 0.0, 0, 0), Err(Refused::Key));
        assert_eq!(Metric::new("a", 0.0, -1, 0), Err(Refused::Timestamp));
        assert_eq!(Tag::new("a", &"v".repeat(5001)), Err(Refused::TooLong));
        assert!(Metric::new("a", f64::MAX, i64::MAX, i64::MIN).is_ok());
    }

    #[test]
    fn counts_and_order() {
        let all: Vec<Metric> = (0..2400).map(|n| metric(n, "system/rank_0/x")).collect();
        let tags: Vec<Tag> = (0..250).map(|n| Tag::new(&format!("t{n}"), "v").unwrap()).collect();
        let made = batches(all.clone(), tags.clone());
        let shape: Vec<_> = made.iter().map(|b| (b.metrics.len(), b.tags.len())).collect();
        assert_eq!(shape, [(1000, 0), (1000, 0), (400, 100), (0, 100), (0, 50)]);
        assert_eq!(made.iter().flat_map(|b| b.metrics.clone()).collect::<Vec<_>>(), all);
        assert_eq!(made.iter().flat_map(|b| b.tags.clone()).collect::<Vec<_>>(), tags);
        assert_eq!(batches(all.clone(), tags.clone()), batches(all, tags));
        assert!(batches(vec![], vec![]).is_empty());
    }

    #[test]
    fn bytes() {
        let tags: Vec<Tag> =
            (0..90).map(|n| Tag::new(&format!("t{n}"), &"\u{1F600}".repeat(5000)).unwrap()).collect();
        let made = batches(vec![], tags);
        assert!(made.len() == 2 && made.iter().all(|b| b.body(&"r".repeat(32)).len() < 1_000_000));
        let long = "k".repeat(250);
        let made = batches((0..3000).map(|n| metric(n, &long)).collect(), vec![]);
        assert!(made.iter().all(|b| b.len() <= 1000 && b.body("r").len() < 1_000_000));
    }

    #[test]
    fn pieces_keep_everything() {
        let tags = vec![Tag::new("t", "v").unwrap()];
        let batch = Batch { metrics: (0..250).map(|n| metric(n, "a")).collect(), tags, ..Batch::default() };
        let pieces = batch.pieces();
        assert_eq!(pieces.iter().map(Batch::len).collect::<Vec<_>>(), [101, 100, 50]);
        assert_eq!(pieces.iter().flat_map(|p| p.metrics.clone()).collect::<Vec<_>>(), batch.metrics);
        assert_eq!(Batch { tags: batch.tags.clone(), ..Batch::default() }.pieces().len(), 1);
    }

    #[test]
    fn halves_keep_everything() {
        let tags = vec![Tag::new("t", "v").unwrap(), Tag::new("u", "v").unwrap()];
        let batch = Batch { metrics: (0..5).map(|n| metric(n, "a")).collect(), tags, ..Batch::default() };
        let (a, b) = batch.clone().halves().unwrap();
        assert_eq!((a.len(), b.len()), (4, 3));
        assert_eq!([a.metrics, b.metrics].concat(), batch.metrics);
        assert_eq!([a.tags, b.tags].concat(), batch.tags);
        assert!(Batch { metrics: vec![metric(0, "a")], ..Batch::default() }.halves().is_err());
        let sizes = |at_most| batch.clone().parts(at_most).iter().map(Batch::len).collect::<Vec<_>>();
        assert_eq!((sizes(7), sizes(3), sizes(1)), (vec![7], vec![2, 2, 3], vec![1; 7]));
    }
}
