//! What went wrong with a GPU: a line at once, and an event in the record.

use rankscope_core::sample::Sample;
use serde_json::json;

use crate::printer;
use crate::store::{Event, Writer};

pub fn tell(sample: &Sample, writer: &Writer) {
    for fault in &sample.gpus.faults {
        printer::say(&fault.detail);
        writer.event(Event {
            unix_ms: sample.unix_ms,
            boottime_ns: sample.boottime_ns,
            kind: fault.kind.to_owned(),
            detail: json!({
                "gpu": fault.label.as_deref(),
                "uuid": fault.uuid.as_deref(),
                "detail": &*fault.detail,
            }),
        });
    }
}
