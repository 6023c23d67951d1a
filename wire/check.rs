//! Checks BSON bytes as they enter.

use document::{Error, Result, codes, raw};

/// Walks a document of any nesting up to `max_nesting` without recursion.
pub(crate) fn validate(bytes: &[u8], max_nesting: usize) -> Result<()> {
    walk(bytes, max_nesting).ok_or_else(|| Error::new(codes::INVALID_BSON, "Invalid BSON in message"))
}

fn walk(bytes: &[u8], max_nesting: usize) -> Option<()> {
    let mut ends = Vec::with_capacity(8);
    let mut at = open(bytes, 0, bytes.len())?;
    ends.push(bytes.len());
    while let Some(end) = ends.last().copied() {
        let tag = *bytes.get(at)?;
        at += 1;
        if tag == 0 {
            if at != end {
                return None;
            }
            ends.pop();
            continue;
        }
        let name = bytes[at..end].iter().position(|b| *b == 0)?;
        std::str::from_utf8(&bytes[at..at + name]).ok()?;
        at += name + 1;
        let length = raw::value_length(tag, &bytes[at..end])?;
        let stop = at.checked_add(length).filter(|s| *s < end)?;
        match tag {
            3 | 4 => {
                if ends.len() >= max_nesting {
                    return None;
                }
                at = open(bytes, at, stop)?;
                ends.push(stop);
            }
            _ => at = stop,
        }
    }
    (at == bytes.len()).then_some(())
}

fn open(bytes: &[u8], at: usize, end: usize) -> Option<usize> {
    let length = crate::header::i32_at(bytes, at)?;
    (usize::try_from(length).ok()? == end.checked_sub(at)?).then_some(at + 4)
}
