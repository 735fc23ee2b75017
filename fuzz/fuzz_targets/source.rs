//! Python sources, which a program may call anything: which of their functions are generators.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rankscope_core::diagnose::generators::Functions;

fuzz_target!(|source: &[u8]| {
    let functions = Functions::of(source);
    let lines = source.iter().filter(|byte| **byte == b'\n').count() as u32 + 1;
    let generators = (0..=lines).filter(|line| functions.is_generator(*line) == Some(true)).count();
    let word = |word: &[u8]| source.windows(word.len()).any(|part| part == word);
    assert!(generators == 0 || word(b"yield") && word(b"def"));
    assert!(functions.is_generator(lines + 1).is_none());
});
