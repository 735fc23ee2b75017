//! docs/metrics.md is what the table of series says.

use std::fs;
use std::path::Path;

use rankscope_core::metrics_page::metrics_markdown;

#[test]
fn docs_metrics_is_what_the_table_says() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let page = metrics_markdown();
    if std::env::var("RANKSCOPE_BLESS").is_ok_and(|v| v == "1") {
        fs::write(&file, &page).unwrap();
    }
    let written = fs::read_to_string(&file).unwrap_or_default();
    let differs = page.lines().zip(written.lines()).position(|(a, b)| a != b);
    assert!(
        page == written,
        "docs/metrics.md differs from the table (line {}): RANKSCOPE_BLESS=1 rewrites it",
        differs.unwrap_or(page.lines().count().min(written.lines().count())) + 1
    );
}
