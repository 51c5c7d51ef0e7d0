//! Host and Origin checks: what keeps a web page in the user's browser from reading or writing
//! here through the user's own loopback address.
//!
//! A page can let its host name resolve to 127.0.0.1 (DNS rebinding): the browser then believes
//! that we belong to the page, but still sends the page's name as Host. And a page can post to
//! any address without reading the answer: the browser then says so in Origin or Sec-Fetch-Site.

use std::net::IpAddr;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::Method;
use axum::http::Request;
use axum::http::header::HOST;
use axum::http::header::ORIGIN;

/// Which names clients may use for one listener.
#[derive(Clone, Debug)]
pub struct HostPolicy {
    listen: IpAddr,
    names: Arc<[String]>,
}

/// Why a request is not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// The client calls us by a name that is none of ours.
    Host(String),
    /// A page of another origin wants to change something.
    Origin,
}

// === impl HostPolicy ===

impl HostPolicy {
    /// The policy of a listener: its own names, and further ones.
    #[must_use]
    pub fn new(listen: SocketAddr, names: &[String]) -> Self {
        Self {
            listen: listen.ip(),
            names: names.iter().map(|name| name.to_lowercase()).collect(),
        }
    }

    /// Whether a request may be answered.
    ///
    /// # Errors
    /// For foreign hosts, and for foreign origins of requests that change something.
    pub fn check<B>(&self, request: &Request<B>) -> Result<(), Foreign> {
        // HTTP/2 has the host in the address of the request, HTTP/1.1 in a header. No browser leaves
        // it out, so that a request without one (HTTP/1.0) is no attack.
        let host = match request.uri().authority() {
            Some(authority) => authority.as_str(),
            None => header_text(request.headers(), HOST.as_str()).unwrap_or("localhost"),
        };
        if !self.accepts(host) {
            return Err(Foreign::Host(host.to_owned()));
        }
        let is_safe = matches!(
            *request.method(),
            Method::GET | Method::HEAD | Method::OPTIONS
        );
        if is_safe || is_same_origin(request.headers(), host) {
            return Ok(());
        }
        Err(Foreign::Origin)
    }

    /// Whether a Host (with or without port) may be used. Off loopback every name may: who opens
    /// a port to a network names the host as he likes.
    fn accepts(&self, host: &str) -> bool {
        if !self.listen.to_canonical().is_loopback() {
            return true;
        }
        let name = host_name(host).to_lowercase();
        if name == "localhost" || name.ends_with(".localhost") || self.names.contains(&name) {
            return true;
        }
        let address: Result<IpAddr, _> = name.parse();
        address.is_ok_and(|address| {
            let address = address.to_canonical();
            address.is_loopback() || address == self.listen.to_canonical()
        })
    }
}

fn is_same_origin(headers: &HeaderMap, host: &str) -> bool {
    if let Some(origin) = header_text(headers, ORIGIN.as_str()) {
        let authority = origin.split_once("://").map(|(_, authority)| authority);
        return authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host));
    }
    let site = header_text(headers, "sec-fetch-site");
    site.is_none_or(|site| site == "same-origin" || site == "none")
}

/// A header's text; one that is no text reads as a value that matches nothing.
fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers
        .get(name)
        .map(|value| value.to_str().unwrap_or("\u{fffd}"))
}

/// The host of `host`, `host:port`, `[v6]` or `[v6]:port`, without brackets.
fn host_name(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split_once(']').map_or(rest, |(address, _)| address);
    }
    host.split_once(':').map_or(host, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_few_names() {
        let listen = "127.0.0.1:4040".parse().expect("an address");
        let policy = HostPolicy::new(listen, &["Box.example".to_owned()]);
        let good = [
            "localhost",
            "LOCALHOST:4040",
            "127.0.0.1:4040",
            "[::1]:4040",
            "[::1]",
            "127.0.0.9",
            "box.example:80",
            "candela.localhost",
        ];
        for host in good {
            assert!(policy.accepts(host), "{host}");
        }
        let bad = [
            "evil.example",
            "localhost.evil.example",
            "192.168.0.1:4040",
            "127.0.0.1.nip.example",
            "",
            "[::2]",
            "\u{fffd}",
        ];
        for host in bad {
            assert!(!policy.accepts(host), "{host}");
        }
    }

    #[test]
    fn loopback_is_loopback_in_every_notation() {
        let listen = "[::ffff:127.0.0.1]:3080".parse().expect("an address");
        let policy = HostPolicy::new(listen, &[]);
        assert!(!policy.accepts("evil.example"));
        assert!(policy.accepts("[::ffff:127.0.0.1]:3080") && policy.accepts("127.0.0.1"));
    }

    #[test]
    fn a_network_address_takes_every_name() {
        let policy = HostPolicy::new("0.0.0.0:4040".parse().expect("an address"), &[]);
        assert!(policy.accepts("profiles.example.org"));
    }
}
