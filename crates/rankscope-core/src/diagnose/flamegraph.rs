//! Profiles as one SVG that needs nothing else: the root on top, a click makes a frame as wide as the picture.
//!
//! A box is a function; the lines that it was at, and how long, are in its title.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::observations::{Frame, Stacks};
use super::profile::Profile;
use crate::clean::html;

const WIDTH: f64 = 1200.0;
const ROW: usize = 18;
const TOP: usize = 34;
/// Of a pixel: what is narrower is left out.
const NARROWEST: f64 = 0.3;
const LINES_NAMED: usize = 3;

#[derive(Default)]
struct Node<'a> {
    seconds: f64,
    lines: BTreeMap<u32, f64>,
    /// By function and file.
    children: BTreeMap<(&'a str, &'a str), Node<'a>>,
}

impl<'a> Node<'a> {
    fn child(&mut self, function: &'a str, file: &'a str) -> &mut Node<'a> {
        self.children.entry((function, file)).or_default()
    }

    fn depth(&self) -> usize {
        1 + self.children.values().map(Node::depth).max().unwrap_or(0)
    }
}

/// Each profile is a box below the top one: those of the GPU's idle time where there are any.
pub fn svg(title: &str, stacks: &Stacks, profiles: &[Profile]) -> String {
    let mut root = Node::default();
    let gpu_idle = profiles.iter().any(|profile| profile.gpu_idle);
    for profile in profiles.iter().filter(|profile| profile.gpu_idle == gpu_idle) {
        let seconds = profile.seconds();
        root.seconds += seconds;
        let top = root.child(&profile.name, "");
        top.seconds += seconds;
        for entry in &profile.entries {
            let mut node = &mut *top;
            for frame in entry.frames.iter().filter_map(|&index| frame_at(stacks, index)) {
                node = node.child(&frame.function, &frame.file);
                node.seconds += entry.seconds;
                *node.lines.entry(frame.line).or_default() += entry.seconds;
            }
        }
    }
    let height = TOP + root.depth() * ROW + 6;
    let mut page = String::with_capacity(64 << 10);
    // Writing to a String can't fail.
    let _ = write!(
        page,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="11">
<style>svg{{background:#fff}}.b{{cursor:pointer}}.b:hover rect{{stroke:#000}}rect{{stroke:#fff;stroke-width:.6}}.p rect{{opacity:.5}}text{{fill:#222;pointer-events:none}}</style>
<text x="6" y="20" font-size="14">{}</text>
"#,
        escaped(title)
    );
    let all = Placed { name: "all", file: "", x: 0.0, row: 0 };
    draw(&mut page, &root, &all, root.seconds);
    page.push_str(SCRIPT);
    page.push_str("</svg>\n");
    page
}

struct Placed<'a> {
    name: &'a str,
    file: &'a str,
    /// Seconds from the left.
    x: f64,
    row: usize,
}

fn draw(page: &mut String, node: &Node, at: &Placed, total: f64) {
    let scale = if total > 0.0 { WIDTH / total } else { 0.0 };
    let width = node.seconds * scale;
    if width < NARROWEST {
        return;
    }
    let (x, y) = (at.x * scale, TOP + at.row * ROW);
    let share = 100.0 * node.seconds / total;
    let _ = writeln!(
        page,
        r#"<g class="b" data-n="{name}"><title>{name}{place}: {seconds:.2} s, {share:.1} %{lines}</title><rect x="{x:.2}" y="{y}" width="{width:.2}" height="{ROW}" fill="{fill}"/><text x="{tx:.2}" y="{ty}">{shown}</text></g>"#,
        name = escaped(at.name),
        place = if at.file.is_empty() { String::new() } else { format!(" ({})", escaped(at.file)) },
        seconds = node.seconds,
        lines = lines(node),
        fill = fill(at.file),
        tx = x + 3.0,
        ty = y + ROW - 5,
        shown = escaped(&cut(at.name, width)),
    );
    let mut x = at.x;
    for ((name, file), child) in &node.children {
        draw(page, child, &Placed { name, file, x, row: at.row + 1 }, total);
        x += child.seconds;
    }
}

fn frame_at(stacks: &Stacks, index: u32) -> Option<&Frame> {
    stacks.frames.get(usize::try_from(index).ok()?)
}

/// Those that took longest.
fn lines(node: &Node) -> String {
    let mut lines: Vec<(u32, f64)> =
        node.lines.iter().filter(|(line, _)| **line > 0).map(|(l, s)| (*l, *s)).collect();
    lines.sort_by(|a, b| b.1.total_cmp(&a.1));
    lines.iter().take(LINES_NAMED).fold(String::new(), |mut text, (line, seconds)| {
        let _ = write!(text, "&#10;line {line}: {seconds:.2} s");
        text
    })
}

/// What fits; the script does the same after a click.
fn cut(name: &str, width: f64) -> String {
    let room = ((width - 6.0) / 6.7).max(0.0) as usize;
    match name.chars().count() {
        length if length <= room => name.to_owned(),
        _ if room < 3 => String::new(),
        _ => name.chars().take(room - 1).chain(['…']).collect(),
    }
}

/// One colour a file, so that a library is recognised; grey what is no code.
fn fill(file: &str) -> String {
    if file.is_empty() {
        return "#ddd".to_owned();
    }
    let hash = file.bytes().fold(7u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(u32::from(byte)));
    format!("hsl({} {}% {}%)", hash % 360, 55 + hash / 360 % 20, 74 + hash / 7200 % 8)
}

/// Names come from the program: markup in them stays text, and what XML can't hold is replaced.
fn escaped(text: &str) -> String {
    html(text).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}

/// What is above and below the clicked box is stretched, the rest hidden; boxes above it fill the width. Other pictures
/// may be in the same page.
const SCRIPT: &str = r#"<script><![CDATA[
(svg => {
const W = 1200, E = .05, boxes = [...svg.querySelectorAll(".b")].map(g => {
  const r = g.querySelector("rect");
  return {g, r, t: g.querySelector("text"), x: +r.getAttribute("x"), w: +r.getAttribute("width"), y: +r.getAttribute("y")};
});
function zoom(to) {
  const k = W / to.w, end = to.x + to.w;
  for (const b of boxes) {
    const above = b.y < to.y && b.x <= to.x + E && b.x + b.w >= end - E;
    const inside = b.y >= to.y && b.x >= to.x - E && b.x + b.w <= end + E;
    b.g.style.display = above || inside ? "" : "none";
    b.g.classList.toggle("p", above);
    const x = above ? 0 : (b.x - to.x) * k, w = above ? W : b.w * k;
    b.r.setAttribute("x", x);
    b.r.setAttribute("width", w);
    b.t.setAttribute("x", x + 3);
    const n = [...b.g.dataset.n], room = Math.floor((w - 6) / 6.7);
    b.t.textContent = n.length <= room ? n.join("") : room < 3 ? "" : n.slice(0, room - 1).join("") + "…";
  }
}
for (const b of boxes) b.g.addEventListener("click", () => zoom(b));
})(document.currentScript.closest("svg"));
]]></script>
"#;

#[cfg(test)]
mod tests {
    use super::super::profile::tests::{profiles, stacks};
    use super::*;

    #[test]
    fn boxes_are_as_wide_as_they_took() {
        let page = svg("job", &stacks(), &profiles());
        assert!(
            page.contains(r#"data-n="rank 3, GPU idle"><title>rank 3, GPU idle: 0.80 s, 100.0 %"#),
            "{page}"
        );
        let all = &profiles()[1..];
        let page = svg("job", &stacks(), all);
        assert!(
            page.contains("load (/a/&lt;train&gt; &amp; co.py): 1.00 s, 50.0 %&#10;line 2: 1.00 s</title>"),
            "{page}"
        );
        assert!(!page.contains("torn"));
    }

    #[test]
    fn hostile_names_stay_text() {
        let mut stacks = stacks();
        stacks.frames[1].function = "\"'><script>alert(1)</script>\u{1b}]]>".to_owned();
        let page = svg("<b>", &stacks, &profiles());
        assert_eq!(page.matches("<script>").count(), 1);
        assert!(!page.contains("<b>") && !page.contains('\u{1b}'));
    }

    #[test]
    fn nothing_seen_is_an_empty_picture() {
        let page = svg("job", &Stacks::default(), &[]);
        assert!(page.starts_with("<svg") && page.ends_with("</svg>\n") && !page.contains("NaN"));
    }

    #[test]
    fn names_are_cut_to_their_box() {
        assert_eq!(cut("a_long_name", 1000.0), "a_long_name");
        assert_eq!(cut("a_long_name", 6.0 + 6.7 * 5.0 + 0.1), "a_lo…");
        assert_eq!(cut("a_long_name", 10.0), "");
    }
}
