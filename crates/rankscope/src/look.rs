//! How a text looks on this terminal: colours, and how wide it may be.

use std::io::IsTerminal;

use crate::env_vars;

/// Where nothing is known, and the least that a table is made for.
const USUAL: usize = 100;
const NARROWEST: usize = 40;

#[derive(Clone, Copy, Debug)]
pub struct Look {
    pub colour: bool,
    pub width: usize,
}

#[derive(Clone, Copy, Debug)]
pub enum Style {
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
}

impl Look {
    /// Of stdout.
    pub fn of_stdout() -> Look {
        let terminal = std::io::stdout().is_terminal();
        let width = env_vars::columns().or_else(|| terminal.then(columns).flatten());
        Look { colour: env_vars::colour().unwrap_or(terminal), width: width.unwrap_or(USUAL).max(NARROWEST) }
    }

    pub fn paint(&self, style: Style, text: &str) -> String {
        if !self.colour {
            return text.to_owned();
        }
        let code = match style {
            Style::Bold => 1,
            Style::Dim => 2,
            Style::Red => 31,
            Style::Green => 32,
            Style::Yellow => 33,
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// Lines of words, each after the first as far in as `indent` says.
    pub fn wrap(&self, text: &str, indent: usize) -> String {
        let room = self.width.saturating_sub(indent).max(20);
        let mut lines: Vec<String> = Vec::new();
        for word in text.split(' ') {
            match lines.last_mut() {
                Some(line) if line.chars().count() + 1 + word.chars().count() <= room => {
                    line.push(' ');
                    line.push_str(word);
                }
                _ => lines.push(word.to_owned()),
            }
        }
        lines.join(&format!("\n{}", " ".repeat(indent)))
    }
}

fn columns() -> Option<usize> {
    // SAFETY: winsize is plain data, for which all zeros is a valid value.
    let mut size: libc::winsize = unsafe { std::mem::zeroed() };
    // SAFETY: asks into a structure that outlives the call.
    let done = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size) };
    (done == 0 && size.ws_col > 0).then_some(usize::from(size.ws_col))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_wrapped_and_colours_are_left_out() {
        let look = Look { colour: false, width: 40 };
        assert_eq!(look.wrap("a b", 4), "a b");
        let wrapped = look.wrap(&"word ".repeat(12), 8);
        assert!(wrapped.lines().all(|line| line.chars().count() <= 40), "{wrapped}");
        assert!(wrapped.lines().skip(1).all(|line| line.starts_with("        ")));
        assert_eq!(look.paint(Style::Red, "x"), "x");
        assert_eq!(Look { colour: true, width: 40 }.paint(Style::Red, "x"), "\u{1b}[31mx\u{1b}[0m");
    }
}
