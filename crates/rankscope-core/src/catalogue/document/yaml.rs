//! YAML and JSON. Plain words mean what they mean to PyYAML: `yes` is true.

use std::collections::HashMap;

use granit_parser::{Event, Marker, Parser, ScalarStyle, Tag};

use super::{At, DEEPEST, Entry, MOST, Node, START, Unreadable, Value};

/// A list or map that is being read.
struct Open {
    node: Node,
    anchor: usize,
    /// The key whose value comes next.
    key: Option<(String, At)>,
}

#[derive(Default)]
struct Reader {
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    values: usize,
    root: Option<Node>,
}

pub(super) fn parse(text: &str) -> Result<Node, Unreadable> {
    let mut reader = Reader::default();
    for event in Parser::new_from_str(text) {
        let (event, span) =
            event.map_err(|error| Unreadable { at: at(*error.marker()), why: error.info() })?;
        reader.take(event, at(span.start))?;
    }
    Ok(reader.root.unwrap_or(Node { at: START, value: Value::Null }))
}

fn at(marker: Marker) -> At {
    At { line: marker.line().max(1), column: marker.col() + 1 }
}

impl Reader {
    fn take(&mut self, event: Event, at: At) -> Result<(), Unreadable> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let value = scalar(&text, style == ScalarStyle::Plain, tag.as_deref());
                self.put(Node { at, value }, anchor)
            }
            Event::SequenceStart(_, anchor, _) => self.begin(Value::List(Vec::new()), at, anchor),
            Event::MappingStart(_, anchor, _) => self.begin(Value::Map(Vec::new()), at, anchor),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(done) => self.put(merged(done.node), done.anchor),
                None => Ok(()),
            },
            Event::Alias(anchor) => {
                // An alias to what it stands in has no value yet.
                let value = self.anchors.get(&anchor).map_or(Value::Null, |node| node.value.clone());
                self.values += count(&value);
                self.put(Node { at, value }, 0)
            }
            Event::DocumentStart(..) if self.root.is_some() => Err(Unreadable {
                at,
                why: "a second document begins here; one file is one document".to_owned(),
            }),
            _ => Ok(()),
        }
    }

    fn begin(&mut self, value: Value, at: At, anchor: usize) -> Result<(), Unreadable> {
        if self.open.len() >= DEEPEST {
            return Err(Unreadable { at, why: format!("values are nested deeper than {DEEPEST}") });
        }
        self.open.push(Open { node: Node { at, value }, anchor, key: None });
        Ok(())
    }

    fn put(&mut self, node: Node, anchor: usize) -> Result<(), Unreadable> {
        self.values += 1;
        if self.values > MOST {
            return Err(Unreadable { at: node.at, why: format!("it has more than {MOST} values") });
        }
        if anchor != 0 {
            self.values += count(&node.value);
            self.anchors.insert(anchor, node.clone());
        }
        let Some(within) = self.open.last_mut() else {
            self.root.get_or_insert(node);
            return Ok(());
        };
        match (&mut within.node.value, within.key.take()) {
            (Value::List(items), _) => items.push(node),
            (Value::Map(_), None) => within.key = Some((key(&node.value), node.at)),
            (Value::Map(entries), Some((key, at))) => entries.push(Entry { key, at, node }),
            _ => {}
        }
        Ok(())
    }
}

/// What a copy of it costs, in values; a long text is more than one.
fn count(value: &Value) -> usize {
    let text = |text: &str| 1 + text.len() / 64;
    match value {
        Value::List(items) => items.iter().map(|item| 1 + count(&item.value)).sum(),
        Value::Map(entries) => entries.iter().map(|entry| text(&entry.key) + count(&entry.node.value)).sum(),
        Value::Text(words) | Value::Other(words) => text(words),
        _ => 1,
    }
}

/// A key that is no text has a name all the same.
fn key(value: &Value) -> String {
    match value {
        Value::Text(text) | Value::Other(text) => text.clone(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Null => "null".to_owned(),
        Value::List(_) | Value::Map(_) => "?".to_owned(),
    }
}

/// `<<: *defaults` gives what the map does not have itself.
fn merged(mut node: Node) -> Node {
    let Value::Map(entries) = &mut node.value else { return node };
    let Some(place) = entries.iter().position(|entry| entry.key == "<<") else { return node };
    let given = match entries.remove(place).node.value {
        Value::Map(given) => given,
        Value::List(maps) => maps
            .into_iter()
            .filter_map(|map| if let Value::Map(given) = map.value { Some(given) } else { None })
            .flatten()
            .collect(),
        _ => Vec::new(),
    };
    let mut own: std::collections::HashSet<String> = entries.iter().map(|entry| entry.key.clone()).collect();
    entries.extend(given.into_iter().filter(|entry| own.insert(entry.key.clone())));
    node
}

fn scalar(text: &str, plain: bool, tag: Option<&Tag>) -> Value {
    match tag.map(|tag| (tag.is_yaml_core_schema(), tag.suffix())) {
        Some((true, "str")) => return Value::Text(text.to_owned()),
        Some((true, "int" | "float" | "bool" | "null")) => {}
        Some(_) => return Value::Other(text.to_owned()),
        None if !plain => return Value::Text(text.to_owned()),
        None => {}
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => return Value::Bool(true),
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => {
            return Value::Bool(false);
        }
        _ => {}
    }
    number(text).unwrap_or_else(|| Value::Text(text.to_owned()))
}

fn number(text: &str) -> Option<Value> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
    match digits {
        ".inf" | ".Inf" | ".INF" => return Some(Value::Float(sign * f64::INFINITY)),
        ".nan" | ".NaN" | ".NAN" => return Some(Value::Float(f64::NAN)),
        _ => {}
    }
    let known = |c: char| c.is_ascii_digit() || matches!(c, '_' | '.' | 'e' | 'E' | '+' | '-');
    let first = digits.strip_prefix('.').unwrap_or(digits).chars().next()?;
    if !first.is_ascii_digit() || !digits.chars().all(known) {
        return None;
    }
    let clean: String = text.chars().filter(|c| *c != '_').collect();
    if digits.chars().all(|c| c.is_ascii_digit() || c == '_') {
        return whole(&clean, digits);
    }
    // PyYAML takes `1e-4` and `1.0e4` for text, Hydra for a number: as text it can still be taken for one.
    let float = digits.contains('.') && (!digits.contains(['e', 'E']) || digits.contains(['+', '-']));
    float.then(|| clean.parse().ok().map(Value::Float))?
}

/// A leading 0 means base 8, as to PyYAML.
fn whole(clean: &str, digits: &str) -> Option<Value> {
    match digits.starts_with('0') && digits.len() > 1 {
        true => i64::from_str_radix(clean, 8).ok().map(Value::Int),
        false => clean.parse().map(Value::Int).or_else(|_| clean.parse().map(Value::Float)).ok(),
    }
}
