//! A process that runs on changes its stack while it is read. Two readings in a row tell what to believe.

use rankscope_core::diagnose::observations::Frame;

/// Both leaf first. What is left of the first reading: the root-side functions that both agree on, and of those that
/// differ the one next to them, as a leaf that is not to be believed (then `true`). Lines are those of the first reading:
/// a loop is at another line of the same function a moment later, or deeper.
pub fn believed(mut first: Vec<Frame>, second: &[Frame]) -> (Vec<Frame>, bool) {
    let same = |a: &Frame, b: &Frame| a.function == b.function && a.file == b.file;
    let common = first.iter().rev().zip(second.iter().rev()).take_while(|(a, b)| same(a, b)).count();
    if common == first.len() {
        return (first, false);
    }
    first.drain(..first.len() - common - 1);
    (first, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(root_first: &[(&str, u32)]) -> Vec<Frame> {
        let frame = |(function, line): &(&str, u32)| Frame {
            function: (*function).to_owned(),
            file: "train.py".to_owned(),
            line: *line,
        };
        root_first.iter().rev().map(frame).collect()
    }

    #[test]
    fn the_same_function_at_another_line_is_believed() {
        let first = stack(&[("main", 3), ("step", 10)]);
        assert_eq!(believed(first.clone(), &stack(&[("main", 3), ("step", 11)])), (first, false));
    }

    #[test]
    fn frames_past_the_first_difference_are_not() {
        let first = stack(&[("main", 3), ("step", 10), ("a", 1), ("b", 2)]);
        let (kept, torn) = believed(first, &stack(&[("main", 3), ("step", 12), ("c", 7), ("d", 9)]));
        assert_eq!((kept, torn), (stack(&[("main", 3), ("step", 10), ("a", 1)]), true));
    }

    #[test]
    fn deeper_or_shallower_a_moment_later() {
        let (short, long) =
            (stack(&[("main", 3), ("step", 10)]), stack(&[("main", 3), ("step", 10), ("a", 1)]));
        assert_eq!(believed(short.clone(), &long), (short.clone(), false));
        assert_eq!(believed(long.clone(), &short), (long, true));
        assert_eq!(believed(short.clone(), &[]), (stack(&[("main", 3)]), true));
        assert_eq!(believed(Vec::new(), &short), (Vec::new(), false));
    }
}
