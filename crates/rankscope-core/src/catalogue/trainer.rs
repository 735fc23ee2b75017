//! What a trainer's hyperparameters are: keys with types and ranges by version, rules across keys, prices.

use serde::Deserialize;

use super::version::{Version, Versions};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trainer {
    pub id: String,
    #[serde(default)]
    pub name: String,
    /// The Python package whose version counts.
    pub package: Option<String>,
    /// The oldest and the newest version whose source was read.
    pub first: Option<Version>,
    pub last: Option<Version>,
    /// This entry only adds to one of the same id.
    #[serde(default)]
    pub extends: bool,
    /// Text that reads as a number or truth is taken for it, as pydantic does.
    #[serde(default)]
    pub lax: bool,
    /// Where its keys are looked for before the top level: `model.train_config`.
    #[serde(default)]
    pub sections: Vec<String>,
    /// How a file names it.
    #[serde(default)]
    pub named_by: NamedBy,
    /// Keys that a file may have beside the trainer's own at the top level: those of the model, say.
    #[serde(default)]
    pub elsewhere: Vec<String>,
    /// A platform's whitelist: what its users may set.
    pub only: Option<Vec<String>>,
    pub only_why: Option<String>,
    #[serde(default, rename = "task")]
    pub tasks: Vec<Task>,
    #[serde(default, rename = "key")]
    pub keys: Vec<Key>,
    #[serde(default, rename = "rule")]
    pub rules: Vec<Rule>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedBy {
    #[serde(default)]
    pub keys: Vec<String>,
    /// `*` is any text; upper and lower case are the same.
    #[serde(default)]
    pub values: Vec<String>,
}

/// A kind of work of which some rules speak.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    pub id: String,
    /// Keys that only this task has.
    #[serde(default)]
    pub keys: Vec<String>,
    /// Values of a key of `named_by` that tell it.
    #[serde(default)]
    pub values: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    pub name: String,
    /// Several entries of one name speak for different versions.
    #[serde(default)]
    pub versions: Versions,
    /// `int`, `float|text`, `list of int`, …
    #[serde(default, rename = "type")]
    pub kinds: Kinds,
    /// Values that are taken beside those of the type.
    #[serde(default)]
    pub also: Vec<toml::Value>,
    /// Text that has to match one of these, where the type is text: `*.*`.
    #[serde(default)]
    pub like: Vec<String>,
    /// None is a value.
    #[serde(default)]
    pub null: bool,
    pub default: Option<toml::Value>,
    #[serde(default)]
    pub required: bool,
    pub min: Option<f64>,
    pub max: Option<f64>,
    /// Greater than, less than.
    pub above: Option<f64>,
    pub below: Option<f64>,
    /// What happens to another value; without it the trainer refuses it.
    pub otherwise: Option<String>,
    /// What to use in versions that do not have it.
    pub instead: Option<String>,
    /// One line for people.
    pub says: Option<String>,
    /// What `--template` sets, where that is not left to the default.
    pub template: Option<toml::Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Bool,
    Int,
    Float,
    Text,
    Table,
    /// Of what, where that is known.
    List(Option<Scalar>),
    Any,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    Int,
    Float,
    Text,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(try_from = "String")]
pub struct Kinds {
    pub text: String,
    pub all: Vec<Kind>,
}

impl TryFrom<String> for Kinds {
    type Error = String;

    fn try_from(text: String) -> Result<Kinds, String> {
        let kind = |word: &str| match word.trim() {
            "bool" => Ok(Kind::Bool),
            "int" => Ok(Kind::Int),
            "float" => Ok(Kind::Float),
            "text" => Ok(Kind::Text),
            "table" => Ok(Kind::Table),
            "list" => Ok(Kind::List(None)),
            "list of int" => Ok(Kind::List(Some(Scalar::Int))),
            "list of float" => Ok(Kind::List(Some(Scalar::Float))),
            "list of text" => Ok(Kind::List(Some(Scalar::Text))),
            "any" => Ok(Kind::Any),
            other => Err(format!("`{other}` is no type")),
        };
        Ok(Kinds { all: text.split('|').map(kind).collect::<Result<_, _>>()?, text })
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub id: String,
    pub severity: Severity,
    #[serde(default)]
    pub versions: Versions,
    /// Only where the file tells that it is of this task.
    pub task: Option<String>,
    /// All of them hold.
    pub when: Vec<Condition>,
    /// The key it is about; that of the first condition where nothing is said.
    pub at: Option<String>,
    pub what: String,
    pub why: String,
    #[serde(rename = "do")]
    pub action: Option<String>,
    /// What doing so costs in comparability with other runs.
    pub price: Option<String>,
}

/// About a key's value: that of the file, else its default.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    pub key: String,
    pub is: Option<toml::Value>,
    pub is_not: Option<toml::Value>,
    pub below: Option<f64>,
    pub above: Option<f64>,
    /// It stands in the file.
    pub given: Option<bool>,
    pub null: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The trainer refuses it, or does not do what the file says.
    Error,
    /// It works, and will not for long.
    Deprecated,
    /// It takes time that most runs need not spend.
    Cost,
    /// Worth knowing; asks for nothing.
    Hint,
}

impl Trainer {
    /// The key as this version has it.
    pub fn key(&self, name: &str, version: &Version) -> Option<&Key> {
        self.keys.iter().find(|key| key.name == name && key.versions.hold(version))
    }

    /// Other versions' key of this name.
    pub fn other_key(&self, name: &str) -> Option<&Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    pub fn keys_of<'a>(&'a self, version: &'a Version) -> impl Iterator<Item = &'a Key> {
        self.keys.iter().filter(move |key| key.versions.hold(version))
    }

    pub(super) fn check(&self) -> Result<(), String> {
        match (self.extends, &self.first, &self.last) {
            (false, Some(first), Some(last)) if first <= last => {}
            (false, _, _) => return Err("it needs `first` and `last`, the versions it speaks for".to_owned()),
            (true, _, _) => return Ok(()),
        }
        let known = |name: &String| self.other_key(name).is_some();
        for rule in &self.rules {
            let named = rule.when.iter().map(|condition| &condition.key).chain(&rule.at);
            if let Some(name) = named.into_iter().find(|name| !known(name)) {
                return Err(format!("rule {}: there is no key `{name}`", rule.id));
            }
            match rule.when.is_empty() {
                true => return Err(format!("rule {}: `when` is empty", rule.id)),
                false
                    if rule.task.as_ref().is_some_and(|id| !self.tasks.iter().any(|task| task.id == *id)) =>
                {
                    return Err(format!("rule {}: there is no such task", rule.id));
                }
                false => {}
            }
        }
        Ok(())
    }

    /// Adds what a platform says of this trainer: its keys and rules come first.
    pub(super) fn extend(&mut self, more: Trainer) -> Result<(), String> {
        self.sections.splice(0..0, more.sections);
        self.named_by.keys.extend(more.named_by.keys);
        self.named_by.values.extend(more.named_by.values);
        self.elsewhere.extend(more.elsewhere);
        self.only = more.only.or(self.only.take());
        self.only_why = more.only_why.or(self.only_why.take());
        self.tasks.extend(more.tasks);
        self.keys.splice(0..0, more.keys);
        self.rules.retain(|rule| !more.rules.iter().any(|newer| newer.id == rule.id));
        self.rules.extend(more.rules);
        self.check()
    }
}

/// A value of the catalogue, as YAML has it.
pub fn written(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
        toml::Value::Integer(value) => value.to_string(),
        toml::Value::Float(value) => format!("{value:?}"),
        toml::Value::Boolean(value) => value.to_string(),
        toml::Value::Datetime(date) => date.to_string(),
        toml::Value::Array(items) => {
            format!("[{}]", items.iter().map(written).collect::<Vec<_>>().join(", "))
        }
        toml::Value::Table(table) => {
            let pairs = table.iter().map(|(key, value)| format!("\"{key}\": {}", written(value)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
    }
}
