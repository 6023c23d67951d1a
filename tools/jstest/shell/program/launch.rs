//! From the arguments a test gives to the program that is run: which file it is, what its lines are called.

use std::path::{Path, PathBuf};

/// What to start.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// The program's name and its arguments.
    pub args: Vec<String>,
    /// Variables set besides the inherited ones.
    pub env: Vec<(String, String)>,
    /// Whether the name is one of ours (`mongod`, `mongos`, `mongo`), rather than any program of the system.
    pub mongo: bool,
    /// Neither echoed nor captured.
    pub quiet: bool,
}

/// What a program is to a test, by its name: `mongod-4.4` is a `mongod`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Mongod,
    ConfigServer,
    Mongos,
    Bridge,
    Shell,
    Other,
}

impl Launch {
    pub fn name(&self) -> &str {
        let first = self.args.first().map_or("", String::as_str);
        first.rsplit('/').next().unwrap_or(first)
    }
    pub fn kind(&self) -> Kind {
        let is =
            |known: &str| self.name().strip_prefix(known).is_some_and(|r| r.is_empty() || r.starts_with('-'));
        match () {
            _ if !self.mongo => Kind::Other,
            _ if is("mongod") && self.args.iter().any(|a| a == "--configsvr") => Kind::ConfigServer,
            _ if is("mongod") => Kind::Mongod,
            _ if is("mongos") => Kind::Mongos,
            _ if is("mongobridge") => Kind::Bridge,
            _ if is("mongo") => Kind::Shell,
            _ => Kind::Other,
        }
    }
    /// The port a server will listen on. A tool's or a shell's `--port` says where it connects, and is none.
    pub fn port(&self) -> Option<u16> {
        if matches!(self.kind(), Kind::Shell | Kind::Other) {
            return None;
        }
        let mut found = None;
        let mut args = self.args.iter().skip(1);
        while let Some(arg) = args.next() {
            let value = match arg.as_str() {
                "--port" | "-port" => args.next().map(String::as_str),
                arg => arg.strip_prefix("--port="),
            };
            found = value.and_then(|v| v.parse().ok()).or(found);
        }
        found
    }
    /// What the program's lines begin with: `d20020| ` for a server with a port, `sh1234| ` for what has none.
    pub fn prefix(&self, pid: i64) -> String {
        let letter = match self.kind() {
            Kind::Mongod => "d",
            Kind::ConfigServer => "c",
            Kind::Mongos => "s",
            Kind::Bridge => "b",
            Kind::Shell | Kind::Other => "sh",
        };
        match self.port() {
            Some(port) => format!("{letter}{port}| "),
            None => format!("{letter}{pid}| "),
        }
    }
    /// The file to execute. A name that is found nowhere stays as it is, and starting it says so.
    pub fn file(&self, places: &Places) -> PathBuf {
        let given = self.args.first().map_or("", String::as_str);
        if !self.mongo || (given.contains('/') && Path::new(given).exists()) {
            return given.into();
        }
        if matches!(self.kind(), Kind::Shell | Kind::Bridge) {
            return places.shell.clone();
        }
        let ours = places.servers.join(self.name());
        if ours.is_file() { ours } else { given.into() }
    }
}

/// Where programs are found.
#[derive(Clone, Debug)]
pub struct Places {
    /// The directory of `mongod` and `mongos`.
    pub servers: PathBuf,
    /// The program that is the shell when it is called `mongo`, and the bridge when it is called `mongobridge`.
    pub shell: PathBuf,
}

impl Default for Places {
    /// This very program is the shell, and the servers stand beside it unless `JSTEST_BIN` names another directory.
    fn default() -> Places {
        let shell = std::env::current_exe().unwrap_or_else(|_| "mongo".into());
        let beside = shell.parent().map(Path::to_path_buf).unwrap_or_default();
        let servers = std::env::var_os("JSTEST_BIN").map_or(beside, PathBuf::from);
        Places { servers, shell }
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Launch, Places};

    fn launch(args: &[&str]) -> Launch {
        Launch { args: args.iter().map(|a| a.to_string()).collect(), mongo: true, ..Launch::default() }
    }

    #[test]
    fn prefix_says_what_a_program_is_and_where_it_listens() {
        let cases: &[(&[&str], &str)] = &[
            (&["mongod", "--port", "20020"], "d20020| "),
            (&["mongod-7.0", "--port=20021"], "d20021| "),
            (&["/opt/bin/mongod", "--port", "1", "--port", "2"], "d2| "),
            (&["mongod", "--configsvr", "--port", "20022"], "c20022| "),
            (&["mongos", "--port", "20023"], "s20023| "),
            (&["mongobridge", "--port", "20024"], "b20024| "),
            (&["mongod", "--version"], "d77| "),
            (&["mongo", "--port", "20020"], "sh77| "),
            (&["mongodump", "--port", "20020"], "sh77| "),
        ];
        for (args, expected) in cases {
            assert_eq!(launch(args).prefix(77), *expected, "{args:?}");
        }
    }

    #[test]
    fn names_of_ours_are_found_beside_each_other_and_others_are_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("mongod"), "").unwrap();
        let places = Places { servers: directory.path().into(), shell: "/bin/shell".into() };
        assert_eq!(launch(&["mongod"]).file(&places), directory.path().join("mongod"));
        assert_eq!(launch(&["mongo-4.4"]).file(&places), std::path::Path::new("/bin/shell"));
        assert_eq!(launch(&["mongobridge"]).file(&places), std::path::Path::new("/bin/shell"));
        assert_eq!(launch(&["mongod-4.4"]).file(&places), std::path::Path::new("mongod-4.4"));
        let system = Launch { mongo: false, ..launch(&["mongod"]) };
        assert_eq!(system.file(&places), std::path::Path::new("mongod"));
        assert_eq!(system.kind(), Kind::Other);
    }
}
