//! `rankscope._native`: the recorder inside a Python process. What Python code sees of it is `python/rankscope`.

#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
