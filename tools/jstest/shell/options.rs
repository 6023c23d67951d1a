//! The flags of the `mongo` program.

use crate::Shell;
use rquickjs::Ctx;
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
    pub root: PathBuf,
    pub library: Library,
    pub nodb: bool,
    pub host: Option<String>,
    pub port: Option<u16>,
    pub database: Option<String>,
}

impl Options {
    /// `Err` is the exit code of a call that has ended here, as `--help` does.
    pub fn parse(args: Vec<OsString>) -> Result<Options, i32> {
        let mut options = Options { root: std::env::current_dir().unwrap_or_default(), ..Options::default() };
        let mut args = args.into_iter().map(|arg| arg.to_string_lossy().into_owned());
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--eval" => options.eval.extend(args.next()),
                "--nodb" => options.nodb = true,
                "--port" => options.port = args.next().and_then(|p| p.parse().ok()),
                "--host" => options.host = args.next(),
                "--root" => options.root = args.next().unwrap_or_default().into(),
                "--shell-lib" => options.library = Library::Directory(args.next().unwrap_or_default().into()),
                "--quiet" | "--norc" => {}
                file => options.files.push(file.into()),
            }
        }
        Ok(options)
    }
}

/// Sets `db` as the flags say, unless `--nodb` was given.
pub fn connect<'js>(ctx: &Ctx<'js>, shell: &Rc<Shell>) -> rquickjs::Result<()> {
    let options = &shell.options;
    if options.nodb {
        return Ok(());
    }
    let host = options.host.clone().unwrap_or_else(|| "127.0.0.1".into());
    let uri = format!("{host}:{}/{}", options.port.unwrap_or(27017), options.database.as_deref().unwrap_or("test"));
    let connect: rquickjs::Function = ctx.globals().get("connect")?;
    let db: rquickjs::Value = connect.call((uri,))?;
    ctx.globals().set("db", db)
}
