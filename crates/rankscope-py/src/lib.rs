//! `rankscope._native`: the recorder inside a Python process. What Python code sees of it is `python/rankscope`.
//!
//! The recorder's threads know nothing of Python: they never take the GIL, and the GIL keeps none of them waiting.

mod end;
mod marking;
mod process;
mod recording;

#[pyo3::pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::marking::{mark, open_marks};
    #[pymodule_export]
    use super::recording::Recording;

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_init]
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::process::watch_forks();
        Ok(())
    }
}
