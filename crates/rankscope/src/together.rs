//! Files of many ranks, several at a time: of a record that was written long ago each page is waited for.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Enough for a disk to have something to do; each needs a megabyte or two.
const AT_ONCE: usize = 8;

/// The results stand as the items do. The caller works too, so that all is done also where no thread can be had.
pub fn map<T: Sync, R: Send>(items: &[T], each: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work = || {
        let take = || {
            let at = next.fetch_add(1, Ordering::Relaxed);
            Some((at, each(items.get(at)?)))
        };
        std::iter::from_fn(take).collect::<Vec<(usize, R)>>()
    };
    let mut all = thread::scope(|scope| {
        let others = AT_ONCE.min(items.len()).saturating_sub(1);
        let threads: Vec<_> =
            (0..others).filter_map(|_| thread::Builder::new().spawn_scoped(scope, work).ok()).collect();
        let mut all = work();
        for thread in threads {
            all.extend(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        all
    });
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_done_once_and_stands_where_it_stood() {
        let items: Vec<usize> = (0..1000).collect();
        let calls = AtomicUsize::new(0);
        let each = |n: &usize| (calls.fetch_add(1, Ordering::Relaxed), n * 2).1;
        assert_eq!(map(&items, each), (0..1000).map(|n| n * 2).collect::<Vec<_>>());
        assert_eq!(calls.into_inner(), 1000);
        assert!(map(&[] as &[u8], |n| *n).is_empty());
    }
}
