//! Which server the flags and the positional address mean together.

use super::Options;

const DEFAULT_HOST: &str = "127.0.0.1";
const DEFAULT_PORT: u16 = 27017;

/// The connection string that `connect` is called with: `host:port/database` where that says everything, else a URI.
/// `Err` when `--host` or `--port` contradict a complete address.
pub(super) fn connection(options: &Options) -> Result<String, String> {
    let address = options.address.as_deref().unwrap_or("test");
    if address.starts_with("mongodb://") || address.starts_with("mongodb+srv://") {
        if options.host.is_some() || options.port.is_some() {
            return Err("If a full URI is provided, you cannot also specify --host or --port".into());
        }
        return Ok(with_parameters(address, &parameters(options)));
    }
    let (hosts, database) = split(address);
    if hosts.is_some() && (options.host.is_some() || options.port.is_some()) {
        return Err("url can't have host or port if you specify them individually".into());
    }
    let hosts = hosts.or(options.host.as_deref()).unwrap_or(DEFAULT_HOST);
    if hosts.starts_with("mongodb://") {
        return Ok(with_parameters(hosts, &parameters(options)));
    }
    let (set, hosts) = match hosts.split_once('/') {
        Some((set, hosts)) => (Some(set), hosts),
        None => (None, hosts),
    };
    let hosts = with_port(hosts, options.port);
    let mut parameters = parameters(options);
    parameters.extend(set.map(|set| format!("replicaSet={set}")));
    if parameters.is_empty() {
        return Ok(format!("{hosts}/{database}"));
    }
    Ok(with_parameters(&format!("mongodb://{hosts}/{database}"), &parameters))
}

/// The hosts and the database of an address without scheme. What stands before the last slash is hosts, unless it is
/// the name of a set; a lone word is a database, and a lone word with a colon or a dot is a host.
fn split(address: &str) -> (Option<&str>, &str) {
    match address.rsplit_once('/') {
        // `set/h1:1,h2:2` names no database.
        Some((set, hosts)) if hosts.contains([':', ',']) && !set.contains([':', '/']) => {
            (Some(address), "test")
        }
        Some((hosts, "")) => (Some(hosts), "test"),
        Some((hosts, database)) => (Some(hosts), database),
        None if address.contains([':', '.', ',']) => (Some(address), "test"),
        None => (None, address),
    }
}

/// Every host with a port: its own, else `--port`, else the usual one.
fn with_port(hosts: &str, port: Option<u16>) -> String {
    let port = port.unwrap_or(DEFAULT_PORT);
    let one = |host: &str| match host.rsplit_once(':') {
        Some((_, digits)) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
            host.to_string()
        }
        _ => format!("{host}:{port}"),
    };
    hosts.split(',').map(one).collect::<Vec<_>>().join(",")
}

fn parameters(options: &Options) -> Vec<String> {
    let mut parameters = Vec::new();
    if let Some(compressors) = &options.compressors {
        parameters.push(format!("compressors={compressors}"));
    }
    if options.tls {
        parameters.push("tls=true".into());
    }
    parameters
}

fn with_parameters(uri: &str, parameters: &[String]) -> String {
    if parameters.is_empty() {
        return uri.to_string();
    }
    let separator = match uri.split_once("://").map_or(uri, |(_, rest)| rest) {
        rest if rest.contains('?') => "&",
        rest if rest.contains('/') => "?",
        _ => "/?",
    };
    format!("{uri}{separator}{}", parameters.join("&"))
}

#[cfg(test)]
mod tests {
    use super::{Options, connection};

    fn of(address: Option<&str>, host: Option<&str>, port: Option<u16>) -> String {
        let o = Options {
            address: address.map(Into::into),
            host: host.map(Into::into),
            port,
            ..Options::default()
        };
        connection(&o).unwrap_or_else(|message| format!("refused: {message}"))
    }

    #[test]
    fn address_host_and_port_make_one_connection_string() {
        let cases = [
            ((None, None, None), "127.0.0.1:27017/test"),
            ((None, None, Some(20020)), "127.0.0.1:20020/test"),
            ((Some("admin"), Some("vm"), Some(1)), "vm:1/admin"),
            ((Some("vm:20020/admin"), None, None), "vm:20020/admin"),
            ((Some("vm:20020"), None, None), "vm:20020/test"),
            ((Some("vm/admin"), None, None), "vm:27017/admin"),
            ((None, Some("vm:2"), Some(1)), "vm:2/test"),
            ((None, Some("rs0/a:1,b:2"), None), "mongodb://a:1,b:2/test?replicaSet=rs0"),
            ((Some("rs0/a:1,b:2/admin"), None, None), "mongodb://a:1,b:2/admin?replicaSet=rs0"),
            ((Some("rs0/a:1,b:2"), None, None), "mongodb://a:1,b:2/test?replicaSet=rs0"),
            ((Some("mongodb://a:1/admin?w=1"), None, None), "mongodb://a:1/admin?w=1"),
        ];
        for ((address, host, port), expected) in cases {
            assert_eq!(of(address, host, port), expected, "{address:?} {host:?} {port:?}");
        }
    }

    #[test]
    fn contradictions_are_refused() {
        assert!(of(Some("mongodb://a:1/admin"), None, Some(2)).starts_with("refused"));
        assert!(of(Some("vm:1/admin"), Some("other"), None).starts_with("refused"));
    }

    #[test]
    fn parameters_are_joined_to_any_form_of_uri() {
        let with = |address: &str| {
            let o = Options {
                address: Some(address.into()),
                compressors: Some("snappy".into()),
                ..Options::default()
            };
            connection(&o).unwrap()
        };
        assert_eq!(with("a:1/db"), "mongodb://a:1/db?compressors=snappy");
        assert_eq!(with("mongodb://a:1"), "mongodb://a:1/?compressors=snappy");
        assert_eq!(with("mongodb://a:1/db?w=1"), "mongodb://a:1/db?w=1&compressors=snappy");
    }
}
