//! Named pipes that stand for data from outside: a thread writes documents while a server, or the test, reads.
//!
//! ```text
//! _writeTestPipe(name, count, shortest, longest)            documents {string: "..."} of random length
//! _writeTestPipeObjects(name, count, documents, folder?)    these, over and over, until there are `count`
//! _writeTestPipeBsonFile(name, count, file, folder?)        those of a dump file, likewise
//! _writeTestPipeBsonFileSync(name, count, file, folder?)    the same, returning when all has been read
//! _readTestPipes(name, ...)                                 {objects, bytes} that came through the pipes, one after another
//! ```
//! A pipe is there when the native returns and gone when everything has been written. A writer waits for its reader; one
//! that nobody reads ends with the process.

use crate::files::read_documents;
use crate::natives::{define, number, text};
use crate::{Shared, Shell, bson, errors};
use document::DocWriter;
use rquickjs::prelude::{Opt, Rest};
use rquickjs::{Array, Ctx, Object, Result, Value};
use std::ffi::CString;
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// Where pipes are unless a test says where, as on the servers.
const FOLDER: &str = "/tmp";

type Documents = Vec<Arc<[u8]>>;

pub fn register<'js>(ctx: &Ctx<'js>, shell: &Rc<Shell>) -> Result<()> {
    let of = shell.clone();
    define(ctx, "_writeTestPipe", move |ctx: Ctx<'js>, name: String, args: Rest<Value<'js>>| {
        let documents = random_documents(&ctx, &args.0)?;
        write(&ctx, &of, &name, documents.len(), documents, None, false)
    })?;
    let of = shell.clone();
    define(
        ctx,
        "_writeTestPipeObjects",
        move |ctx: Ctx<'js>, name: String, count: Value<'js>, array: Array<'js>, folder: Opt<String>| {
            let documents = array.iter::<Object>().map(|object| Ok(bson::to_bson(&ctx, &object?)?.into()));
            let documents: Documents = documents.collect::<Result<_>>()?;
            write(&ctx, &of, &name, number(&count)? as usize, documents, folder.0, false)
        },
    )?;
    for (native, waits) in [("_writeTestPipeBsonFile", false), ("_writeTestPipeBsonFileSync", true)] {
        let of = shell.clone();
        define(
            ctx,
            native,
            move |ctx: Ctx<'js>, name: String, count: Value<'js>, file: String, folder: Opt<String>| {
                let documents = read_documents(&ctx, &file)?;
                write(&ctx, &of, &name, number(&count)? as usize, documents, folder.0, waits)
            },
        )?;
    }
    define(ctx, "_readTestPipes", |ctx: Ctx<'js>, names: Rest<Value<'js>>| read(&ctx, &names.0))
}

/// `count` documents whose one string is between two lengths.
fn random_documents<'js>(ctx: &Ctx<'js>, args: &[Value<'js>]) -> Result<Documents> {
    let [count, shortest, longest] = args else {
        return Err(errors::throw(ctx, "_writeTestPipe takes a name, a count and two lengths"));
    };
    let (count, shortest, longest) = (number(count)?, number(shortest)?, number(longest)?);
    // A string of 16 MB is more than a document may hold.
    if !(0.0..=1e8).contains(&count)
        || !(0.0..=1.6e7).contains(&shortest)
        || !(shortest..=1.6e7).contains(&longest)
    {
        return Err(errors::throw(ctx, "_writeTestPipe: a count or length is out of range"));
    }
    let span = (longest - shortest) as u128 + 1;
    let document = |_| {
        let length = shortest as usize + (uuid::Uuid::new_v4().as_u128() % span) as usize;
        DocWriter::build(|w| w.string("string", &"s".repeat(length))).into_bytes().into()
    };
    Ok((0..count as usize).map(document).collect())
}

/// Makes the pipe, and writes `count` documents to it on a thread of its own.
fn write(
    ctx: &Ctx<'_>,
    shell: &Shell,
    name: &str,
    count: usize,
    documents: Documents,
    folder: Option<String>,
    waits: bool,
) -> Result<()> {
    if documents.is_empty() && count > 0 {
        return Err(errors::throw(ctx, &format!("pipe {name}: there are no documents to write")));
    }
    let path = place(ctx, name, folder.as_deref())?;
    make(&path)
        .map_err(|error| errors::throw(ctx, &format!("cannot make pipe {}: {error}", path.display())))?;
    let shared = shell.shared.clone();
    let work = move || fill(&shared, &path, count, &documents);
    let writer = std::thread::Builder::new().name("pipe".into()).spawn(work);
    let writer = writer.map_err(|error| errors::throw(ctx, &format!("pipe {name}: {error}")))?;
    if waits && writer.join().ok() != Some(true) {
        return Err(errors::throw(ctx, &format!("pipe {name} could not be written")));
    }
    Ok(())
}

/// A pipe's name is that of a file in the folder, nowhere else.
fn place(ctx: &Ctx<'_>, name: &str, folder: Option<&str>) -> Result<PathBuf> {
    if name.is_empty() || name.contains("..") || name.contains('\0') {
        return Err(errors::throw(ctx, &format!("{name:?} is no name of a pipe")));
    }
    let folder = Path::new(folder.unwrap_or(FOLDER));
    Ok(folder.join(name.trim_start_matches('/')))
}

/// A new pipe; one left by an earlier test is replaced, a file is not.
fn make(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::FileTypeExt;
    if std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo()) {
        std::fs::remove_file(path)?;
    }
    let name = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the name ends with a zero and outlives the call.
    match unsafe { libc::mkfifo(name.as_ptr(), 0o600) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether everything was written. Nobody waits for most writers, so that a failure is printed.
fn fill(shared: &Shared, path: &Path, count: usize, documents: &Documents) -> bool {
    let written = || -> io::Result<()> {
        let mut pipe = BufWriter::with_capacity(1 << 16, std::fs::OpenOptions::new().write(true).open(path)?);
        documents.iter().cycle().take(count).try_for_each(|document| pipe.write_all(document))?;
        pipe.flush()
    };
    let outcome = written();
    let _ = std::fs::remove_file(path);
    if let Err(error) = &outcome {
        shared.print_line(&format!("pipe {}: {error}", path.display()));
    }
    outcome.is_ok()
}

fn read<'js>(ctx: &Ctx<'js>, names: &[Value<'js>]) -> Result<Object<'js>> {
    if names.is_empty() {
        return Err(errors::throw(ctx, "_readTestPipes takes the names of pipes"));
    }
    let (mut objects, mut bytes) = (0u64, 0u64);
    for name in names {
        let path = place(ctx, &text(name)?, None)?;
        let failed =
            |error: io::Error| errors::throw(ctx, &format!("cannot read pipe {}: {error}", path.display()));
        let mut pipe = io::BufReader::new(std::fs::File::open(&path).map_err(failed)?);
        while let Some(length) = pass(&mut pipe).map_err(failed)? {
            objects += 1;
            bytes += length;
        }
    }
    let answer = Object::new(ctx.clone())?;
    answer.set("objects", objects as f64)?;
    answer.set("bytes", bytes as f64)?;
    Ok(answer)
}

/// Reads past one document and tells its length; `None` at the end.
fn pass(pipe: &mut impl Read) -> io::Result<Option<u64>> {
    let mut head = Vec::with_capacity(4);
    pipe.by_ref().take(4).read_to_end(&mut head)?;
    let Ok(head) = <[u8; 4]>::try_from(head.as_slice()) else {
        return if head.is_empty() { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
    };
    let length = u32::from_le_bytes(head) as u64;
    let rest = length.checked_sub(4).ok_or(io::ErrorKind::InvalidData)?;
    match io::copy(&mut pipe.by_ref().take(rest), &mut io::sink())? {
        passed if passed == rest => Ok(Some(length)),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
