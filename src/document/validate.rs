//! The check every document passes when it enters, so that the views may trust it afterwards.
//!
//! Checked: every length against the bytes it spans, terminators, known types, UTF-8 of names and strings, booleans
//! of 0 or 1, depth. Allowed: repeated names, array names other than 0..n, any decimal bits, any date.
//!
//! One loop and one list of open levels; nothing recurses, whatever the nesting is made of.

use crate::raw::name_length;
use crate::{Result, err, error::codes};

/// Levels of documents and arrays, the outermost counted.
pub const DEPTH_MAX: usize = 200;
/// What is around a client's document in a log entry, and around that in a reply of a member to another, is deeper by so much.
pub const DEPTH_BETWEEN_NODES: usize = DEPTH_MAX + 20;

/// What a document may be.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub bytes_max: usize,
    /// At most [`DEPTH_BETWEEN_NODES`].
    pub depth_max: usize,
}

impl Limits {
    /// A document a client stores: 16 MiB.
    pub const USER: Limits = Limits { bytes_max: 16 * 1024 * 1024, depth_max: DEPTH_MAX };
    /// A document of the system itself: 16 KiB more.
    pub const INTERNAL: Limits = Limits { bytes_max: 16 * 1024 * 1024 + 16 * 1024, depth_max: DEPTH_MAX };
    /// A whole message body: 48,000,000 bytes.
    pub const MESSAGE: Limits = Limits { bytes_max: 48_000_000, depth_max: DEPTH_MAX };
}

/// `bytes` is exactly one valid document. Errors: InvalidBSON, Overflow (depth), BSONObjectTooLarge.
pub fn validate(bytes: &[u8], limits: Limits) -> Result<()> {
    let length = validate_prefix(bytes, limits)?;
    if length != bytes.len() {
        let extra = bytes.len() - length;
        return Err(err!(
            INVALID_BSON,
            "incorrect BSON length: {extra} bytes follow the end of the document"
        ));
    }
    Ok(())
}

/// The length of the valid document `bytes` begins with; there may be more behind it.
pub fn validate_prefix(bytes: &[u8], limits: Limits) -> Result<usize> {
    let length = match bytes.first_chunk::<4>() {
        Some(head) => i32::from_le_bytes(*head),
        None => return Err(Fault::Short.at(0, "")),
    };
    let length = usize::try_from(length).ok().filter(|n| *n >= 5);
    let length = length.ok_or_else(|| Fault::Length.at(0, ""))?;
    if length > limits.bytes_max {
        let most = limits.bytes_max;
        return Err(err!(
            BSON_OBJECT_TOO_LARGE,
            "BSONObj size: {length} ({length:#X}) is invalid. Size must be between 0 and {most}({})MB",
            most / (1024 * 1024)
        ));
    }
    let whole = bytes.get(..length).ok_or_else(|| Fault::Length.at(0, ""))?;
    walk(whole, limits.depth_max.min(DEPTH_BETWEEN_NODES))?;
    Ok(length)
}

/// What is wrong at one place.
#[derive(Clone, Copy)]
enum Fault {
    Short,
    Length,
    Terminator,
    Name,
    Text,
    Boolean,
    Type(u8),
    Depth(usize),
}

impl Fault {
    /// Cold: the text is made only for a refused document.
    #[cold]
    fn at(self, offset: usize, name: &str) -> crate::Error {
        let what = match self {
            Fault::Short => "document ends too early".to_string(),
            Fault::Length => "incorrect BSON length".to_string(),
            Fault::Terminator => "not null terminated string or document".to_string(),
            Fault::Name => "field name is not terminated or not valid UTF-8".to_string(),
            Fault::Text => "string is not valid UTF-8".to_string(),
            Fault::Boolean => "boolean is neither 0 nor 1".to_string(),
            Fault::Type(tag) => format!("unrecognized BSON type {tag}"),
            Fault::Depth(most) => {
                return crate::Error::new(
                    codes::OVERFLOW,
                    format!("BSONObj exceeded maximum nested object depth: {most}"),
                );
            }
        };
        if name.is_empty() {
            return err!(INVALID_BSON, "{what} at offset {offset}");
        }
        err!(INVALID_BSON, "{what} in element with field name '{name}' at offset {offset}")
    }
}

/// Walks `b`, whose first four bytes are its own length.
fn walk(b: &[u8], depth_max: usize) -> Result<()> {
    // Where each open level has its terminator.
    let mut ends = [0u32; DEPTH_BETWEEN_NODES];
    let mut depth = 1;
    if depth_max == 0 {
        return Err(Fault::Depth(depth_max).at(0, ""));
    }
    ends[0] = b.len() as u32 - 1;
    let mut at = 4;
    let mut end = b.len() - 1;
    loop {
        let tag = b[at];
        if tag == 0 {
            if at != end {
                return Err(Fault::Length.at(at, ""));
            }
            depth -= 1;
            if depth == 0 {
                return Ok(());
            }
            at += 1;
            end = ends[depth - 1] as usize;
            // The parent's own end is still to come, so the loop reads within bounds.
            continue;
        }
        let start = at;
        // Names never reach the terminator of their level: what is searched stops before it.
        let Some(n) = b.get(at + 1..end).and_then(name_length) else {
            return Err(Fault::Name.at(start, ""));
        };
        let name = &b[at + 1..at + 1 + n];
        at += n + 2;
        match value(tag, &b[at..end], name) {
            Ok(Step::Past(length)) => at += length,
            Ok(Step::Into { head, length }) => {
                if depth == depth_max {
                    return Err(Fault::Depth(depth_max).at(start, ""));
                }
                end = at + head + length - 1;
                ends[depth] = end as u32;
                depth += 1;
                at += head + 4;
            }
            Err(fault) => return Err(fault.at(start, std::str::from_utf8(name).unwrap_or(""))),
        }
    }
}

enum Step {
    /// The value is valid and this long.
    Past(usize),
    /// A document of `length` bytes opens `head` bytes into the value.
    Into { head: usize, length: usize },
}

#[inline(always)]
fn value(tag: u8, b: &[u8], name: &[u8]) -> Result<Step, Fault> {
    // Reading the high bits of a few bytes is cheaper than calling the general check.
    if name.iter().fold(0, |bits, b| bits | b) >= 0x80 && std::str::from_utf8(name).is_err() {
        return Err(Fault::Name);
    }
    let fixed = match tag {
        0x02 | 0x0D | 0x0E => return text(b).map(Step::Past),
        0x10 => 4,
        0x01 | 0x09 | 0x11 | 0x12 => 8,
        0x07 => 12,
        0x0A | 0x06 | 0xFF | 0x7F => 0,
        0x08 => match b.first() {
            Some(0 | 1) => 1,
            Some(_) => return Err(Fault::Boolean),
            None => return Err(Fault::Short),
        },
        0x13 => 16,
        0x03 | 0x04 => return document(b, 0),
        _ => return rare(tag, b),
    };
    if fixed <= b.len() { Ok(Step::Past(fixed)) } else { Err(Fault::Short) }
}

fn length_of(b: &[u8]) -> Result<usize, Fault> {
    let head = b.first_chunk::<4>().ok_or(Fault::Short)?;
    usize::try_from(i32::from_le_bytes(*head)).map_err(|_| Fault::Length)
}

/// A document that begins at `head` and fits; its bytes are walked by the caller.
fn document(b: &[u8], head: usize) -> Result<Step, Fault> {
    let rest = b.get(head..).ok_or(Fault::Short)?;
    let length = length_of(rest)?;
    if length < 5 || length > rest.len() {
        return Err(Fault::Length);
    }
    if rest[length - 1] != 0 {
        return Err(Fault::Terminator);
    }
    Ok(Step::Into { head, length })
}

/// A string with its length in front: the bytes it takes.
#[inline(always)]
fn text(b: &[u8]) -> Result<usize, Fault> {
    let n = length_of(b)?;
    if n == 0 || n > b.len() - 4 {
        return Err(Fault::Length);
    }
    if b[4 + n - 1] != 0 {
        return Err(Fault::Terminator);
    }
    let content = &b[4..4 + n - 1];
    if !content.is_ascii() && std::str::from_utf8(content).is_err() {
        return Err(Fault::Text);
    }
    Ok(4 + n)
}

fn c_string(b: &[u8]) -> Result<usize, Fault> {
    let n = name_length(b).ok_or(Fault::Terminator)?;
    std::str::from_utf8(&b[..n]).map_err(|_| Fault::Text)?;
    Ok(n + 1)
}

#[inline(never)]
fn rare(tag: u8, b: &[u8]) -> Result<Step, Fault> {
    match tag {
        0x05 => {
            let n = length_of(b)?;
            if n.checked_add(5).is_none_or(|total| total > b.len()) {
                return Err(Fault::Length);
            }
            // The old subtype 2 repeats its length inside.
            if b[4] == 2 && (n < 4 || length_of(&b[5..])? != n - 4) {
                return Err(Fault::Length);
            }
            Ok(Step::Past(n + 5))
        }
        0x0B => {
            let pattern = c_string(b)?;
            Ok(Step::Past(pattern + c_string(&b[pattern..])?))
        }
        0x0C => match text(b)? + 12 {
            total if total <= b.len() => Ok(Step::Past(total)),
            _ => Err(Fault::Short),
        },
        0x0F => {
            let total = length_of(b)?;
            let inner = b.get(4..total).ok_or(Fault::Length)?;
            let code = text(inner)?;
            // The scope must end where the whole value does.
            match document(inner, code)? {
                Step::Into { length, .. } if 4 + code + length == total => {
                    Ok(Step::Into { head: 4 + code, length })
                }
                _ => Err(Fault::Length),
            }
        }
        tag => Err(Fault::Type(tag)),
    }
}
