//! Tests that need a real file system, process or kernel. One binary: one link, one module a subject.

// cfg(test) also tells the lints that helpers here may unwrap.
#[cfg(test)]
mod metrics_page;
#[cfg(test)]
mod mlflow;
#[cfg(test)]
mod reader;
#[cfg(test)]
mod store;
#[cfg(test)]
mod trees;
