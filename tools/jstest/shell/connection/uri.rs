//! Where a connection goes: `host:port/db`, `set/h1,h2/db`, or a `mongodb://` URI.

use wire::client::Address;

/// The parts of a connection string. Hosts are spelled `host:port`, or as the path of a socket.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Uri {
    pub text: String,
    pub hosts: Vec<String>,
    pub set: Option<String>,
    pub database: String,
    pub user: String,
    pub password: String,
    pub options: Vec<(String, String)>,
}

impl Uri {
    /// Reads any of the three forms; the error says what is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Uri, String> {
        let mut uri = match text.strip_prefix("mongodb://") {
            Some(rest) => parse_uri(rest)?,
            None if text.starts_with("mongodb+srv://") => {
                return Err("mongodb+srv:// needs DNS, which this shell does not ask".to_string());
            }
            None => parse_plain(text)?,
        };
        uri.text = text.to_string();
        if uri.set.is_none() {
            uri.set = uri.option("replicaSet").map(str::to_string);
        }
        match uri.hosts.len() {
            0 => Err(format!("Empty server string in {text}")),
            n if n > 1 && uri.set.is_none() => {
                Err(format!("Cannot list multiple servers in URL without 'replicaSet' option: {text}"))
            }
            _ => Ok(uri),
        }
    }
    /// An option's value; names do not tell cases apart.
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        self.options
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
    /// As the property `host` of a connection shows it.
    pub(super) fn shown(&self) -> String {
        match &self.set {
            Some(set) => format!("{set}/{}", self.hosts.join(",")),
            None => self.hosts.join(","),
        }
    }
}

/// `[set/]h1[,h2]...[/db]`; a part with a comma behind a first slash, or a host with a port, belongs to a set.
fn parse_plain(text: &str) -> Result<Uri, String> {
    let mut uri = Uri::default();
    if text.starts_with('/') {
        uri.hosts = vec![text.to_string()];
        return Ok(uri);
    }
    let parts: Vec<&str> = text.split('/').collect();
    let is_hosts =
        |part: &str| part.contains(',') || part.contains(':') || part.contains('.') && !part.is_empty();
    match parts.as_slice() {
        [hosts] => uri.hosts = spell_hosts(hosts)?,
        [set, hosts] if !is_hosts(set) && is_hosts(hosts) => {
            uri.set = Some(set.to_string());
            uri.hosts = spell_hosts(hosts)?;
        }
        [hosts, database] => {
            uri.hosts = spell_hosts(hosts)?;
            uri.database = database.to_string();
        }
        [set, hosts, database] => {
            uri.set = Some(set.to_string());
            uri.hosts = spell_hosts(hosts)?;
            uri.database = database.to_string();
        }
        _ => return Err(format!("invalid connection string: {text}")),
    }
    Ok(uri)
}

fn parse_uri(rest: &str) -> Result<Uri, String> {
    let mut uri = Uri::default();
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    let (credentials, hosts) = match authority.rsplit_once('@') {
        Some((credentials, hosts)) => (credentials, hosts),
        None => ("", authority),
    };
    let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
    uri.user = decode(user)?;
    uri.password = decode(password)?;
    uri.database = decode(database)?;
    uri.hosts = spell_hosts(hosts)?;
    for pair in query.split(['&', ';']).filter(|pair| !pair.is_empty()) {
        let Some((name, value)) = pair.split_once('=') else {
            return Err(format!("Missing a key/value separator '=' in URI option {pair}"));
        };
        uri.options.push((decode(name)?, decode(value)?));
    }
    Ok(uri)
}

fn spell_hosts(list: &str) -> Result<Vec<String>, String> {
    list.split(',')
        .map(|host| match Address::parse(host) {
            Ok(Address::Tcp(name, port)) if name.contains(':') => Ok(format!("[{name}]:{port}")),
            Ok(Address::Tcp(name, port)) => Ok(format!("{name}:{port}")),
            Ok(Address::Unix(path)) => Ok(path.to_string_lossy().into_owned()),
            Err(error) => Err(error.message),
        })
        .collect()
}

/// Undoes percent-encoding.
fn decode(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        if *first != b'%' {
            bytes.push(*first);
            rest = behind;
            continue;
        }
        let digits = behind.get(..2).and_then(|d| std::str::from_utf8(d).ok());
        let byte = digits.and_then(document::encoding::from_hex);
        bytes.extend(
            byte.ok_or_else(|| format!("The characters after the % do not form a hex value: {text}"))?,
        );
        rest = &behind[2..];
    }
    String::from_utf8(bytes).map_err(|_| format!("not UTF-8 behind its percent-encoding: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (String, Option<String>, String) {
        let uri = Uri::parse(text).unwrap();
        (uri.hosts.join(","), uri.set, uri.database)
    }

    #[test]
    fn every_form_names_hosts_set_and_database() {
        assert_eq!(parts("localhost"), ("localhost:27017".into(), None, "".into()));
        assert_eq!(parts("h:1/db"), ("h:1".into(), None, "db".into()));
        assert_eq!(parts("rs0/h:1,i:2"), ("h:1,i:2".into(), Some("rs0".into()), "".into()));
        assert_eq!(parts("rs0/h:1,i/db"), ("h:1,i:27017".into(), Some("rs0".into()), "db".into()));
        let uri = "mongodb://u:p%40@h:1,i:2/db?replicaSet=rs0&appName=x%20y";
        assert_eq!(parts(uri), ("h:1,i:2".into(), Some("rs0".into()), "db".into()));
        let uri = Uri::parse(uri).unwrap();
        assert_eq!(
            (uri.user.as_str(), uri.password.as_str(), uri.option("appname")),
            ("u", "p@", Some("x y"))
        );
    }

    #[test]
    fn what_is_no_address_is_refused() {
        assert!(Uri::parse("mongodb://h:99999").is_err());
        assert!(Uri::parse("mongodb://h:1,i:2/db").is_err());
        assert!(Uri::parse("mongodb://h:1/db?x").is_err());
        assert!(Uri::parse("").is_err());
    }
}
