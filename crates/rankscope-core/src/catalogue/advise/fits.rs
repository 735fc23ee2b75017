//! Whether a value is one that a key takes, and what it then is.

use crate::catalogue::document::{Node, Value};
use crate::catalogue::glob;
use crate::catalogue::trainer::{Key, Kind, Scalar};

/// A value as rules compare it.
#[derive(Clone, Debug, PartialEq)]
pub enum Plain {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    /// A list, a map, or what only the program that reads the file can tell.
    Other,
}

pub enum Fit {
    Takes(Plain),
    /// Not the type, or not one of the values.
    WrongType,
    /// The type, but outside of these bounds.
    OutOfRange,
}

/// What other programs put in before the trainer sees it: `${oc.env:HOME}`, `{{ epochs }}`.
pub fn is_filled_in_later(value: &Value) -> bool {
    match value {
        Value::Text(text) => text.contains("${") || text.contains("{{"),
        Value::Other(_) => true,
        _ => false,
    }
}

pub fn fit(key: &Key, value: &Value, lax: bool) -> Fit {
    if *value == Value::Null {
        return if key.null { Fit::Takes(Plain::Null) } else { Fit::WrongType };
    }
    if let Some(plain) = key.also.iter().map(plain).find(|plain| is(value, plain)) {
        return Fit::Takes(plain);
    }
    let Some(plain) = key.kinds.all.iter().find_map(|kind| of_kind(*kind, value, lax)) else {
        return Fit::WrongType;
    };
    match &plain {
        Plain::Number(number) if !in_range(key, *number) => Fit::OutOfRange,
        Plain::Text(text)
            if !key.like.is_empty() && !key.like.iter().any(|like| glob::matches(like, text)) =>
        {
            Fit::WrongType
        }
        _ => Fit::Takes(plain),
    }
}

/// A value of the catalogue.
pub fn plain(value: &toml::Value) -> Plain {
    match value {
        toml::Value::Boolean(value) => Plain::Bool(*value),
        toml::Value::Integer(value) => Plain::Number(*value as f64),
        toml::Value::Float(value) => Plain::Number(*value),
        toml::Value::String(text) => Plain::Text(text.clone()),
        _ => Plain::Other,
    }
}

fn is(value: &Value, plain: &Plain) -> bool {
    match (value, plain) {
        (Value::Bool(a), Plain::Bool(b)) => a == b,
        (Value::Int(a), Plain::Number(b)) => *a as f64 == *b,
        (Value::Float(a), Plain::Number(b)) => a == b,
        (Value::Text(a), Plain::Text(b)) => a == b,
        _ => false,
    }
}

fn in_range(key: &Key, number: f64) -> bool {
    key.min.is_none_or(|min| number >= min)
        && key.max.is_none_or(|max| number <= max)
        && key.above.is_none_or(|above| number > above)
        && key.below.is_none_or(|below| number < below)
}

/// `lax`: the conversions of pydantic, which were tried out with 2.14.
fn of_kind(kind: Kind, value: &Value, lax: bool) -> Option<Plain> {
    match (kind, value) {
        (Kind::Any, _) => Some(Plain::Other),
        (Kind::Table, Value::Map(_)) => Some(Plain::Other),
        (Kind::List(of), Value::List(items)) => {
            let all = items.iter().all(|item| of.is_none_or(|of| is_scalar(of, item, lax)));
            all.then_some(Plain::Other)
        }
        (Kind::Text, Value::Text(text)) => Some(Plain::Text(text.clone())),
        (Kind::Bool, Value::Bool(value)) => Some(Plain::Bool(*value)),
        (Kind::Bool, value) if lax => truth(value).map(Plain::Bool),
        (Kind::Int, value) => whole(value, lax).map(Plain::Number),
        (Kind::Float, value) => number(value, lax).map(Plain::Number),
        _ => None,
    }
}

fn is_scalar(of: Scalar, item: &Node, lax: bool) -> bool {
    is_filled_in_later(&item.value)
        || match of {
            Scalar::Int => whole(&item.value, lax).is_some(),
            Scalar::Float => number(&item.value, lax).is_some(),
            Scalar::Text => matches!(item.value, Value::Text(_)),
        }
}

fn whole(value: &Value, lax: bool) -> Option<f64> {
    match value {
        Value::Int(value) => Some(*value as f64),
        Value::Bool(value) if lax => Some(f64::from(u8::from(*value))),
        Value::Float(value) if lax => Some(*value).filter(|value| value.fract() == 0.0),
        Value::Text(_) if lax => number(value, lax).filter(|value| value.fract() == 0.0),
        _ => None,
    }
}

fn number(value: &Value, lax: bool) -> Option<f64> {
    match value {
        Value::Int(value) => Some(*value as f64),
        Value::Float(value) => Some(*value),
        Value::Bool(value) if lax => Some(f64::from(u8::from(*value))),
        // `1e-4` is text to some readers, and a number to others.
        Value::Text(text) if lax || text.contains(['e', 'E']) => text.trim().replace('_', "").parse().ok(),
        _ => None,
    }
}

fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Int(0) => Some(false),
        Value::Int(1) => Some(true),
        Value::Float(value) if *value == 0.0 || *value == 1.0 => Some(*value == 1.0),
        Value::Text(text) => match text.to_lowercase().as_str() {
            "1" | "true" | "t" | "yes" | "y" | "on" => Some(true),
            "0" | "false" | "f" | "no" | "n" | "off" => Some(false),
            _ => None,
        },
        _ => None,
    }
}
