//! Tests that need a real file system, process or kernel. One binary: one link, one module a subject.

mod store;
