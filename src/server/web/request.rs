//! Who may ask for what: a pure function of a request's head.

use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderName};
use hyper::{Method, StatusCode, Uri};
use subtle::ConstantTimeEq;

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Route {
    Page,
    Events,
    Status,
    Chunk { ns: String, at: usize },
}

/// What a request must know.
pub(super) struct Visitor {
    pub(super) port: u16,
    /// User and password, where the cluster asks for them.
    pub(super) login: Option<(String, String)>,
}

impl Visitor {
    /// # Errors
    /// The status of the refusal.
    pub(super) fn route(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<Route, StatusCode> {
        if !self.is_meant(headers) {
            return Err(StatusCode::MISDIRECTED_REQUEST);
        }
        // A browser says who asks; other programs do not.
        if headers.get_all("sec-fetch-site").iter().any(|site| site != "same-origin" && site != "none") {
            return Err(StatusCode::FORBIDDEN);
        }
        if method != Method::GET {
            return Err(StatusCode::METHOD_NOT_ALLOWED);
        }
        if !self.may_enter(headers) {
            return Err(StatusCode::UNAUTHORIZED);
        }
        match uri.path() {
            "/" => Ok(Route::Page),
            "/events" => Ok(Route::Events),
            "/status" => Ok(Route::Status),
            "/chunk" => chunk(uri.query().unwrap_or_default()).ok_or(StatusCode::BAD_REQUEST),
            _ => Err(StatusCode::NOT_FOUND),
        }
    }

    /// Whether the request names this server, and not a name that somebody has pointed here.
    fn is_meant(&self, headers: &HeaderMap) -> bool {
        let Some(host) = only(headers, &HOST) else { return false };
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) => (name, port.parse().ok()),
            None => (host, Some(80)),
        };
        ["127.0.0.1", "localhost"].iter().any(|own| name.eq_ignore_ascii_case(own)) && port == Some(self.port)
    }

    fn may_enter(&self, headers: &HeaderMap) -> bool {
        use base64::Engine;
        let Some((user, password)) = &self.login else { return true };
        let given = only(headers, &AUTHORIZATION).and_then(|text| text.strip_prefix("Basic "));
        let given = given.and_then(|text| base64::engine::general_purpose::STANDARD.decode(text).ok());
        let wanted = format!("{user}:{password}");
        given.is_some_and(|given| given.ct_eq(wanted.as_bytes()).into())
    }
}

/// The value of a header that stands once.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut all = headers.get_all(name).iter();
    let first = all.next()?;
    if all.next().is_some() { None } else { first.to_str().ok() }
}

fn chunk(query: &str) -> Option<Route> {
    let value = |name: &str| {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.filter(|(n, _)| *n == name).map(|(_, value)| value).next()
    };
    let ns = percent_encoding::percent_decode_str(value("ns")?).decode_utf8().ok()?;
    Some(Route::Chunk { ns: ns.into_owned(), at: value("at")?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn ask(
        visitor: &Visitor,
        method: &Method,
        path: &str,
        headers: &[(HeaderName, &str)],
    ) -> Result<Route, StatusCode> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name, HeaderValue::from_str(value).unwrap());
        }
        visitor.route(method, &path.parse().unwrap(), &map)
    }
    fn open() -> Visitor {
        Visitor { port: 8080, login: None }
    }

    #[test]
    fn only_a_request_that_names_the_loopback_address_is_served() {
        for good in ["127.0.0.1:8080", "localhost:8080", "LOCALHOST:8080"] {
            assert_eq!(ask(&open(), &Method::GET, "/", &[(HOST, good)]), Ok(Route::Page), "{good}");
        }
        for bad in [
            "evil.example:8080",
            "127.0.0.1",
            "127.0.0.1:80",
            "127.0.0.1.evil.example:8080",
            "",
            "[::1]:8080",
        ] {
            let refused = ask(&open(), &Method::GET, "/", &[(HOST, bad)]);
            assert_eq!(refused, Err(StatusCode::MISDIRECTED_REQUEST), "{bad}");
        }
        let twice = [(HOST, "127.0.0.1:8080"), (HOST, "evil.example:8080")];
        assert_eq!(ask(&open(), &Method::GET, "/", &twice), Err(StatusCode::MISDIRECTED_REQUEST));
        assert_eq!(ask(&open(), &Method::GET, "/", &[]), Err(StatusCode::MISDIRECTED_REQUEST));
    }

    #[test]
    fn what_another_site_asks_for_is_refused() {
        let from = |site: &str| {
            let headers = [(HOST, "localhost:8080"), (HeaderName::from_static("sec-fetch-site"), site)];
            ask(&open(), &Method::GET, "/events", &headers)
        };
        for good in ["same-origin", "none"] {
            assert_eq!(from(good), Ok(Route::Events), "{good}");
        }
        for bad in ["cross-site", "same-site", ""] {
            assert_eq!(from(bad), Err(StatusCode::FORBIDDEN), "{bad}");
        }
    }

    #[test]
    fn only_reads_are_served() {
        let host = [(HOST, "localhost:8080")];
        for method in [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS, Method::HEAD] {
            assert_eq!(ask(&open(), &method, "/status", &host), Err(StatusCode::METHOD_NOT_ALLOWED));
        }
        let chunk = |path: &str| ask(&open(), &Method::GET, path, &host);
        assert_eq!(chunk("/chunk?ns=d.%C3%A4&at=7"), Ok(Route::Chunk { ns: "d.ä".to_string(), at: 7 }));
        for bad in ["/chunk", "/chunk?ns=d.c&at=-1", "/chunk?ns=%FF&at=1"] {
            assert_eq!(chunk(bad), Err(StatusCode::BAD_REQUEST), "{bad}");
        }
        assert_eq!(chunk("/elsewhere"), Err(StatusCode::NOT_FOUND));
    }

    #[test]
    fn a_cluster_with_users_shows_its_page_to_its_user() {
        let closed = Visitor { port: 8080, login: Some(("admin".to_string(), "secret".to_string())) };
        let with = |authorization: &str| {
            let headers = [(HOST, "localhost:8080"), (AUTHORIZATION, authorization)];
            ask(&closed, &Method::GET, "/events", &headers)
        };
        assert_eq!(with("Basic YWRtaW46c2VjcmV0"), Ok(Route::Events));
        for bad in ["Basic YWRtaW46c2VjcmV1", "Basic !", "Bearer x", "Basic "] {
            assert_eq!(with(bad), Err(StatusCode::UNAUTHORIZED), "{bad}");
        }
    }
}
