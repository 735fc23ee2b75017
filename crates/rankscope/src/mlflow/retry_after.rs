//! The `Retry-After` header: seconds, or an HTTP date measured against the answer's own `Date`.

use std::time::Duration;

pub fn parse(value: &str, server_date: Option<&str>) -> Option<Duration> {
    if let Ok(seconds) = value.trim().parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let (then, now) = (date(value)?, date(server_date?)?);
    Some(Duration::from_secs(then.saturating_sub(now)))
}

/// `Sun, 06 Nov 1994 08:49:37 GMT` → seconds since 1970.
fn date(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut parts = text.trim().split_once(", ")?.1.split([' ', ':']);
    let number = |parts: &mut dyn Iterator<Item = &str>| parts.next()?.parse::<u64>().ok();
    let day = number(&mut parts)?;
    let name = parts.next()?;
    let month = MONTHS.iter().zip(1u64..).find(|(m, _)| **m == name)?.1;
    let year = number(&mut parts).filter(|y| (1970..10_000).contains(y))?;
    let (h, m, s) = (number(&mut parts)?, number(&mut parts)?, number(&mut parts)?);
    // Days since 1970-03-01 by the civil calendar that starts its years in March.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = (365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day)
        .checked_sub(719_469)?;
    Some(((days * 24 + h) * 60 + m) * 60 + s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms() {
        assert_eq!(parse(" 30 ", None), Some(Duration::from_secs(30)));
        assert_eq!(date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        let now = Some("Mon, 28 Feb 2028 23:59:30 GMT");
        assert_eq!(parse("Tue, 29 Feb 2028 00:00:30 GMT", now), Some(Duration::from_secs(60)));
        assert_eq!(parse("Mon, 28 Feb 2028 23:00:00 GMT", now), Some(Duration::ZERO));
        assert_eq!(parse("soon", now), None);
    }
}
