//! Sentences that others make in English (`ending`, `postmortem`, the series' table, the reasons of what is missing) in Korean.
//! A record and a run's tags hold them as they were said, so they are known by their form: `{name}` stands for any text,
//! `{name:w}` for one without blanks, `{Name}` for another sentence. What is not known here stays English.

mod endings;
mod gaps;
mod postmortems;
mod series;

/// English, Korean.
type Pair = [&'static str; 2];

/// The first that fits counts.
const ALL: [&[Pair]; 4] = [series::PAIRS, gaps::PAIRS, endings::PAIRS, postmortems::PAIRS];

/// Sentences within sentences.
const DEEPEST: usize = 8;
/// Nobody here says more at once.
const LONGEST: usize = 4000;

pub fn korean(english: &str) -> Option<String> {
    (english.len() <= LONGEST).then(|| say(english, DEEPEST)).flatten()
}

fn say(english: &str, depth: usize) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    one(english, depth).or_else(|| several(english, depth))
}

fn one(english: &str, depth: usize) -> Option<String> {
    ALL.iter().flat_map(|pairs| pairs.iter()).find_map(|[form, korean]| {
        let found = fit(form, english, depth)?;
        Some(fill(korean, &found))
    })
}

/// `A; B` where A and what follows it are known.
fn several(english: &str, depth: usize) -> Option<String> {
    english.match_indices("; ").find_map(|(at, between)| {
        let first = one(&english[..at], depth)?;
        Some(format!("{first}. {}", say(&english[at + between.len()..], depth)?))
    })
}

fn fill(korean: &str, found: &[(&str, String)]) -> String {
    let mut parts = korean.split('{');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (hole, after) = part.split_once('}').unwrap_or((part, ""));
        text.extend(found.iter().find(|(name, _)| *name == hole).map(|(_, value)| value.as_str()));
        text.push_str(after);
    }
    text
}

/// What fills the holes of a form, if the text has that form.
fn fit<'a>(form: &'a str, text: &str, depth: usize) -> Option<Vec<(&'a str, String)>> {
    let Some((before, rest)) = form.split_once('{') else { return (form == text).then(Vec::new) };
    let (hole, after) = rest.split_once('}')?;
    let text = text.strip_prefix(before)?;
    let literal = after.split('{').next().unwrap_or("");
    let ends: Vec<usize> = match literal {
        "" => vec![text.len()],
        _ => text.match_indices(literal).map(|(at, _)| at).collect(),
    };
    ends.into_iter().filter(|end| *end > 0).find_map(|end| {
        let (name, value) = filled(hole, &text[..end], depth)?;
        let mut found = fit(after, &text[end..], depth)?;
        found.insert(0, (name, value));
        Some(found)
    })
}

fn filled<'a>(hole: &'a str, value: &str, depth: usize) -> Option<(&'a str, String)> {
    match hole.split_once(':') {
        Some((name, _)) => (!value.contains(' ')).then(|| (name, value.to_owned())),
        None if hole.starts_with(char::is_uppercase) => Some((hole, say(value, depth)?)),
        // Where the next sentence begins.
        None => (!value.contains("; ")).then(|| (hole, value.to_owned())),
    }
}

#[cfg(test)]
mod tests;
