//! Files and directories of the machine the test runs on.

mod dbpath;
mod dump;
mod tree;

pub use dump::read as read_documents;

use crate::natives::{define, number};
use crate::{Shell, errors};
use rquickjs::prelude::Opt;
use rquickjs::{Array, Ctx, Object, Result, Value};
use std::io::Write;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::rc::Rc;

/// What `cat` reads at most: the size of the greatest document, as in the real shell.
const CAT_BYTES_MAX: u64 = wire::limits::MAX_USER_DOCUMENT as u64;

pub fn register<'js>(ctx: &Ctx<'js>, shell: &Rc<Shell>) -> Result<()> {
    register_contents(ctx)?;
    register_entries(ctx)?;
    register_place(ctx, shell)?;
    dbpath::register(ctx)?;
    dump::register(ctx)
}

/// The exception of a native that the system refused something.
fn refused(ctx: &Ctx<'_>, what: &str, path: &str, error: &std::io::Error) -> rquickjs::Error {
    errors::throw(ctx, &format!("{what}: {path}: {error}"))
}

fn register_contents<'js>(ctx: &Ctx<'js>) -> Result<()> {
    define(ctx, "cat", |ctx: Ctx<'js>, path: String, binary: Opt<bool>| {
        cat(&ctx, &path, binary.0 == Some(true))
    })?;
    for (name, appends) in [("writeFile", false), ("appendFile", true)] {
        define(ctx, name, move |ctx: Ctx<'js>, path: String, content: Value<'js>, binary: Opt<bool>| {
            write(&ctx, &path, &content, binary.0 == Some(true), appends)
        })?;
    }
    define(ctx, "copyFile", |ctx: Ctx<'js>, from: String, to: String| {
        std::fs::copy(&from, &to)
            .map(|_| true)
            .map_err(|error| refused(&ctx, "copyFile failed", &from, &error))
    })?;
    define(ctx, "fuzzFile", |ctx: Ctx<'js>, path: String| {
        invert_first_byte(&path).map_err(|error| refused(&ctx, "fuzzFile failed", &path, &error))
    })?;
    define(
        ctx,
        "_copyFileRange",
        |ctx: Ctx<'js>, from: String, to: String, offset: Value<'js>, count: Value<'js>| {
            copy_range(&ctx, &from, &to, number(&offset)? as u64, number(&count)? as u64)
        },
    )
}

/// Damages a file as a test of recovery wants it. Error: the file does not exist or is empty.
fn invert_first_byte(path: &str) -> std::io::Result<()> {
    let mut first = [0];
    let file = std::fs::File::options().read(true).write(true).open(path)?;
    file.read_exact_at(&mut first, 0)?;
    file.write_all_at(&[!first[0]], 0)
}

/// The content as a string: text in UTF-8, or with `binary` one character a byte.
fn cat(ctx: &Ctx<'_>, path: &str, binary: bool) -> Result<String> {
    let failed = |error: std::io::Error| errors::throw(ctx, &format!("couldn't open file {path}: {error}"));
    let length = std::fs::metadata(path).map_err(failed)?.len();
    if length > CAT_BYTES_MAX {
        let message = format!("cat() : file {path} too big to load as a variable (file is {length} bytes)");
        return Err(errors::throw(ctx, &message));
    }
    let bytes = std::fs::read(path).map_err(failed)?;
    Ok(match binary {
        true => bytes.iter().map(|byte| char::from(*byte)).collect(),
        false => String::from_utf8_lossy(&bytes).into_owned(),
    })
}

/// Writes a new file, or with `appends` at the end of one that may be there.
fn write(ctx: &Ctx<'_>, path: &str, content: &Value<'_>, binary: bool, appends: bool) -> Result<()> {
    let Some(text) = content.as_string() else {
        return Err(errors::throw(ctx, "the second argument, the content of the file, must be a string"));
    };
    let text = text.to_string()?;
    let bytes = match binary {
        true => text.chars().map(|c| c as u32 as u8).collect(),
        false => text.into_bytes(),
    };
    let mut how = std::fs::OpenOptions::new();
    match appends {
        true => how.append(true).create(true),
        false => how.write(true).create_new(true),
    };
    let mut file =
        how.open(path).map_err(|error| refused(ctx, "failed to open file for writing", path, &error))?;
    file.write_all(&bytes).map_err(|error| refused(ctx, "failed to write file", path, &error))
}

/// Copies `count` bytes at `offset` to the same place of another file: `{n, earlyEOF}`.
fn copy_range<'js>(ctx: &Ctx<'js>, from: &str, to: &str, offset: u64, count: u64) -> Result<Object<'js>> {
    use std::os::unix::fs::FileExt;
    let open = std::fs::File::open(from).map_err(|error| refused(ctx, "couldn't open file", from, &error))?;
    let target = std::fs::OpenOptions::new().write(true).create(true).truncate(false).open(to);
    let target = target.map_err(|error| refused(ctx, "couldn't open file", to, &error))?;
    let mut block = vec![0; 1 << 16];
    let mut copied = 0;
    while copied < count {
        let wanted = block.len().min((count - copied) as usize);
        let read = open.read_at(&mut block[..wanted], offset + copied);
        match read.map_err(|error| refused(ctx, "couldn't read file", from, &error))? {
            0 => break,
            length => {
                let written = target.write_all_at(&block[..length], offset + copied);
                written.map_err(|error| refused(ctx, "couldn't write file", to, &error))?;
                copied += length as u64;
            }
        }
    }
    let answer = Object::new(ctx.clone())?;
    answer.set("n", copied as f64)?;
    answer.set("earlyEOF", copied < count)?;
    Ok(answer)
}

fn register_entries<'js>(ctx: &Ctx<'js>) -> Result<()> {
    define(ctx, "fileExists", |path: String| Path::new(&path).exists())?;
    define(ctx, "pathExists", |path: String| Path::new(&path).exists())?;
    define(ctx, "removeFile", |ctx: Ctx<'_>, path: String| -> Result<bool> {
        tree::remove(Path::new(&path)).map_err(|error| refused(&ctx, "removeFile failed", &path, &error))
    })?;
    define(ctx, "mkdir", |ctx: Ctx<'js>, path: String| mkdir(&ctx, &path))?;
    define(ctx, "copyDir", |ctx: Ctx<'_>, from: String, to: String| -> Result<()> {
        let copied = tree::copy(Path::new(&from), Path::new(&to), &|_| true);
        copied.map_err(|error| refused(&ctx, "copyDir failed", &from, &error))
    })?;
    define(ctx, "listFiles", |ctx: Ctx<'js>, path: Opt<String>| {
        list_files(&ctx, &path.0.unwrap_or(".".into()))
    })?;
    define(ctx, "ls", |ctx: Ctx<'js>, path: Opt<String>| ls(&ctx, &path.0.unwrap_or(".".into())))?;
    define(ctx, "getFileMode", |ctx: Ctx<'_>, path: String| -> Result<u32> {
        let metadata = std::fs::metadata(&path);
        let metadata =
            metadata.map_err(|error| refused(&ctx, "Unable to get mode of file", &path, &error))?;
        Ok(metadata.permissions().mode() & 0o7777)
    })?;
    define(ctx, "umask", |mask: Opt<Value<'_>>| -> Result<u32> {
        // SAFETY: sets a number of the process; it cannot fail.
        let set = |mask: u32| unsafe { libc::umask(mask as libc::mode_t) } as u32;
        match mask.0.filter(|mask| !mask.is_undefined()) {
            Some(mask) => Ok(set(number(&mask)? as u32)),
            None => {
                let old = set(0);
                set(old);
                Ok(old)
            }
        }
    })
}

/// `{exists, created}`
fn mkdir<'js>(ctx: &Ctx<'js>, path: &str) -> Result<Object<'js>> {
    let existed = Path::new(path).is_dir();
    std::fs::create_dir_all(path).map_err(|error| refused(ctx, "mkdir failed", path, &error))?;
    let answer = Object::new(ctx.clone())?;
    answer.set("exists", true)?;
    answer.set("created", !existed)?;
    Ok(answer)
}

/// Documents `{name, baseName, isDirectory, size}`; a directory has no size.
fn list_files<'js>(ctx: &Ctx<'js>, path: &str) -> Result<Array<'js>> {
    let files = Array::new(ctx.clone())?;
    for (place, entry) in entries(ctx, path)?.iter().enumerate() {
        let file = Object::new(ctx.clone())?;
        file.set("name", entry.to_string_lossy().into_owned())?;
        file.set("baseName", entry.file_name().unwrap_or_default().to_string_lossy().into_owned())?;
        file.set("isDirectory", entry.is_dir())?;
        if !entry.is_dir() {
            file.set("size", entry.metadata().map_or(0, |metadata| metadata.len()) as f64)?;
        }
        files.set(place, file)?;
    }
    Ok(files)
}

/// Paths, those of directories with a slash at their end.
fn ls<'js>(ctx: &Ctx<'js>, path: &str) -> Result<Array<'js>> {
    let names = Array::new(ctx.clone())?;
    for (place, entry) in entries(ctx, path)?.iter().enumerate() {
        let slash = if entry.is_dir() { "/" } else { "" };
        names.set(place, format!("{}{slash}", entry.display()))?;
    }
    Ok(names)
}

fn entries(ctx: &Ctx<'_>, path: &str) -> Result<Vec<std::path::PathBuf>> {
    let absent = |error: std::io::Error| refused(ctx, "listFiles: no such directory", path, &error);
    let mut entries: Vec<_> =
        std::fs::read_dir(path).map_err(absent)?.filter_map(|entry| entry.ok().map(|e| e.path())).collect();
    entries.sort();
    Ok(entries)
}

fn register_place(ctx: &Ctx<'_>, shell: &Rc<Shell>) -> Result<()> {
    define(ctx, "pwd", || {
        std::env::current_dir().map_or(String::new(), |path| path.to_string_lossy().into_owned())
    })?;
    define(ctx, "cd", |ctx: Ctx<'_>, path: String| -> Result<()> {
        std::env::set_current_dir(&path).map_err(|error| refused(&ctx, "cd command failed", &path, &error))
    })?;
    let of = shell.clone();
    define(ctx, "passwordPrompt", move || {
        // A test has nobody to ask; what stands in the standard input is the answer.
        let _ = of.shared.output.lock().write_all(b"Enter password: \n");
        let mut line = String::new();
        let _ = std::io::stdin().read_line(&mut line);
        line.trim_end_matches(['\n', '\r']).to_string()
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::run;

    /// Runs `script` with the path of an empty directory in `dir`.
    fn run_in_directory(script: &str) {
        let directory = tempfile::tempdir().unwrap();
        let helpers = r#"
            const eq = (a, b) => { if (JSON.stringify(a) !== JSON.stringify(b)) throw Error(tojson(a) + " is not " + tojson(b)); };
            const message = f => { try { f(); } catch (e) { return e.message; } throw Error("did not throw"); };
        "#;
        run(&format!("const dir = '{}';{helpers}{script}", directory.path().display())).unwrap();
    }

    #[test]
    fn files_are_written_read_appended_and_copied() {
        run_in_directory(
            r#"
            const file = dir + "/a.txt";
            writeFile(file, "eins\näöü\n");
            eq(cat(file), "eins\näöü\n");
            appendFile(file, "zwei");
            eq(cat(file), "eins\näöü\nzwei");
            message(() => writeFile(file, "there already"));
            writeFile(dir + "/bytes", "\u00ff\u0000A", true);
            eq(cat(dir + "/bytes", true), "\u00ff\u0000A");
            eq(listFiles(dir).map(f => f.size), [16, 3]);
            copyFile(file, dir + "/b.txt");
            eq(cat(dir + "/b.txt"), cat(file));
            eq(md5sumFile(dir + "/b.txt"), hex_md5(cat(file)));
            if (!message(() => cat(dir + "/none")).startsWith("couldn't open file " + dir + "/none")) throw Error();
            message(() => writeFile(dir + "/n", 5));
            eq(_copyFileRange(file, dir + "/part", 5, 100), {n: 11, earlyEOF: true});
            eq(cat(dir + "/part", true).slice(0, 6), "\0\0\0\0\0\u00c3");
        "#,
        );
    }

    #[test]
    fn directories_are_made_listed_copied_and_removed() {
        run_in_directory(
            r#"
            eq(mkdir(dir + "/d/e"), {exists: true, created: true});
            eq(mkdir(dir + "/d/e"), {exists: true, created: false});
            writeFile(dir + "/d/f", "12345");
            writeFile(dir + "/d/e/g", "");
            eq(ls(dir + "/d"), [dir + "/d/e/", dir + "/d/f"]);
            eq(listFiles(dir + "/d"), [
                {name: dir + "/d/e", baseName: "e", isDirectory: true},
                {name: dir + "/d/f", baseName: "f", isDirectory: false, size: 5},
            ]);
            copyDir(dir + "/d", dir + "/copy");
            eq(cat(dir + "/copy/f"), "12345");
            eq(fileExists(dir + "/copy/e/g"), true);
            eq(removeFile(dir + "/copy"), true);
            eq(pathExists(dir + "/copy"), false);
            eq(removeFile(dir + "/copy"), false);
            if (!message(() => listFiles(dir + "/copy")).includes("no such directory")) throw Error();
            eq(getFileMode(dir + "/d/f") & 0o600, 0o600);
            const mask = umask();
            eq([umask(0o77), umask(mask)], [mask, 0o77]);
        "#,
        );
    }

    #[test]
    fn data_directories_are_emptied_and_copied_without_their_lock() {
        run_in_directory(
            r#"
            mkdir(dir + "/data/journal");
            writeFile(dir + "/data/mongod.lock", "1");
            writeFile(dir + "/data/journal/1", "x");
            copyDbpath(dir + "/data", dir + "/copy");
            eq(ls(dir + "/copy"), [dir + "/copy/journal/"]);
            eq(cat(dir + "/copy/journal/1"), "x");
            resetDbpath(dir + "/data");
            eq(ls(dir + "/data"), []);
            resetDbpath(dir + "/new/one");
            eq(pathExists(dir + "/new/one"), true);
        "#,
        );
    }

    #[test]
    fn dump_files_hold_documents_one_after_another() {
        run_in_directory(
            r#"
            const bson = "\x0c\0\0\0\x10a\0\x01\0\0\0\0" + "\x0c\0\0\0\x10a\0\x02\0\0\0\0";
            writeFile(dir + "/x.bson", bson, true);
            eq(_readDumpFile(dir + "/x.bson").map(d => d.a), [1, 2]);
            eq(_numObjsInDumpFile(dir + "/x.bson"), 2);
            eq(_getObjInDumpFile(dir + "/x.bson", 1).a, 2);
            message(() => _getObjInDumpFile(dir + "/x.bson", 2));
            writeFile(dir + "/cut.bson", bson.slice(0, 20), true);
            message(() => _readDumpFile(dir + "/cut.bson"));
        "#,
        );
    }
}
