//! What a mistyped key was meant to be.

/// Longer words are not compared: no key is.
const LONGEST: usize = 64;

/// The nearest of them, if it is near: a third of the letters may differ.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST {
        return None;
    }
    let far = word.chars().count().div_ceil(3);
    let near = known.map(|name| (distance(word, name), name)).min()?;
    (near.0 <= far.min(3)).then_some(near.1)
}

/// Letters to add, drop or change.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut before = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = before + usize::from(x != *y);
            before = row[j + 1];
            row[j + 1] = change.min(before + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_near_and_another_word_is_not() {
        let known = ["epochs", "batch_size", "num_workers"];
        let nearest = |word| super::nearest(word, known.into_iter());
        assert_eq!(nearest("epoch"), Some("epochs"));
        assert_eq!(nearest("num_worker"), Some("num_workers"));
        assert_eq!(nearest("batchsize"), Some("batch_size"));
        assert_eq!(nearest("temperature"), None);
        assert_eq!(nearest(""), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
