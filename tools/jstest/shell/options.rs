//! The flags of the `mongo` program: a table, the parser, and the connection they ask for.
//!
//! ```text
//! mongo [flags] [address] [file.js ...]
//! address := database | host[:port]/database | mongodb://... | set/host,host/database
//! ```
//! The first argument that is no flag and no `.js` or `.mjs` file is the address; what follows are files.

mod address;

use crate::control::VERSION;
use crate::{Shell, errors};
use rquickjs::{Ctx, Function, Object};
use std::ffi::OsString;
use std::path::PathBuf;
use std::rc::Rc;

/// Where the shell's JavaScript comes from.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Library {
    #[default]
    Own,
    Directory(PathBuf),
}

#[derive(Clone, Debug, Default)]
pub struct Options {
    pub eval: Vec<String>,
    pub files: Vec<PathBuf>,
    /// What `load("jstests/...")` and `import` are relative to.
    pub root: PathBuf,
    /// Where `jstests/...` is looked for when the root does not have it.
    pub fallback_root: Option<PathBuf>,
    pub library: Library,
    pub nodb: bool,
    pub host: Option<String>,
    pub port: Option<u16>,
    /// The positional database address, as given.
    pub address: Option<String>,
    pub username: Option<String>,
    pub password: Option<String>,
    pub authentication_database: Option<String>,
    pub authentication_mechanism: Option<String>,
    pub read_mode: Option<String>,
    pub write_mode: Option<String>,
    pub retry_writes: bool,
    pub implicit_sessions_off: bool,
    pub quiet: bool,
    pub shell: bool,
    pub verbose: bool,
    pub tls: bool,
    pub compressors: Option<String>,
    pub api_version: Option<String>,
    pub api_strict: bool,
    pub api_deprecation_errors: bool,
    pub heap_limit_mb: Option<u32>,
}

/// What a flag does with what follows it.
#[derive(Clone, Copy)]
enum Flag {
    Switch(fn(&mut Options)),
    Value(fn(&mut Options, String)),
    /// Known, and without meaning for this shell.
    IgnoredSwitch,
    IgnoredValue,
}

const FLAGS: &[(&str, Flag)] = &[
    ("eval", Flag::Value(|o, v| o.eval.push(v))),
    ("host", Flag::Value(|o, v| o.host = Some(v))),
    ("port", Flag::Value(|o, v| o.port = v.parse().ok())),
    ("root", Flag::Value(|o, v| o.root = v.into())),
    ("fallback-root", Flag::Value(|o, v| o.fallback_root = Some(v.into()))),
    ("shell-lib", Flag::Value(|o, v| o.library = Library::Directory(v.into()))),
    ("username", Flag::Value(|o, v| o.username = Some(v))),
    ("password", Flag::Value(|o, v| o.password = Some(v))),
    ("authenticationDatabase", Flag::Value(|o, v| o.authentication_database = Some(v))),
    ("authenticationMechanism", Flag::Value(|o, v| o.authentication_mechanism = Some(v))),
    ("readMode", Flag::Value(|o, v| o.read_mode = Some(v))),
    ("writeMode", Flag::Value(|o, v| o.write_mode = Some(v))),
    ("networkMessageCompressors", Flag::Value(|o, v| o.compressors = Some(v))),
    ("apiVersion", Flag::Value(|o, v| o.api_version = Some(v))),
    ("jsHeapLimitMB", Flag::Value(|o, v| o.heap_limit_mb = v.parse().ok())),
    ("nodb", Flag::Switch(|o| o.nodb = true)),
    ("quiet", Flag::Switch(|o| o.quiet = true)),
    ("shell", Flag::Switch(|o| o.shell = true)),
    ("verbose", Flag::Switch(|o| o.verbose = true)),
    ("retryWrites", Flag::Switch(|o| o.retry_writes = true)),
    ("disableImplicitSessions", Flag::Switch(|o| o.implicit_sessions_off = true)),
    ("tls", Flag::Switch(|o| o.tls = true)),
    ("ssl", Flag::Switch(|o| o.tls = true)),
    ("apiStrict", Flag::Switch(|o| o.api_strict = true)),
    ("apiDeprecationErrors", Flag::Switch(|o| o.api_deprecation_errors = true)),
    ("useLegacyWriteOps", Flag::Switch(|o| o.write_mode = Some("legacy".to_string()))),
    ("norc", Flag::IgnoredSwitch),
    ("ipv6", Flag::IgnoredSwitch),
    ("objcheck", Flag::IgnoredSwitch),
    ("logv2", Flag::IgnoredSwitch),
    ("enableJavaScriptJIT", Flag::IgnoredSwitch),
    ("disableJavaScriptJIT", Flag::IgnoredSwitch),
    ("enableJavaScriptProtection", Flag::IgnoredSwitch),
    ("disableJavaScriptProtection", Flag::IgnoredSwitch),
    ("tlsAllowInvalidCertificates", Flag::IgnoredSwitch),
    ("tlsAllowInvalidHostnames", Flag::IgnoredSwitch),
    ("tlsFIPSMode", Flag::IgnoredSwitch),
    ("sslAllowInvalidCertificates", Flag::IgnoredSwitch),
    ("sslAllowInvalidHostnames", Flag::IgnoredSwitch),
    ("sslFIPSMode", Flag::IgnoredSwitch),
    ("tlsMode", Flag::IgnoredValue),
    ("tlsCAFile", Flag::IgnoredValue),
    ("tlsCRLFile", Flag::IgnoredValue),
    ("tlsCertificateKeyFile", Flag::IgnoredValue),
    ("tlsCertificateKeyFilePassword", Flag::IgnoredValue),
    ("tlsCertificateSelector", Flag::IgnoredValue),
    ("tlsDisabledProtocols", Flag::IgnoredValue),
    ("tlsCipherConfig", Flag::IgnoredValue),
    ("sslMode", Flag::IgnoredValue),
    ("sslCAFile", Flag::IgnoredValue),
    ("sslCRLFile", Flag::IgnoredValue),
    ("sslPEMKeyFile", Flag::IgnoredValue),
    ("sslPEMKeyPassword", Flag::IgnoredValue),
    ("sslDisabledProtocols", Flag::IgnoredValue),
    ("gssapiServiceName", Flag::IgnoredValue),
    ("gssapiHostName", Flag::IgnoredValue),
    ("idleSessionTimeout", Flag::IgnoredValue),
    ("setShellParameter", Flag::IgnoredValue),
    ("rpcProtocols", Flag::IgnoredValue),
];

const SHORT: &[(&str, &str)] = &[("-u", "username"), ("-p", "password"), ("-h", "help")];

impl Options {
    /// `Err` is the exit code of a call that has ended here, as `--help` does.
    pub fn parse(args: Vec<OsString>) -> Result<Options, i32> {
        let args = args.into_iter().map(|arg| arg.to_string_lossy().into_owned()).collect::<Vec<_>>();
        let mut options = Options::inherited();
        match options.take(args) {
            Ok(Ended::No) => Ok(options),
            Ok(Ended::Help) => {
                println!("usage: mongo [options] [address] [file names (ending in .js)]");
                FLAGS.iter().for_each(|(name, flag)| println!("  --{name}{}", flag.placeholder()));
                Err(0)
            }
            Ok(Ended::Version) => {
                println!("MongoDB shell version v{VERSION}");
                Err(0)
            }
            Err(message) => {
                eprintln!("Error parsing command line: {message}");
                eprintln!("try 'mongo --help' for more information");
                Err(1)
            }
        }
    }
    /// What a shell that another shell started knows without flags.
    fn inherited() -> Options {
        let path = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let repository = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3);
        Options {
            root: path("JSTEST_ROOT").or_else(|| std::env::current_dir().ok()).unwrap_or_default(),
            fallback_root: path("JSTEST_FALLBACK_ROOT").or_else(|| repository.map(PathBuf::from)),
            library: path("JSTEST_SHELL_LIB").map_or(Library::Own, Library::Directory),
            ..Options::default()
        }
    }
    fn take(&mut self, args: Vec<String>) -> Result<Ended, String> {
        let mut args = args.into_iter().peekable();
        let mut flags_over = false;
        while let Some(arg) = args.next() {
            if flags_over || !arg.starts_with('-') || arg == "-" {
                self.take_positional(arg);
                continue;
            }
            if arg == "--" {
                flags_over = true;
                continue;
            }
            if arg.starts_with("-v") && arg.trim_start_matches(['-', 'v']).is_empty() {
                self.verbose = true;
                continue;
            }
            let (name, given) = match arg.split_once('=') {
                Some((name, value)) => (name, Some(value.to_string())),
                None => (arg.as_str(), None),
            };
            let short = SHORT.iter().find(|(short, _)| *short == name).map(|(_, long)| *long);
            match short.or(name.strip_prefix("--")).unwrap_or(name) {
                "help" => return Ok(Ended::Help),
                "version" => return Ok(Ended::Version),
                long => self.take_flag(long, given, &mut args)?,
            }
        }
        Ok(Ended::No)
    }
    fn take_flag(
        &mut self,
        name: &str,
        given: Option<String>,
        args: &mut std::iter::Peekable<std::vec::IntoIter<String>>,
    ) -> Result<(), String> {
        let Some((_, flag)) = FLAGS.iter().find(|(known, _)| *known == name) else {
            return Err(format!("unrecognised option '{name}'"));
        };
        // A password may be left out (the real shell asks for it); everything else that has a value needs one.
        let optional = name == "password";
        let mut value = || match given.clone() {
            Some(value) => Ok(value),
            None if optional && args.peek().is_none_or(|next| next.starts_with("--")) => Ok(String::new()),
            None => args.next().ok_or(format!("the required argument for option '--{name}' is missing")),
        };
        match flag {
            Flag::Switch(set) => set(self),
            Flag::Value(set) => set(self, value()?),
            Flag::IgnoredSwitch => {}
            Flag::IgnoredValue => drop(value()?),
        }
        Ok(())
    }
    fn take_positional(&mut self, arg: String) {
        let script = arg.ends_with(".js") || arg.ends_with(".mjs");
        if !script && self.address.is_none() && self.files.is_empty() {
            self.address = Some(arg);
        } else {
            self.files.push(arg.into());
        }
    }
}

enum Ended {
    No,
    Help,
    Version,
}

impl Flag {
    fn placeholder(&self) -> &'static str {
        match self {
            Flag::Value(_) | Flag::IgnoredValue => " arg",
            _ => "",
        }
    }
}

/// Sets `db` as the flags say, unless `--nodb` was given.
pub fn connect<'js>(ctx: &Ctx<'js>, shell: &Rc<Shell>) -> rquickjs::Result<()> {
    let options = &shell.options;
    if options.nodb {
        return Ok(());
    }
    let uri = address::connection(options).map_err(|message| errors::throw(ctx, &message))?;
    if !options.quiet {
        shell.print_line(&format!("MongoDB shell version v{VERSION}"));
        shell.print_line(&format!("connecting to: {uri}"));
    }
    let connect: Function = ctx.globals().get("connect")?;
    let db: Object = connect.call((uri,))?;
    ctx.globals().set("db", db.clone())?;
    authenticate(ctx, options, &db)
}

fn authenticate<'js>(ctx: &Ctx<'js>, options: &Options, db: &Object<'js>) -> rquickjs::Result<()> {
    let Some(user) = &options.username else { return Ok(()) };
    let credentials = Object::new(ctx.clone())?;
    credentials.set("user", user.as_str())?;
    credentials.set("pwd", options.password.as_deref().unwrap_or_default())?;
    if let Some(mechanism) = &options.authentication_mechanism {
        credentials.set("mechanism", mechanism.as_str())?;
    }
    let login =
        "(function(db, credentials, name) { return (name ? db.getSiblingDB(name) : db).auth(credentials); })";
    let login: Function = ctx.eval(login)?;
    let database = options.authentication_database.as_deref().unwrap_or_default();
    let accepted: rquickjs::Coerced<bool> = login.call((db.clone(), credentials, database))?;
    if accepted.0 { Ok(()) } else { Err(errors::throw(ctx, "Authentication failed.")) }
}

#[cfg(test)]
mod tests {
    use super::{Library, Options};

    fn parse(args: &[&str]) -> Options {
        Options::parse(args.iter().map(Into::into).collect()).unwrap()
    }

    #[test]
    fn flags_of_a_parallel_shell_are_understood() {
        let o = parse(&[
            "--eval",
            "TestData = {};",
            "--quiet",
            "--norc",
            "--port",
            "20020",
            "--host=localhost",
            "-u",
            "me",
            "--password",
            "secret",
            "--authenticationDatabase",
            "admin",
            "--readMode",
            "commands",
            "--writeMode=legacy",
            "--retryWrites",
            "--tls",
            "--tlsCAFile",
            "ca.pem",
            "-vvv",
            "--shell-lib",
            "/lib",
            "--root",
            "/root",
        ]);
        assert_eq!(o.eval, ["TestData = {};"]);
        assert_eq!((o.host.as_deref(), o.port), (Some("localhost"), Some(20020)));
        assert_eq!((o.username.as_deref(), o.password.as_deref()), (Some("me"), Some("secret")));
        assert_eq!(o.authentication_database.as_deref(), Some("admin"));
        assert_eq!((o.read_mode.as_deref(), o.write_mode.as_deref()), (Some("commands"), Some("legacy")));
        assert!(o.retry_writes && o.quiet && o.tls && o.verbose && !o.nodb);
        assert_eq!(o.library, Library::Directory("/lib".into()));
        assert_eq!(o.root, std::path::Path::new("/root"));
        assert!(o.files.is_empty() && o.address.is_none());
    }

    #[test]
    fn first_positional_that_is_no_script_is_the_address() {
        let o = parse(&["localhost:1/admin", "a.js", "b.mjs"]);
        assert_eq!(o.address.as_deref(), Some("localhost:1/admin"));
        assert_eq!(o.files.len(), 2);
        let o = parse(&["a.js", "--nodb", "second"]);
        assert_eq!(o.address, None);
        assert_eq!(o.files.len(), 2);
        assert!(o.nodb);
    }

    #[test]
    fn unknown_flags_and_missing_values_are_refused() {
        let refused = |args: &[&str]| Options::parse(args.iter().map(Into::into).collect()).err();
        assert_eq!(refused(&["--nonsense"]), Some(1));
        assert_eq!(refused(&["--port"]), Some(1));
        assert_eq!(refused(&["-x"]), Some(1));
        assert_eq!(parse(&["--password", "--nodb"]).password.as_deref(), Some(""));
    }
}
