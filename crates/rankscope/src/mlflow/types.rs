//! What is sent and what is answered. What can't be sent safely can't be built: the server answers 200 to a batch
//! with a NaN or a float step, keeps what stands before it, and drops the rest.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use super::key;

/// One point of a series.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metric {
    key: String,
    value: f64,
    #[serde(rename = "timestamp")]
    timestamp_ms: i64,
    step: i64,
}

/// Why a metric, tag or param can't be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    Key,
    NotFinite,
    Timestamp,
    TooLong,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key => "not a key that every MLflow server accepts",
            Self::NotFinite => "not a finite value",
            Self::Timestamp => "a time before 1970",
            Self::TooLong => "a value that the server would cut off",
        })
    }
}

impl std::error::Error for Refused {}

impl Metric {
    pub fn new(key: &str, value: f64, timestamp_ms: i64, step: i64) -> Result<Self, Refused> {
        match () {
            () if !key::is_valid(key) => Err(Refused::Key),
            () if !value.is_finite() => Err(Refused::NotFinite),
            () if timestamp_ms < 0 => Err(Refused::Timestamp),
            () => Ok(Self { key: key.to_owned(), value, timestamp_ms, step }),
        }
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    pub fn value(&self) -> f64 {
        self.value
    }

    pub fn timestamp_ms(&self) -> i64 {
        self.timestamp_ms
    }

    pub fn step(&self) -> i64 {
        self.step
    }
}

/// Servers cut longer values off without a word: 5000 up to MLflow 2.x, 8000 later.
const MAX_TAG: usize = 5000;
const MAX_PARAM: usize = 500;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tag {
    key: String,
    #[serde(default)]
    value: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Param {
    key: String,
    #[serde(default)]
    value: String,
}

macro_rules! pair {
    ($name:ident, $max:expr) => {
        impl $name {
            pub fn new(key: &str, value: &str) -> Result<Self, Refused> {
                match () {
                    () if !key::is_valid(key) => Err(Refused::Key),
                    () if value.chars().count() > $max => Err(Refused::TooLong),
                    () => Ok(Self { key: key.to_owned(), value: value.to_owned() }),
                }
            }

            pub fn key(&self) -> &str {
                &self.key
            }

            pub fn value(&self) -> &str {
                &self.value
            }
        }
    };
}
pair!(Tag, MAX_TAG);
pair!(Param, MAX_PARAM);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStatus {
    Running,
    Scheduled,
    Finished,
    Failed,
    Killed,
    /// A word that this version does not know.
    Other,
}

impl RunStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "RUNNING",
            Self::Scheduled => "SCHEDULED",
            Self::Finished => "FINISHED",
            Self::Failed => "FAILED",
            Self::Killed => "KILLED",
            Self::Other => "",
        }
    }

    fn parse(word: &str) -> Self {
        let known = [Self::Running, Self::Scheduled, Self::Finished, Self::Failed, Self::Killed];
        known.into_iter().find(|s| s.as_str() == word).unwrap_or(Self::Other)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    pub id: String,
    pub name: String,
    pub experiment_id: String,
    pub status: RunStatus,
    pub start_time_ms: Option<i64>,
    pub end_time_ms: Option<i64>,
    pub artifact_uri: String,
    pub deleted: bool,
    /// The latest point of each key.
    pub metrics: Vec<Latest>,
    pub params: Vec<Param>,
    pub tags: Vec<Tag>,
}

impl Run {
    pub fn tag(&self, key: &str) -> Option<&str> {
        self.tags.iter().find(|t| t.key == key).map(Tag::value)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Latest {
    pub key: String,
    pub point: Point,
}

/// A point as the server gives it: here a value may be NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub value: f64,
    pub timestamp_ms: i64,
    pub step: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "wire::Experiment")]
pub struct Experiment {
    pub id: String,
    pub name: String,
    pub artifact_location: String,
    pub deleted: bool,
}

/// Part of a list, and the token of the next part.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
    pub items: Vec<T>,
    pub next: Option<String>,
}

/// Numbers come as numbers, or (protobuf's JSON, NaN) as texts.
fn number<'de, D: Deserializer<'de>, T: std::str::FromStr + Deserialize<'de>>(
    from: D,
) -> Result<T, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either<T> {
        Number(T),
        Text(String),
    }
    match Either::<T>::deserialize(from)? {
        Either::Number(n) => Ok(n),
        Either::Text(text) => text.parse().map_err(|_| serde::de::Error::custom("expected a number")),
    }
}

/// The JSON forms.
pub(super) mod wire {
    use super::*;

    #[derive(Deserialize)]
    pub struct Experiment {
        experiment_id: String,
        #[serde(default)]
        name: String,
        #[serde(default)]
        artifact_location: String,
        #[serde(default)]
        lifecycle_stage: String,
    }

    impl From<Experiment> for super::Experiment {
        fn from(e: Experiment) -> Self {
            let deleted = e.lifecycle_stage == "deleted";
            Self { id: e.experiment_id, name: e.name, artifact_location: e.artifact_location, deleted }
        }
    }

    #[derive(Deserialize)]
    pub struct Number<T: std::str::FromStr + serde::de::DeserializeOwned>(
        #[serde(deserialize_with = "number")] T,
    );

    #[derive(Deserialize)]
    pub struct Metric {
        #[serde(default)]
        key: String,
        value: Number<f64>,
        timestamp: Number<i64>,
        step: Option<Number<i64>>,
    }

    impl Metric {
        pub fn point(&self) -> Point {
            let step = self.step.as_ref().map_or(0, |s| s.0);
            Point { value: self.value.0, timestamp_ms: self.timestamp.0, step }
        }
    }

    #[derive(Deserialize)]
    struct Info {
        run_id: String,
        #[serde(default)]
        run_name: String,
        #[serde(default)]
        experiment_id: String,
        #[serde(default)]
        status: String,
        start_time: Option<Number<i64>>,
        end_time: Option<Number<i64>>,
        #[serde(default)]
        artifact_uri: String,
        #[serde(default)]
        lifecycle_stage: String,
    }

    #[derive(Deserialize, Default)]
    struct Data {
        #[serde(default)]
        metrics: Vec<Metric>,
        #[serde(default)]
        params: Vec<Param>,
        #[serde(default)]
        tags: Vec<Tag>,
    }

    #[derive(Deserialize)]
    pub struct Run {
        info: Info,
        #[serde(default)]
        data: Data,
    }

    impl From<Run> for super::Run {
        fn from(Run { info, data }: Run) -> Self {
            Self {
                id: info.run_id,
                name: info.run_name,
                experiment_id: info.experiment_id,
                status: RunStatus::parse(&info.status),
                start_time_ms: info.start_time.map(|n| n.0),
                end_time_ms: info.end_time.map(|n| n.0).filter(|t| *t > 0),
                artifact_uri: info.artifact_uri,
                deleted: info.lifecycle_stage == "deleted",
                metrics: data.metrics.into_iter().map(|m| Latest { point: m.point(), key: m.key }).collect(),
                params: data.params,
                tags: data.tags,
            }
        }
    }
}
