//! REST client of an MLflow tracking server: blocking, one request in flight (`&mut self`), no queue and no back-off.
//!
//! Data flows one way: `Settings` (environment → plain values) → `Client` → typed answers, or one `Error` that tells
//! permanent from transient and repeats what the server said.
//!
//! Constraints: no credential in any text (`Secret`, addresses without user information, server texts are searched);
//! only integers as step and timestamp and only finite values, since the server stores a half-read batch silently
//! and answers 200; the same batch always serialises to the same bytes, so that a re-send changes nothing.

mod address;
mod around;
mod artifacts;
mod attempts;
mod batch;
mod choose;
mod claims;
mod client;
mod closing;
mod delivery;
mod election;
mod ending;
mod error;
mod find;
mod http;
mod ini;
pub mod key;
mod leaving;
mod lock;
mod log_batch;
mod next_in_line;
mod pace;
mod pauses;
mod plan;
mod provenance;
mod proxy;
mod report;
mod retry_after;
mod rollup;
mod secret;
mod settings;
mod shares;
mod silence;
pub mod sink;
mod takeover;
mod target;
mod tls;
mod tls_connector;
mod training;
mod trouble;
mod types;
mod whose;

pub use artifacts::Upload;
pub use attempts::REAPED;
pub use batch::{Batch, MAX_BODY, MAX_METRICS, MAX_TAGS, batches};
pub use client::{Client, NewRun, RunsQuery};
pub use delivery::{Delivery, Phase};
pub use ending::{failed_tag, failures, status as status_of, tags as exit_tags, tags_of as exit_tags_of};
pub use error::{Broken, Error};
pub use find::{Making, create, fresh_token, open_runs};
pub use lock::FolderLock;
pub use log_batch::LeftOut;
pub use pace::Pace;
pub use pauses::{Again, Pauses};
pub use plan::{JOB, Plan, run_context, tag_value};
pub use secret::Secret;
pub use settings::{Auth, NO_SERVER, Settings, SettingsError, Tls};
pub use silence::{Sign, last_sign, recorded};
pub use sink::{Outcome, Sink};
pub use trouble::Trouble;
pub use types::{Experiment, Latest, Metric, Page, Param, Point, Refused, Run, RunStatus, Tag};
