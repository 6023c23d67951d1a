//! Text between the engine's UTF-16 and ours.

use rquickjs::{Ctx, Value, qjs};

/// The text of any value as `String(value)` has it; lone surrogates, which UTF-8 has not, become U+FFFD.
pub fn text_of<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> rquickjs::Result<String> {
    let mut length = 0;
    // SAFETY: the engine's bytes live until they are freed below, and are copied before.
    unsafe {
        let bytes = qjs::JS_ToCStringLen(ctx.as_raw().as_ptr(), &mut length, value.as_raw());
        if bytes.is_null() {
            return Err(rquickjs::Error::Exception);
        }
        let text = decode(std::slice::from_raw_parts(bytes.cast::<u8>(), length));
        qjs::JS_FreeCString(ctx.as_raw().as_ptr(), bytes);
        Ok(text)
    }
}

/// The engine writes a lone surrogate as the three bytes it would have as a character.
fn decode(bytes: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.to_string();
    }
    let mut bytes = bytes.to_vec();
    for at in 0..bytes.len().saturating_sub(2) {
        if bytes[at] == 0xED && bytes[at + 1] >= 0xA0 {
            bytes[at..at + 3].copy_from_slice("\u{FFFD}".as_bytes());
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A string as a JavaScript value.
pub fn boxed<'js>(ctx: &Ctx<'js>, text: &str) -> rquickjs::Result<Value<'js>> {
    rquickjs::String::from_str(ctx.clone(), text).map(|s| s.into_value())
}

/// The columns a terminal takes for `text`: wide East Asian characters count two, combining marks none.
pub(super) fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

fn char_width(c: char) -> usize {
    const NONE: [(u32, u32); 4] = [(0x300, 0x36F), (0x200B, 0x200F), (0x20D0, 0x20FF), (0xFE00, 0xFE0F)];
    const WIDE: [(u32, u32); 8] = [
        (0x1100, 0x115F),
        (0x2E80, 0xA4CF),
        (0xAC00, 0xD7A3),
        (0xF900, 0xFAFF),
        (0xFE30, 0xFE6F),
        (0xFF00, 0xFF60),
        (0x1F300, 0x1FAFF),
        (0x20000, 0x3FFFD),
    ];
    let within = |ranges: &[(u32, u32)]| ranges.iter().any(|(from, to)| (*from..=*to).contains(&(c as u32)));
    match c {
        _ if (c as u32) < 0x20 || within(&NONE) => 0,
        _ if within(&WIDE) => 2,
        _ => 1,
    }
}
