//! Command line to options.

use super::flags::{Argument, FLAGS, Flag};
use super::{Action, Options, Program, Refused, file, line, text};
use document::{Document, Value};
use node::auth::restriction::Restrictions;

/// What exit code a usage error gives.
const USAGE: i32 = 2;

/// Reads `argv` (with the program's name first) and the file it names.
pub fn parse(program: Program, argv: &[String]) -> Result<Action, Refused> {
    let given = command_line(program, argv.get(1..).unwrap_or(&[]))
        .map_err(|text| usage(program, &format!("Error parsing command line: {text}")))?;
    let is_set = |name: &str| given.get(name).is_some_and(Value::truthy);
    if is_set("help") {
        return Ok(Action::Print(text::help(program)));
    }
    if is_set("version") {
        return Ok(Action::Print(text::version(program)));
    }
    let mut merged = match given.get_str("config") {
        None => Document::new(),
        Some(path) => file::read(program, path)?,
    };
    merge(&mut merged, &given);
    check(program, &merged)?;
    if is_set("outputConfig") {
        return Ok(Action::Print(document::extended_json::to_logged(&merged)));
    }
    let options = Options::from_parsed(program, argv.to_vec(), merged);
    if is_set("shutdown") {
        return Ok(Action::Shutdown(options.dbpath));
    }
    check_options(&options)?;
    Ok(Action::Run(Box::new(options)))
}

fn usage(program: Program, text: &str) -> Refused {
    Refused {
        text: format!("{text}\ntry '{} --help' for more information", program.name()),
        exit_code: USAGE,
    }
}

/// The document of the flags given; a plain text on error.
fn command_line(program: Program, args: &[String]) -> Result<Document, String> {
    let mut parsed = Document::new();
    for (flag, text) in line::given(program, args)? {
        set(&mut parsed, flag, &text)?;
    }
    Ok(parsed)
}

/// Puts the text of one flag where its path says, with the type of its row.
pub(super) fn set(parsed: &mut Document, flag: &Flag, text: &str) -> Result<(), String> {
    let invalid = || format!("the argument ('{text}') for option '--{}' is invalid", flag.name);
    let value = match flag.argument {
        Argument::Switch | Argument::OptionalBool if text.is_empty() => Value::Boolean(true),
        Argument::Switch | Argument::OptionalBool | Argument::Bool => {
            Value::Boolean(boolean(text).ok_or_else(invalid)?)
        }
        Argument::Clears => Value::Boolean(!(text.is_empty() || boolean(text).ok_or_else(invalid)?)),
        Argument::Sets(value) => match text.is_empty() || boolean(text).ok_or_else(invalid)? {
            true => Value::from(value),
            false => return Ok(()),
        },
        Argument::Text if flag.name == "logpath" && text.is_empty() => return Err(invalid()),
        Argument::Text => Value::from(text),
        Argument::Int => Value::Int32(text.parse().map_err(|_| invalid())?),
        Argument::Number => number(text).ok_or_else(invalid)?,
        Argument::Verbosity => Value::Int32(verbosity(text).ok_or_else(invalid)?),
        Argument::Pair => {
            let Some((name, value)) = text.split_once('=') else {
                return Err(format!(
                    "Illegal option assignment: \"{text}\": expected format is 'key=value' for option '--{}'",
                    flag.name
                ));
            };
            let path = format!("{}.{}", flag.path, name.trim());
            put(parsed, &path, Value::from(value.trim()));
            return Ok(());
        }
    };
    let value = if flag.name == "profile" { profile_mode(&value).ok_or_else(invalid)? } else { value };
    put(parsed, flag.path, value);
    if flag.name == "logpath" {
        put(parsed, "systemLog.destination", Value::from("file"));
    }
    Ok(())
}

/// `--profile 1` is written `slowOp` in files and in getCmdLineOpts.
fn profile_mode(value: &Value) -> Option<Value> {
    let names = ["off", "slowOp", "all"];
    let at = usize::try_from(value.as_i64()?).ok()?;
    names.get(at).map(|name| Value::from(*name))
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "1" | "on" | "yes" => Some(true),
        "false" | "0" | "off" | "no" => Some(false),
        _ => None,
    }
}

fn number(text: &str) -> Option<Value> {
    match text.parse::<i32>() {
        Ok(n) => Some(Value::Int32(n)),
        Err(_) => text.parse::<f64>().ok().filter(|f| f.is_finite()).map(Value::Double),
    }
}

fn verbosity(text: &str) -> Option<i32> {
    match text {
        "" | "true" => Some(1),
        vs if vs.bytes().all(|b| b == b'v') => i32::try_from(vs.len()).ok().filter(|n| *n <= 20),
        n => n.parse().ok().filter(|n| (0..=5).contains(n)),
    }
}

/// Sets a dotted path, making the documents on the way.
pub fn put(document: &mut Document, path: &str, value: Value) {
    let Some((head, rest)) = path.split_once('.') else { return document.insert(path, value) };
    if document.get_document(head).is_none() {
        document.insert(head, Document::new());
    }
    match document.get_mut(head) {
        // The name of a parameter is one part, whatever points it has: `failpoint.failCommand`.
        Some(Value::Document(inner)) if head == "setParameter" => inner.insert(rest, value),
        Some(Value::Document(inner)) => put(inner, rest, value),
        _ => {}
    }
}

/// Lays `over` on `under`; documents are merged.
fn merge(under: &mut Document, over: &Document) {
    for (name, value) in over.iter() {
        match (under.get_mut(name), value) {
            (Some(Value::Document(below)), Value::Document(above)) => merge(below, above),
            _ => under.insert(name, value.clone()),
        }
    }
}

/// Contradictions in what was given, with the real server's texts.
fn check(program: Program, parsed: &Document) -> Result<(), Refused> {
    let refuse = |text: String| Err(Refused { text, exit_code: USAGE });
    let present = |path: &str| parsed.get_path(path).is_some();
    let is_true = |path: &str| parsed.get_path(path).is_some_and(Value::truthy);
    let text = |path: &str| parsed.get_path(path).and_then(Value::as_str);
    if let Some(port) = parsed.get_path("net.port").and_then(Value::as_i64)
        && !(0..=65535).contains(&port)
    {
        return refuse("BadValue: error: invalid port number".to_string());
    }
    if is_true("net.bindIpAll") && present("net.bindIp") {
        return refuse("BadValue: Cannot specify both bind_ip_all and bind_ip".to_string());
    }
    if text("systemLog.destination") == Some("syslog") && present("systemLog.path") {
        return refuse("BadValue: Cant use both a logpath and syslog ".to_string());
    }
    if text("systemLog.destination") == Some("file") && !present("systemLog.path") {
        return refuse("BadValue: systemLog.path is required if systemLog.destination is file".to_string());
    }
    let logs_elsewhere = present("systemLog.path") || text("systemLog.destination") == Some("syslog");
    if is_true("processManagement.fork") && !logs_elsewhere {
        return refuse("BadValue: --fork has to be used with --logpath or --syslog".to_string());
    }
    if let Some(rotate) = text("systemLog.logRotate") {
        match rotate {
            "rename" => {}
            "reopen" if is_true("systemLog.logAppend") => {}
            "reopen" => return refuse("BadValue: logRotate of reopen requires --logappend".to_string()),
            _ => return refuse("BadValue: unknown log rotation style".to_string()),
        }
    }
    crate::tls::TlsOptions::check(parsed).or_else(refuse)?;
    check_cluster_auth(parsed)?;
    let by_certificate = matches!(text("security.clusterAuthMode"), Some("sendX509" | "x509"));
    if is_true("security.transitionToAuth") && !present("security.keyFile") && !by_certificate {
        return refuse(
            "BadValue: --transitionToAuth must be used with keyFile or x509 authentication".to_string(),
        );
    }
    if program == Program::Mongos && !present("sharding.configDB") {
        return refuse("BadValue: error: no args for --configdb".to_string());
    }
    check_role(parsed)
}

/// `security.clusterAuthMode` with what it needs: a key file where a key is sent, TLS for all who send certificates.
fn check_cluster_auth(parsed: &Document) -> Result<(), Refused> {
    let refuse = |text: &str| Err(Refused { text: format!("BadValue: {text}"), exit_code: USAGE });
    let Some(name) = parsed.get_path("security.clusterAuthMode").and_then(Value::as_str) else {
        return Ok(());
    };
    let Some(mode) = crate::auth::ClusterAuthMode::from_name(name) else {
        return refuse(&format!("unsupported value for clusterAuthMode {name}"));
    };
    let tls = crate::tls::TlsOptions::of_parsed(parsed);
    if !mode.sends_certificate() && parsed.get_path("security.keyFile").is_none() {
        return refuse(&format!("clusterAuthMode {name} requires keyFile"));
    }
    if mode.takes_certificate() && tls.mode == crate::tls::Mode::Disabled {
        return refuse("need to enable TLS via the tlsMode flag");
    }
    if mode.sends_certificate() && !tls.mode.encrypts_own() {
        return refuse("cannot have x.509 cluster authentication in allowTLS mode");
    }
    if mode.takes_certificate() && tls.ca_file.is_none() && tls.cluster_ca_file.is_none() {
        return refuse("cannot have x.509 cluster authentication without a CA file");
    }
    Ok(())
}

fn check_role(parsed: &Document) -> Result<(), Refused> {
    let role = parsed.get_path("sharding.clusterRole").and_then(Value::as_str);
    let replicated =
        ["replication.replSet", "replication.replSetName"].iter().any(|p| parsed.get_path(p).is_some());
    match role {
        None | Some("shardsvr" | "configsvr") => {}
        Some(other) => {
            let text = format!(
                "BadValue: Bad value for sharding.clusterRole: {other}. Supported modes are: (configsvr|shardsvr)"
            );
            return Err(Refused { text, exit_code: USAGE });
        }
    }
    let repair = parsed.get("repair").is_some_and(Value::truthy);
    if role.is_some() && !replicated && !repair {
        let text =
            "BadValue: Cannot start a shardsvr or configsvr as a standalone server. Please use the option \
                    --replSet to start the node as a replica set."
                .replace("shardsvr or configsvr", role.unwrap_or(""));
        return Err(Refused { text, exit_code: USAGE });
    }
    Ok(())
}

fn check_options(options: &Options) -> Result<(), Refused> {
    let refuse = |text: String| Err(Refused { text, exit_code: USAGE });
    if let Some(config_db) = &options.config_db {
        let (set, hosts) = config_db.split_once('/').unwrap_or(("", config_db));
        if set.is_empty() || hosts.is_empty() {
            return refuse("BadValue: configdb supports only replica set connection string".to_string());
        }
    }
    let text = |path: &str| options.parsed.get_path(path).and_then(Value::as_str);
    if let Some(Err(range)) = text("security.clusterIpSourceAllowlist").map(Restrictions::to_clients) {
        return refuse(format!("BadValue: Invalid CIDR string in clusterIpSourceAllowlist: {range}"));
    }
    if let Some(mode) = text("net.unixDomainSocket.filePermissions")
        && super::file_mode(mode).is_none()
    {
        return refuse(
            "BadValue: --filePermissions must be a valid octal number between 0 and 0777".to_string(),
        );
    }
    if options.unix_socket_prefix.as_os_str().len() > 80 {
        return refuse("BadValue: unixSocketPrefix is too long".to_string());
    }
    let given = options.set_parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    match check_parameters(given) {
        Some(text) => refuse(text),
        None => Ok(()),
    }
}

/// Why these parameters cannot be set at start; `None` when they can.
pub(crate) fn check_parameters<'a>(given: impl Iterator<Item = (&'a str, &'a str)>) -> Option<String> {
    let parameters = node::parameters::Parameters::new();
    // Test commands first: they decide whether unknown names are tolerated.
    let (first, others): (Vec<_>, Vec<_>) = given.partition(|(name, _)| *name == "enableTestCommands");
    let mut ordered = first.into_iter().chain(others);
    ordered.find_map(|(name, value)| {
        let error = parameters.set_at_startup(name, value).err()?;
        Some(format!("{}: {}", error.code_name(), error.message))
    })
}

/// The rows that `--help` shows for a program.
pub(super) fn shown(program: Program) -> impl Iterator<Item = &'static Flag> {
    FLAGS.iter().filter(move |f| f.is_on(program))
}
