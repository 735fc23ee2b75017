//! Addresses: a tracking URI is taken apart here, so that user information never travels in an address, and put
//! together again for requests.

use std::fmt;

use super::secret::Secret;

/// `https://host:port/prefix`, without user information, query or trailing slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub https: bool,
    /// `host` or `host:port`
    pub authority: String,
    /// Empty, or `/prefix`
    pub path: String,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.https { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.path)
    }
}

/// User and password of an address, decoded.
pub type UserInfo = Option<(Secret, Secret)>;

impl Address {
    /// `None`: not a usable http(s) address. The text isn't repeated in any error: it may hold a password.
    pub fn parse(text: &str) -> Option<(Self, UserInfo)> {
        let (scheme, rest) = text.trim().split_once("://")?;
        let https = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (user, authority) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        let usable = !authority.is_empty()
            && !path.contains(['?', '#', '@'])
            && authority
                .parse::<ureq::http::uri::Authority>()
                .is_ok_and(|a| !a.host().is_empty() && port_is_sound(&a));
        if !usable || path.parse::<ureq::http::uri::PathAndQuery>().is_err() && !path.is_empty() {
            return None;
        }
        let address =
            Self { https, authority: authority.to_owned(), path: path.trim_end_matches('/').to_owned() };
        let user = user.map(|user| {
            let (name, password) = user.split_once(':').unwrap_or((user, ""));
            (Secret::new(decode(name)), Secret::new(decode(password)))
        });
        Some((address, user))
    }

    pub fn host(&self) -> &str {
        match self.authority.rfind(':') {
            Some(at) if !self.authority[at..].contains(']') => &self.authority[..at],
            _ => &self.authority,
        }
    }

    pub fn port(&self) -> u16 {
        let given = self.authority.strip_prefix(self.host()).and_then(|p| p.strip_prefix(':'));
        given.and_then(|p| p.parse().ok()).unwrap_or(if self.https { 443 } else { 80 })
    }
}

fn port_is_sound(authority: &ureq::http::uri::Authority) -> bool {
    let text = authority.as_str();
    let tail = text.rsplit(']').next().unwrap_or(text);
    !tail.contains(':') || authority.port_u16().is_some()
}

/// Percent-decoding; what isn't an escape stays.
fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let escape =
            bytes.get(at + 1..at + 3).filter(|_| *byte == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        match escape.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(decoded) => {
                out.push(decoded);
                at += 3;
            }
            None => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Percent-encoding for a query value or one path segment.
pub fn encode(text: &str) -> String {
    use std::fmt::Write;
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a String can't fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_slash_port_and_user() {
        let (address, user) = Address::parse("https://u%40x:p%3Aw@h:8443/mlflow/").unwrap();
        assert_eq!(address.to_string(), "https://h:8443/mlflow");
        assert_eq!((address.host(), address.port()), ("h", 8443));
        let (name, password) = user.unwrap();
        assert_eq!((name.reveal(), password.reveal()), ("u@x", "p:w"));
        let (address, _) = Address::parse("HTTP://[::1]:5000").unwrap();
        assert_eq!((address.host(), address.port(), address.https), ("[::1]", 5000, false));
        assert_eq!(Address::parse("http://[::1]").unwrap().0.port(), 80);
    }

    #[test]
    fn unusable() {
        for text in [
            "http://",
            "file:/x",
            "http:///x",
            "http://h:x/",
            "http://u:p/w@h:5000",
            "http://h/a?b=c",
            "h:5000",
            "http://h a",
        ] {
            assert!(Address::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn encoding() {
        assert_eq!(encode("a b/é&"), "a%20b%2F%C3%A9%26");
        assert_eq!(decode("a%20b%zz%"), "a b%zz%");
    }
}
