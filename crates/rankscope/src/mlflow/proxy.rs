//! Which HTTP proxy a server is reached through: by scheme, with NO_PROXY by host suffix and network, as MLflow's
//! own client does it (ureq alone would take HTTPS_PROXY for http addresses too, and knows no networks).

use std::net::Ipv4Addr;

use super::address::Address;
use super::secret::Secret;

pub fn choose(server: &Address, get: &dyn Fn(&str) -> Option<String>) -> Option<Secret> {
    let either = |name: &str| {
        let found = get(&name.to_ascii_lowercase()).or_else(|| get(name));
        found.map(|v| v.trim().to_owned()).filter(|v| !v.is_empty())
    };
    if either("NO_PROXY").is_some_and(|list| is_direct(server, &list)) {
        return None;
    }
    let own = if server.https { "HTTPS_PROXY" } else { "HTTP_PROXY" };
    either(own).or_else(|| either("ALL_PROXY")).map(Secret::new)
}

fn is_direct(server: &Address, list: &str) -> bool {
    let host = server.host().trim_matches(['[', ']']).to_ascii_lowercase();
    let with_port = format!("{host}:{}", server.port());
    list.split([',', ' ']).map(|e| e.trim().to_ascii_lowercase()).filter(|e| !e.is_empty()).any(|entry| {
        let suffix = entry.trim_start_matches('*').trim_start_matches('.');
        entry == "*"
            || in_network(&host, &entry)
            || [&host, &with_port].iter().any(|name| {
                **name == suffix
                    || name.strip_suffix(suffix).is_some_and(|head| head.ends_with('.') && !suffix.is_empty())
            })
    })
}

fn in_network(host: &str, entry: &str) -> bool {
    let parsed = || {
        let (network, bits) = entry.split_once('/')?;
        let (network, host): (Ipv4Addr, Ipv4Addr) = (network.parse().ok()?, host.parse().ok()?);
        let bits: u32 = bits.parse().ok().filter(|b| *b <= 32)?;
        let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
        Some(u32::from(network) & mask == u32::from(host) & mask)
    };
    parsed().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(server: &str, vars: &[(&str, &str)]) -> Option<String> {
        let get = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        choose(&Address::parse(server).unwrap().0, &get).map(|s| s.reveal().to_owned())
    }

    #[test]
    fn by_scheme_and_exceptions() {
        let both = [("HTTP_PROXY", "http://p:1"), ("https_proxy", "http://s:2")];
        assert_eq!(chosen("http://h", &both).as_deref(), Some("http://p:1"));
        assert_eq!(chosen("https://h", &both).as_deref(), Some("http://s:2"));
        assert_eq!(chosen("http://h", &[("HTTPS_PROXY", "http://s:2")]), None);
        for list in ["*", "h.x.y", ".x.y", "x.y", "*.x.y", "a, h.x.y:5000"] {
            assert_eq!(chosen("http://h.x.y:5000", &[both[0], ("NO_PROXY", list)]), None, "{list}");
        }
        assert_eq!(chosen("http://10.1.2.3:5000", &[both[0], ("no_proxy", "10.0.0.0/8")]), None);
        for list in ["y.x", "hx.y", "10.0.0.0/8", ","] {
            assert!(chosen("http://11.x.y", &[both[0], ("NO_PROXY", list)]).is_some(), "{list}");
        }
    }
}
