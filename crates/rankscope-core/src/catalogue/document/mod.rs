//! A hyperparameter file as a tree of values with the lines they stand at. Untrusted: its size, depth and number of
//! values are bounded, and nothing in it is evaluated.

mod toml;
mod yaml;

/// Longer files are not read.
pub const LONGEST: usize = 1 << 20;
/// Values within values.
const DEEPEST: usize = 64;
/// Values in all, those that aliases repeat included.
const MOST: usize = 100_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON too, which is YAML.
    Yaml,
    Toml,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub at: At,
    pub value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
    /// Something that only the program that reads the file can tell: a tag of its own, a date of TOML.
    Other(String),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub key: String,
    pub at: At,
    pub node: Node,
}

/// Why a file can't be read.
#[derive(Clone, Debug, PartialEq)]
pub struct Unreadable {
    pub at: At,
    pub why: String,
}

const START: At = At { line: 1, column: 1 };

/// The whole file. An empty one is null.
pub fn parse(text: &str, format: Format) -> Result<Node, Unreadable> {
    if text.len() > LONGEST {
        return Err(Unreadable { at: START, why: format!("it is longer than {LONGEST} bytes") });
    }
    match format {
        Format::Yaml => yaml::parse(text),
        Format::Toml => toml::parse(text),
    }
}

impl Node {
    pub fn map(&self) -> Option<&[Entry]> {
        match &self.value {
            Value::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// The value under `a.b`: the last one where a key is given twice.
    pub fn under(&self, path: &str) -> Option<&Node> {
        path.split('.').try_fold(self, |node, part| {
            node.map()?.iter().rev().find(|entry| entry.key == part).map(|entry| &entry.node)
        })
    }
}

#[cfg(test)]
mod tests;
