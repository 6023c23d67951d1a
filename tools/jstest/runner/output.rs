//! What tests print: bytes, usually text, read for reports.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// A tail is never taken from more than this much of a file.
const TAIL_BYTES_MAX: u64 = 256 << 10;
/// Longer lines are cut in tails.
const LINE_CHARS_MAX: usize = 2_000;
/// Longer reasons are cut.
const REASON_CHARS_MAX: usize = 300;

/// The last lines of a file as printable text; empty when it cannot be read.
pub(super) fn tail(path: &Path, lines: usize) -> String {
    let bytes = last_bytes(path).unwrap_or_default();
    let text = printable(&bytes);
    let all: Vec<&str> = text.lines().collect();
    let kept = all[all.len().saturating_sub(lines)..].iter().map(|line| cut(line, LINE_CHARS_MAX));
    kept.collect::<Vec<_>>().join("\n")
}

fn last_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES_MAX)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Text that can be printed on a terminal and put into XML: what is no text, and every control character but line
/// breaks and tabs, is spelled out.
pub(super) fn printable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' | '\t' => text.push(c),
                '\r' => {}
                c if c.is_control() || ('\u{fffe}'..='\u{ffff}').contains(&c) => {
                    text.extend(c.escape_unicode());
                }
                c => text.push(c),
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// Whether a file holds bytes that are no text.
pub(super) fn is_binary(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    let mut bytes = Vec::new();
    let _ = file.take(4 * TAIL_BYTES_MAX).read_to_end(&mut bytes);
    // The cut may fall within a character, so only an error before the last few bytes counts.
    let bad_text = std::str::from_utf8(&bytes).is_err_and(|e| e.valid_up_to() + 4 <= bytes.len());
    bad_text || bytes.contains(&0)
}

/// Why a shell failed, by the last line it printed about an exception.
pub(super) fn uncaught(path: &Path) -> Option<String> {
    let text = printable(&last_bytes(path).unwrap_or_default());
    let own = text.lines().rev().find(|l| l.starts_with("uncaught exception"));
    let own = own.or_else(|| text.lines().rev().find(|l| l.starts_with("could not load the shell library")));
    let line = own.or_else(|| text.lines().rev().find(|l| l.contains("uncaught exception")));
    let line = line.or_else(|| text.lines().rev().find(|l| l.contains("panicked at")))?;
    Some(cut(line.trim(), REASON_CHARS_MAX))
}

/// Whether Rust code of the shell panicked.
pub(super) fn panicked(path: &Path) -> bool {
    let bytes = last_bytes(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).contains("panicked at")
}

fn cut(line: &str, chars_max: usize) -> String {
    match line.char_indices().nth(chars_max) {
        Some((at, _)) => format!("{}...", &line[..at]),
        None => line.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        file
    }

    #[test]
    fn tails_are_the_last_lines() {
        assert_eq!(tail(file(b"a\nb\nc\n").path(), 2), "b\nc");
        assert_eq!(tail(file(b"").path(), 2), "");
        assert_eq!(tail(Path::new("/nowhere"), 2), "");
    }

    #[test]
    fn bytes_that_are_no_text_are_spelled_out() {
        let text = tail(file(b"ok \xff\x00\x1b[31m\tend\n").path(), 5);
        assert_eq!(text, "ok \\xff\\u{0}\\u{1b}[31m\tend");
        assert!(is_binary(file(b"\xff\xfe words\n").path()));
        assert!(is_binary(file(b"a\0b").path()));
        assert!(!is_binary(file("gr\u{fc}n \u{1f40d}".as_bytes()).path()));
    }

    #[test]
    fn a_huge_line_is_cut() {
        let text = tail(file(&vec![b'x'; 1 << 20]).path(), 3);
        assert_eq!(text.len(), LINE_CHARS_MAX + 3);
    }

    #[test]
    fn the_reason_is_the_shells_own_exception() {
        let text = b"uncaught exception: Error: first\nuncaught exception: Error: second :\n@x.js\nsh7| uncaught exception: no\n";
        assert_eq!(uncaught(file(text).path()).unwrap(), "uncaught exception: Error: second :");
        assert_eq!(uncaught(file(b"nothing").path()), None);
    }
}
