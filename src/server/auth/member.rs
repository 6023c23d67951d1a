//! How the members of a cluster know one another: by the key they share, by their certificates, or by either while one way replaces
//! the other.
//!
//! ```text
//! clusterAuthMode    sends          takes
//! keyFile            key            key
//! sendKeyFile        key            either
//! sendX509           certificate    either
//! x509               certificate    certificate
//! ```
//! While it runs a node goes from `sendKeyFile` to `sendX509` and on to `x509`; the other steps need restarts.
//!
//! A certificate is a member's when the O, OU and DC parts of its subject are those of this node's own certificate, and there is one at
//! least; or when it has what `net.tls.clusterAuthX509` says instead: parts of the subject, or a value of an extension. While the
//! certificates of a cluster are replaced one by one, a parameter says what the others have.

use crate::service::Service;
use crate::tls::{ClusterAuthRule, Peer};
use document::Value;

/// `security.clusterAuthMode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClusterAuthMode {
    #[default]
    KeyFile,
    SendKeyFile,
    SendX509,
    X509,
}

impl ClusterAuthMode {
    pub fn from_name(name: &str) -> Option<ClusterAuthMode> {
        match name {
            "keyFile" => Some(ClusterAuthMode::KeyFile),
            "sendKeyFile" => Some(ClusterAuthMode::SendKeyFile),
            "sendX509" => Some(ClusterAuthMode::SendX509),
            "x509" => Some(ClusterAuthMode::X509),
            _ => None,
        }
    }
    pub fn name(self) -> &'static str {
        match self {
            ClusterAuthMode::KeyFile => "keyFile",
            ClusterAuthMode::SendKeyFile => "sendKeyFile",
            ClusterAuthMode::SendX509 => "sendX509",
            ClusterAuthMode::X509 => "x509",
        }
    }
    /// Whether a running node may go over to this mode: only on towards certificates, one step at a time.
    pub fn follows(self, from: ClusterAuthMode) -> bool {
        use ClusterAuthMode::*;
        matches!((from, self), (SendKeyFile, SendX509) | (SendX509, X509))
    }
    pub fn sends_certificate(self) -> bool {
        matches!(self, ClusterAuthMode::SendX509 | ClusterAuthMode::X509)
    }
    pub fn takes_certificate(self) -> bool {
        self != ClusterAuthMode::KeyFile
    }
    pub fn takes_key(self) -> bool {
        self != ClusterAuthMode::X509
    }
}

/// How members' certificates are told from users'.
enum Rule {
    /// These O, OU and DC parts, sorted.
    Organisation(Vec<String>),
    /// These parts, among others.
    Parts(Vec<String>),
    Extension(String),
}

impl Rule {
    fn of(given: ClusterAuthRule) -> Rule {
        match given {
            ClusterAuthRule::Attributes(text) => Rule::Parts(parts(&text)),
            ClusterAuthRule::Extension(text) => Rule::Extension(text),
        }
    }
    fn admits(&self, peer: &Peer) -> bool {
        match self {
            // One that names nothing has no members.
            Rule::Organisation(own) => !own.is_empty() && organisation(&peer.subject) == *own,
            Rule::Parts(wanted) => {
                let had = parts(&peer.subject);
                wanted.iter().any(|w| !w.is_empty()) && wanted.iter().all(|w| had.contains(w))
            }
            Rule::Extension(wanted) => peer.cluster.as_ref() == Some(wanted),
        }
    }
}

/// Whether the holder of a certificate belongs to this node's cluster.
pub fn is_member(service: &Service, peer: &Peer) -> bool {
    rules(service).iter().any(|rule| rule.admits(peer))
}

/// Whether members are known by an extension of their certificates alone, so that a user's name cannot be taken for one of theirs.
pub fn is_by_extension(service: &Service) -> bool {
    rules(service).iter().any(|rule| matches!(rule, Rule::Extension(_)))
}

/// The rule of the options, and the one that a parameter adds.
fn rules(service: &Service) -> Vec<Rule> {
    let Some(tls) = &service.tls else { return Vec::new() };
    let own = match tls.options.cluster_auth.clone() {
        Some(given) => Rule::of(given),
        None => Rule::Organisation(organisation(&tls.own().subject)),
    };
    let name = service.parameters.text("tlsX509ClusterAuthDNOverride");
    let named = (!name.is_empty()).then(|| Rule::Organisation(organisation(&name)));
    let given = service.parameters.get("tlsClusterAuthX509Override");
    let given = given.as_ref().and_then(Value::as_document).and_then(|d| ClusterAuthRule::of(d).ok()?);
    [Some(own), named, given.map(Rule::of)].into_iter().flatten().collect()
}

/// The O, OU and DC parts, sorted.
fn organisation(subject: &str) -> Vec<String> {
    let named = |part: &String| ["O=", "OU=", "DC="].iter().any(|name| part.starts_with(name));
    let mut parts: Vec<String> = parts(subject).into_iter().filter(named).collect();
    parts.sort();
    parts
}

/// The parts between commas and plus signs that are not escaped, without the spaces that people write after them.
fn parts(subject: &str) -> Vec<String> {
    let (mut parts, mut escaped) = (vec![String::new()], false);
    for c in subject.chars() {
        match c {
            ',' | '+' if !escaped => parts.push(String::new()),
            ' ' if !escaped && parts.last().is_some_and(String::is_empty) => {}
            c => parts.last_mut().into_iter().for_each(|part| part.push(c)),
        }
        escaped = c == '\\' && !escaped;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::{Peer, Rule, organisation, parts};

    fn peer(subject: &str) -> Peer {
        Peer { subject: subject.to_string(), ..Peer::default() }
    }

    #[test]
    fn members_have_the_same_organisation() {
        let rule = Rule::Organisation(organisation("CN=a,OU=nodes,O=Org"));
        for member in ["CN=b,O=Org,OU=nodes", "CN=b+OU=nodes,O=Org,L=x"] {
            assert!(rule.admits(&peer(member)), "{member}");
        }
        for other in ["CN=a,O=Org", "CN=a,OU=nodes,OU=x,O=Org", "CN=a\\,OU=nodes,O=Org", "CN=a", ""] {
            assert!(!rule.admits(&peer(other)), "{other}");
        }
        let nameless = Rule::Organisation(organisation("CN=a"));
        assert!(!nameless.admits(&peer("CN=b")), "a subject that names no organisation has no members");
    }

    #[test]
    fn or_the_parts_that_are_asked_for() {
        let rule = Rule::Parts(parts("O=Org, title=member"));
        assert!(rule.admits(&peer("CN=b,title=member,OU=x,O=Org")));
        for other in ["CN=b,O=Org", "CN=b,title=members,O=Org", "CN=O=Org\\,title=member", ""] {
            assert!(!rule.admits(&peer(other)), "{other}");
        }
        assert!(!Rule::Parts(parts("")).admits(&peer("CN=b")), "no parts have no members");
    }

    #[test]
    fn or_the_value_of_the_extension() {
        let rule = Rule::Extension("red".to_string());
        let with = |cluster: &str| Peer { cluster: Some(cluster.to_string()), ..Peer::default() };
        assert!(rule.admits(&with("red")) && !rule.admits(&with("blue")) && !rule.admits(&Peer::default()));
    }
}
