//! Texts that others chose (names of runs, processes, metrics, tags) made harmless: for a terminal, for HTML, and for
//! JSON inside of HTML.

use std::fmt::Write;

/// Control characters become the pictures of themselves (`␛[31m`), and what turns the direction of writing becomes
/// its number: both are seen instead of obeyed.
pub fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\u{0}'..='\u{1f}' => out.push(char::from_u32(0x2400 + c as u32).unwrap_or('\u{fffd}')),
            '\u{7f}' => out.push('\u{2421}'),
            '\u{80}'..='\u{9f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            | '\u{feff}' => {
                // Writing to a String can't fail.
                let _ = write!(out, "⟨U+{:04X}⟩", c as u32);
            }
            _ => out.push(c),
        }
    }
    out
}

/// For text and for attributes in double quotes.
pub fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}

/// JSON that stands in a `<script>`: nothing in it can end the element or begin a comment.
pub fn json_in_html(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        assert_eq!(clean("\u{1b}[31mred\u{1b}[0m\r\n\u{7f}"), "␛[31mred␛[0m␍␊␡");
        assert_eq!(clean("a\u{202e}b\u{9b}c"), "a⟨U+202E⟩b⟨U+009B⟩c");
        assert_eq!(clean("손실 é 🚀"), "손실 é 🚀");
    }

    #[test]
    fn nothing_that_a_page_obeys_is_left() {
        assert_eq!(html("<b a='1' c=\"2\">&"), "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;");
        let json = json_in_html("{\"a\":\"</script><!--&\"}");
        assert!(!json.contains(['<', '>', '&']), "{json}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap()["a"], "</script><!--&");
    }
}
