//! Files of one process: /proc/<pid>/{stat,status,io,smaps_rollup}.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rankscope_core::parse::pid;

fuzz_target!(|text: &[u8]| {
    if let Ok(stat) = pid::stat(text) {
        // What was read is what a line made of it gives.
        let flags = if stat.exiting { 4 } else { 0 };
        let line = [
            format!("{} (", stat.pid).as_bytes(),
            stat.comm,
            format!(
                ") {} {} 0 0 0 0 {flags} 0 0 0 0 {} 0 {} 0 0 0 {} 0 {} 0 {}",
                stat.state,
                stat.ppid,
                stat.cpu_ticks,
                stat.children_ticks,
                stat.threads,
                stat.start_ticks,
                stat.rss_pages
            )
            .as_bytes(),
        ]
        .concat();
        assert_eq!(pid::stat(&line), Ok(stat));
    }
    let _ = pid::status(text);
    let _ = pid::io(text);
    let _ = pid::smaps_rollup(text);
    let _ = pid::cpus_allowed(text).map(|set| set.count());
});
