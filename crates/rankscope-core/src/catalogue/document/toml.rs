//! TOML.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{At, Entry, MOST, Node, START, Unreadable, Value};

/// Where each line begins.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
    values: usize,
}

pub(super) fn parse(text: &str) -> Result<Node, Unreadable> {
    let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let mut lines = Lines { text, starts, values: 0 };
    // Its nesting is bounded by the parser.
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(START, |span| lines.at(span.start));
        Unreadable { at, why: error.message().to_owned() }
    })?;
    let value = lines.table(table.get_ref());
    match lines.values > MOST {
        true => Err(Unreadable { at: START, why: format!("it has more than {MOST} values") }),
        false => Ok(Node { at: START, value }),
    }
}

impl Lines<'_> {
    fn at(&self, offset: usize) -> At {
        let line = self.starts.partition_point(|start| *start <= offset).max(1);
        let before = self.starts.get(line - 1).and_then(|start| self.text.get(*start..offset)).unwrap_or("");
        At { line, column: before.chars().count() + 1 }
    }

    fn table(&mut self, table: &DeTable) -> Value {
        let mut entries: Vec<(usize, Entry)> = Vec::new();
        for (key, value) in table.iter() {
            let start = key.span().start;
            let (at, node) = (self.at(start), self.node(value));
            entries.push((start, Entry { key: key.get_ref().to_string(), at, node }));
        }
        // As they stand in the file, not by name.
        entries.sort_by_key(|(start, _)| *start);
        Value::Map(entries.into_iter().map(|(_, entry)| entry).collect())
    }

    fn node(&mut self, value: &Spanned<DeValue>) -> Node {
        self.values += 1;
        let at = self.at(value.span().start);
        let value = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
                .map_or_else(|_| Value::Other(integer.to_string()), Value::Int),
            DeValue::Float(float) => {
                float.as_str().parse().map_or_else(|_| Value::Other(float.to_string()), Value::Float)
            }
            DeValue::Boolean(value) => Value::Bool(*value),
            DeValue::Datetime(date) => Value::Other(date.to_string()),
            DeValue::Array(items) => Value::List(items.iter().map(|item| self.node(item)).collect()),
            DeValue::Table(table) => self.table(table),
        };
        Node { at, value }
    }
}
