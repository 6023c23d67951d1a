//! Matches that can be interrupted.
//!
//! PCRE goes on until it has found a match or tried everything, which for `a.*b.*c` is the cube of the text's length, and it can neither
//! be stopped from outside nor does its compiled code count such repetitions against a limit. So a pattern that may take long in
//! a text ([`Effort`]) is compiled once more with a call before each of its items. The call counts the work done since the last one
//! ([`meter::spend`]); what the meter refuses ends the match. That takes a few times as long as matching without.
//!
//! A pattern too large for these calls is matched by the interpreter in turns, each with twice the limit of the one before.

use document::{Error, Result, meter};
use pcre2_sys::*;
use std::ffi::{c_int, c_void};
use std::iter::Peekable;
use std::ptr::{self, NonNull};
use std::str::Chars;

/// How the work of a match grows with the length of the text, judged from the pattern: too much rather than too little.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Repetitions, each of which may end anywhere; and the beginning of the match, unless that is fixed.
    repetitions: u32,
    /// What may go one way or another, each of which doubles what is tried.
    choices: u32,
    /// A repetition of what repeats itself or has a choice, a reference, or a recursion: no bound.
    endless: bool,
}

/// Steps of a match, as a power of two, beyond which it is made interruptible: about a hundredth of a second.
const STEPS_MAX_LOG2: u32 = 24;
/// Steps that count as one unit of work, as a power of two. Nearly every match takes far less than it may.
const STEPS_A_UNIT_LOG2: u32 = 14;
/// Bytes of a text that are gone through in the time of a unit of work.
pub(crate) const BYTES_A_UNIT: usize = 32;
/// Below this length of a text nothing takes long.
const SHORT_BYTES: usize = 24;

impl Effort {
    pub(crate) fn of(pattern: &str, options: &str) -> Effort {
        let fixed = (pattern.starts_with('^') && !options.contains('m')) || pattern.starts_with("\\A");
        let extended = options.contains('x');
        let effort = Effort {
            repetitions: u32::from(!fixed || pattern.contains('|')),
            choices: 0,
            // Such a beginning may say what ends a line, and with it a comment.
            endless: extended && pattern.starts_with("(*"),
        };
        let mut reader =
            Reader { chars: pattern.chars().peekable(), extended, effort, open: Vec::new(), closed: false };
        while let Some(c) = reader.chars.next() {
            reader.item(c);
        }
        reader.effort
    }

    /// The steps that a match in so many bytes may take, as a power of two.
    fn steps_log2(self, bytes: usize) -> u32 {
        let length = (bytes + 2).ilog2();
        length.saturating_mul(self.repetitions).saturating_add(self.choices)
    }

    /// Whether a match in so many bytes may take long.
    pub(crate) fn is_long(self, bytes: usize) -> bool {
        bytes > SHORT_BYTES && (self.endless || self.steps_log2(bytes) > STEPS_MAX_LOG2)
    }

    /// Units of work of one match in so many bytes, beside what is counted while it is made.
    pub(crate) fn units(self, bytes: usize) -> usize {
        bytes / BYTES_A_UNIT + self.units_beside_length(bytes)
    }

    /// The same without what it takes to go through the text.
    pub(crate) fn units_beside_length(self, bytes: usize) -> usize {
        if self.is_long(bytes) || (self.repetitions <= 1 && self.choices == 0) {
            return 2;
        }
        // In a short text there are fewer than may be.
        1 + (1 << self.steps_log2(bytes).min(STEPS_MAX_LOG2).saturating_sub(STEPS_A_UNIT_LOG2))
    }
}

/// Reads a pattern from its beginning to its end.
struct Reader<'p> {
    chars: Peekable<Chars<'p>>,
    /// Spaces and comments stand for nothing.
    extended: bool,
    effort: Effort,
    /// Of each open group, whether it repeats itself or has a choice, and how many more alternatives than one.
    open: Vec<(bool, u32)>,
    /// What a repetition would repeat is a group that repeats itself or has a choice.
    closed: bool,
}

impl Reader<'_> {
    fn item(&mut self, c: char) {
        if self.extended && (c == '#' || c.is_whitespace() || matches!(c, '\u{200e}' | '\u{200f}')) {
            if c == '#' {
                self.skip_to('\n');
            }
            return;
        }
        match c {
            '\\' => self.escape(),
            '[' => self.class(),
            '(' => self.group(),
            ')' => {
                let (varies, alternatives) = self.open.pop().unwrap_or_default();
                self.effort.choices += u32::BITS - alternatives.leading_zeros();
                self.closed = varies;
                if let Some(outer) = self.open.last_mut() {
                    outer.0 |= varies;
                }
            }
            '*' | '+' | '{' | '?' | '|' => {
                let again = matches!(c, '*' | '+' | '{');
                self.effort.endless |= std::mem::take(&mut self.closed) && again;
                self.effort.repetitions += u32::from(again);
                self.effort.choices += u32::from(c == '?');
                // A choice that is not in a group is made once.
                if let Some(group) = self.open.last_mut() {
                    group.0 = true;
                    group.1 += u32::from(c == '|');
                }
            }
            _ => self.closed = false,
        }
    }

    /// True when the character was found.
    fn skip_to(&mut self, last: char) -> bool {
        self.chars.by_ref().any(|c| c == last)
    }

    /// Behind a backslash.
    fn escape(&mut self) {
        match self.chars.next() {
            Some('E') => {}
            Some('Q') => {
                let quoted = self.chars.next_if(|c| *c != '\\').is_some();
                self.closed &= !quoted;
                while self.skip_to('\\') && self.chars.next_if_eq(&'E').is_none() {
                    self.closed = false;
                }
            }
            escaped => {
                self.closed = false;
                self.effort.endless |= matches!(escaped, Some('1'..='9' | 'g' | 'k'));
                if escaped == Some('c') {
                    self.chars.next();
                }
            }
        }
    }

    /// Behind `[`: nothing in a class is a group or a repetition.
    fn class(&mut self) {
        self.closed = false;
        self.chars.next_if_eq(&'^');
        self.chars.next_if_eq(&']');
        while let Some(c) = self.chars.next() {
            match c {
                ']' => return,
                // Where what is quoted ends, the class may have begun.
                '\\' => match self.chars.next() {
                    Some('Q' | 'E') => self.effort.endless = true,
                    Some('c') => _ = self.chars.next(),
                    _ => {}
                },
                '[' => {
                    let named = self.chars.peek().copied().filter(|c| matches!(c, ':' | '.' | '='));
                    let length = named.and_then(|mark| named_class(self.chars.clone(), mark));
                    for _ in 0..length.unwrap_or(0) {
                        self.chars.next();
                    }
                }
                _ => {}
            }
        }
    }

    /// Behind `(`.
    fn group(&mut self) {
        let extension = self.chars.next_if_eq(&'?').is_some();
        if extension && self.chars.next_if_eq(&'#').is_some() {
            // What stands before a comment may be repeated behind it.
            self.skip_to(')');
            return;
        }
        self.closed = false;
        self.open.push((false, 0));
        if extension {
            self.effort.endless |= recurs(self.chars.clone()) || extends(self.chars.clone());
        }
    }
}

/// The characters from the mark of a named class, `:alpha:]` and such, to its end; `None` when it is not one.
fn named_class(mut from_mark: impl Iterator<Item = char>, mark: char) -> Option<usize> {
    from_mark.next();
    let (mut length, mut last) = (1, None);
    for c in from_mark {
        length += 1;
        match c {
            ']' => return (last == Some(mark)).then_some(length),
            '[' | '\\' => return None,
            _ => last = Some(c),
        }
    }
    None
}

/// Whether what follows `(?` sets the option x, or takes it back, for a part of the pattern.
fn extends(after: impl Iterator<Item = char>) -> bool {
    let mut extended = false;
    for c in after {
        match c {
            'x' => extended = true,
            ')' | ':' => return extended,
            'a'..='z' | 'A'..='Z' | '^' | '-' => {}
            _ => return false,
        }
    }
    false
}

/// Whether what follows `(?` is a recursion, or a reference by name.
fn recurs(mut after: impl Iterator<Item = char>) -> bool {
    match after.next() {
        Some('R' | '0'..='9' | '&') => true,
        Some('+' | '-') => after.next().is_some_and(|c| c.is_ascii_digit()),
        Some('P') => matches!(after.next(), Some('>' | '=')),
        _ => false,
    }
}

/// Where the whole match and each group lie, in bytes.
pub(crate) type Places = Vec<Option<(usize, usize)>>;

/// A pattern whose matches can be interrupted.
pub(crate) struct Interruptible {
    code: NonNull<pcre2_code_8>,
    groups: u32,
    /// Whether it calls back before each item.
    calls: bool,
    /// Whether the library's limit of steps holds, as it does for compiled code without calls, which counts repetitions of groups only.
    limited: bool,
}

// SAFETY: compiled code is immutable, and may be used by several threads at once.
unsafe impl Send for Interruptible {}
// SAFETY: as above.
unsafe impl Sync for Interruptible {}

impl Drop for Interruptible {
    fn drop(&mut self) {
        // SAFETY: made by `pcre2_compile_8`, and freed once.
        unsafe { pcre2_code_free_8(self.code.as_ptr()) }
    }
}

/// The beginning of the library's block about a call.
#[repr(C)]
struct CalloutBlock {
    version: u32,
    number: u32,
    capture_top: u32,
    capture_last: u32,
    offsets: *const usize,
    mark: *const u8,
    subject: *const u8,
    subject_length: usize,
    start_match: usize,
    current_position: usize,
}

unsafe extern "C" {
    // `pcre2_sys` leaves it out.
    fn pcre2_set_callout_8(
        context: *mut pcre2_match_context_8,
        callout: Option<unsafe extern "C" fn(*const CalloutBlock, *mut c_void) -> c_int>,
        data: *mut c_void,
    ) -> c_int;
}

/// What a call finds of the calls before it.
struct Progress {
    position: usize,
    /// Units of work that are left to a match which the meter refuses nothing.
    left: Option<usize>,
    ended: Option<Error>,
}

/// The work of one match where nobody can end it, as under a latch for the filter of an index: some tenths of a second. It depends on
/// nothing but pattern and text, so that what is in an index is found to be in it again.
const UNBROKEN_UNITS_MAX: usize = 5_000_000;

/// Characters that are passed over in the time of a unit of work.
const CHARACTERS_A_UNIT: usize = 64;

unsafe extern "C" fn count(block: *const CalloutBlock, data: *mut c_void) -> c_int {
    // SAFETY: the block is the library's and lives as long as the call; `data` is what `matched` has set, which lives as
    // long as the match and which nobody else looks at meanwhile.
    let (position, progress) = unsafe { ((*block).current_position, &mut *data.cast::<Progress>()) };
    let moved = position.abs_diff(std::mem::replace(&mut progress.position, position));
    let units = 1 + moved / CHARACTERS_A_UNIT;
    if let Some(left) = &mut progress.left {
        match left.checked_sub(units) {
            Some(less) => *left = less,
            None => return PCRE2_ERROR_MATCHLIMIT,
        }
    }
    match meter::spend(units) {
        Ok(()) => 0,
        Err(ended) => {
            progress.ended = Some(ended);
            PCRE2_ERROR_CALLOUT
        }
    }
}

/// What one match needs of the library.
struct Match {
    data: NonNull<pcre2_match_data_8>,
    context: NonNull<pcre2_match_context_8>,
}

impl Match {
    fn new(groups: u32) -> Option<Match> {
        // SAFETY: neither takes anything but numbers, and null for the default allocator.
        let (data, context) = unsafe {
            (
                pcre2_match_data_create_8(groups + 1, ptr::null_mut()),
                pcre2_match_context_create_8(ptr::null_mut()),
            )
        };
        match (NonNull::new(data), NonNull::new(context)) {
            (Some(data), Some(context)) => {
                // SAFETY: the context is valid.
                unsafe { pcre2_set_heap_limit_8(context.as_ptr(), HEAP_KIB_MAX) };
                Some(Match { data, context })
            }
            _ => {
                // SAFETY: freed once; both take null.
                unsafe {
                    pcre2_match_data_free_8(data);
                    pcre2_match_context_free_8(context);
                }
                None
            }
        }
    }

    fn limit_steps(&self, limit: u32) {
        // SAFETY: the context is valid, and used by this thread alone.
        unsafe { pcre2_set_match_limit_8(self.context.as_ptr(), limit) };
    }
}

/// What the interpreter may keep to come back to, in units of 1,024 bytes. The library allocates it, and nobody counts it.
const HEAP_KIB_MAX: u32 = 32 * 1024;

impl Drop for Match {
    fn drop(&mut self) {
        // SAFETY: made by the library, and freed once.
        unsafe {
            pcre2_match_data_free_8(self.data.as_ptr());
            pcre2_match_context_free_8(self.context.as_ptr());
        }
    }
}

/// What the library says about an error, as `pcre2` shows it.
pub(crate) fn explained(code: c_int) -> String {
    let mut text = [0u8; 256];
    // SAFETY: the buffer is given with its length, and what is written ends in a NUL.
    let written = unsafe { pcre2_get_error_message_8(code, text.as_mut_ptr(), text.len()) };
    let said = String::from_utf8_lossy(&text[..usize::try_from(written).unwrap_or(0)]).into_owned();
    format!("PCRE2: error matching: {said}")
}

/// The limits of the turns in which a pattern without calls is matched; the last is the library's own.
const LIMITS: [u32; 8] = [78_125, 156_250, 312_500, 625_000, 1_250_000, 2_500_000, 5_000_000, 10_000_000];
/// Steps of the interpreter that take as long as a unit of work.
const INTERPRETED_A_UNIT: usize = 2;

impl Interruptible {
    /// Compiles a pattern that the library has accepted already, with options of i, m, s and x. `None`: it cannot be.
    pub(crate) fn compile(pattern: &str, options: &str, effort: Effort) -> Option<Interruptible> {
        let flags = options.chars().fold(PCRE2_UTF, |flags, c| {
            flags
                | match c {
                    'i' => PCRE2_CASELESS,
                    'm' => PCRE2_MULTILINE,
                    's' => PCRE2_DOTALL,
                    'x' => PCRE2_EXTENDED,
                    _ => 0,
                }
        });
        let compiled = |flags: u32| {
            let (mut error, mut at) = (0, 0);
            // SAFETY: the pattern is given with its length; a null context is the default one.
            let code = unsafe {
                pcre2_compile_8(pattern.as_ptr(), pattern.len(), flags, &mut error, &mut at, ptr::null_mut())
            };
            NonNull::new(code)
        };
        let (code, calls) = match compiled(flags | PCRE2_AUTO_CALLOUT) {
            Some(code) => (code, true),
            None => (compiled(flags)?, false),
        };
        let mut groups = 0u32;
        // SAFETY: the code is valid, and a count of groups is a u32. What cannot be compiled further is interpreted.
        unsafe {
            pcre2_pattern_info_8(code.as_ptr(), PCRE2_INFO_CAPTURECOUNT, (&raw mut groups).cast());
            if calls {
                pcre2_jit_compile_8(code.as_ptr(), PCRE2_JIT_COMPLETE);
            }
        }
        Some(Interruptible { code, groups, calls, limited: effort.endless })
    }

    /// Matches in a text from a place in it; within, what the library says when it gives up.
    ///
    /// # Errors
    /// Those of [`meter::spend`].
    pub(crate) fn find(&self, text: &str, from: usize) -> Result<std::result::Result<Option<Places>, c_int>> {
        if !text.is_char_boundary(from) {
            return Ok(Err(PCRE2_ERROR_BADUTFOFFSET));
        }
        let Some(needs) = Match::new(self.groups) else { return Ok(Err(PCRE2_ERROR_NOMEMORY)) };
        let code = match self.calls {
            true => match self.counted(&needs, text, from, 0)? {
                // The compiled code has less room for what it may come back to.
                PCRE2_ERROR_JIT_STACKLIMIT => self.counted(&needs, text, from, PCRE2_NO_JIT)?,
                code => code,
            },
            false => self.in_turns(&needs, text, from)?,
        };
        Ok(match code {
            PCRE2_ERROR_NOMATCH => Ok(None),
            code if code < 0 => Err(code),
            _ => Ok(Some(self.places(&needs))),
        })
    }

    fn counted(&self, needs: &Match, text: &str, from: usize, flags: u32) -> Result<c_int> {
        if !self.limited {
            needs.limit_steps(u32::MAX);
        }
        let left = (!meter::may_refuse()).then_some(UNBROKEN_UNITS_MAX);
        let mut progress = Progress { position: from, left, ended: None };
        // SAFETY: the progress outlives the match, and the context knows of it no longer.
        let code = unsafe {
            pcre2_set_callout_8(needs.context.as_ptr(), Some(count), (&raw mut progress).cast());
            let code = self.matched(needs, text, from, flags);
            pcre2_set_callout_8(needs.context.as_ptr(), None, ptr::null_mut());
            code
        };
        progress.ended.map_or(Ok(code), Err)
    }

    fn in_turns(&self, needs: &Match, text: &str, from: usize) -> Result<c_int> {
        for limit in LIMITS {
            meter::spend(limit as usize / INTERPRETED_A_UNIT)?;
            needs.limit_steps(limit);
            let code = self.matched(needs, text, from, PCRE2_NO_JIT);
            if code != PCRE2_ERROR_MATCHLIMIT {
                return Ok(code);
            }
        }
        Ok(PCRE2_ERROR_MATCHLIMIT)
    }

    fn matched(&self, needs: &Match, text: &str, from: usize, flags: u32) -> c_int {
        debug_assert!(text.is_char_boundary(from));
        // SAFETY: the text is given with its length and is UTF-8, as the place in it is one between characters; all else is
        // valid and used by this thread alone.
        unsafe {
            pcre2_match_8(
                self.code.as_ptr(),
                text.as_ptr(),
                text.len(),
                from,
                flags | PCRE2_NO_UTF_CHECK,
                needs.data.as_ptr(),
                needs.context.as_ptr(),
            )
        }
    }

    fn places(&self, needs: &Match) -> Places {
        // SAFETY: after a match the vector has a pair for the whole and each group, as many as the data were made for.
        let pairs = unsafe {
            let vector = pcre2_get_ovector_pointer_8(needs.data.as_ptr());
            std::slice::from_raw_parts(vector, 2 * (self.groups as usize + 1))
        };
        let place = |pair: &[usize]| (pair[0] != usize::MAX).then_some((pair[0], pair[1]));
        pairs.chunks_exact(2).map(place).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::meter::{Overseer, Oversight, Slice, oversee, within};
    use pcre2::bytes::RegexBuilder;
    use std::sync::Arc;

    struct Patience(u32);
    impl Overseer for Patience {
        fn check(&self, slice: &mut Slice) -> Result<()> {
            match slice.quanta > self.0 {
                true => Err(Error::new(50, "late")),
                false => Ok(()),
            }
        }
    }

    #[test]
    fn what_takes_long_can_be_interrupted() {
        // What a match needs is there, or the library would not begin; but not in the order that it needs.
        let text = format!("{}dcx", "ab".repeat(100_000));
        let large = format!("a.*b.*c.*d|{}", "x[^y]?z".repeat(2200));
        for pattern in ["a.*b.*c.*d", "(a|b|ab)*c", "(aba?)*c", "(.*)\\1x", "(?s)a.*?b.*?c.*?d", &large] {
            assert!(Effort::of(pattern, "").is_long(text.len()), "{pattern}");
            let one = Interruptible::compile(pattern, "", Effort::of(pattern, "")).unwrap();
            let ended = within(&mut Oversight::default(), || {
                oversee(Arc::new(Patience(20)));
                one.find(&text, 0)
            });
            assert_eq!(ended.err().map(|e| e.code), Some(50), "{pattern}");
        }
    }

    #[test]
    fn matches_are_those_of_the_uninterrupted() {
        let texts = [
            "",
            "abab",
            "aXb cXd",
            "a\nb",
            "\u{e4}b\u{e4}",
            "foo@example.org, bar@example.org",
            "aaab",
            "ABab",
        ];
        for (pattern, options) in [
            ("a.*b", ""),
            ("^b", "m"),
            ("(a)|(b)", ""),
            ("a b", "x"),
            ("A", "i"),
            ("a.b", "s"),
            ("(\\w+)@(\\w+)\\.org", ""),
            ("(?<=a)b", ""),
            ("(a+)+b", ""),
            ("\u{c4}", "i"),
            ("x*", ""),
            ("(a)?(b)", ""),
            ("b(?=\u{e4})", ""),
        ] {
            let one = Interruptible::compile(pattern, options, Effort::of(pattern, options)).unwrap();
            let has = |c: char| options.contains(c);
            let mut plain = RegexBuilder::new();
            plain.utf(true).caseless(has('i')).multi_line(has('m')).dotall(has('s')).extended(has('x'));
            let plain = plain.build(pattern).unwrap();
            for text in texts {
                let mut found = plain.capture_locations();
                let expected = plain.captures_read(&mut found, text.as_bytes()).unwrap();
                let expected = expected.map(|_| (0..found.len()).map(|i| found.get(i)).collect::<Places>());
                assert_eq!(one.find(text, 0).unwrap(), Ok(expected), "{pattern} {text}");
            }
        }
    }

    #[test]
    fn what_cannot_be_estimated_in_a_short_text_is_bounded() {
        let nested = Effort::of(&format!("{}a{}", "(".repeat(240), ")*".repeat(240)), "");
        assert!(!nested.is_long(20));
        assert!(nested.units(20) < 2000);
    }

    #[test]
    fn a_repeated_group_with_an_optional_item_may_take_long() {
        for pattern in ["(aa?)*[bc]", "(?:a?b?)+$", "(?:(x?)y)*z"] {
            assert!(Effort::of(pattern, "").is_long(40), "{pattern}");
        }
    }

    #[test]
    fn parentheses_that_are_text_open_and_close_nothing() {
        for (pattern, options) in [
            ("(?:[)]?a+)+$", ""),
            ("(?:[^)]a+)+$", ""),
            ("(?:[])]a+)+$", ""),
            ("(?:[[:alpha:])]a+)+$", ""),
            ("(?:[\\])]a+)+$", ""),
            ("(?:\\Q)\\Ea+)+$", ""),
            ("(?:\\Q\\)\\Ea+)+$", ""),
            ("(?:\\c)a+)+$", ""),
            ("(a+(?#())+$", ""),
            ("(a+)(?#()+$", ""),
            ("(a+)\\E+$", ""),
            ("(a+)\\Q\\E+$", ""),
            ("(a+) +$", "x"),
            ("(a+) # )\n +$", "x"),
            ("(a+ # (\n)+$", "x"),
            ("(?x)(a+) +$", ""),
            ("(?i-x:(a+) +)$", ""),
        ] {
            assert!(Effort::of(pattern, options).endless, "{pattern}");
        }
        for (pattern, options) in [
            ("(a+) +$", ""),
            ("(a+)[+]$", ""),
            ("[(]a+[)]+$", ""),
            ("\\Q(a+)+\\E", ""),
            ("(a+)\\Qb\\E+$", ""),
            ("(?<x>a+)b+$", ""),
            ("(?#(a+)+$", ""),
            ("# (a+)+$", "x"),
        ] {
            assert!(!Effort::of(pattern, options).endless, "{pattern}");
        }
    }

    #[test]
    fn what_nobody_can_end_gives_up_after_a_fixed_number_of_calls() {
        let text = format!("{}dcx", "ab".repeat(50_000));
        let pattern = "a.*b.*c.*d";
        let one = Interruptible::compile(pattern, "", Effort::of(pattern, "")).unwrap();
        assert_eq!(one.find(&text, 0).unwrap(), Err(PCRE2_ERROR_MATCHLIMIT), "outside of any command");
        let unbroken = within(&mut Oversight::default(), || {
            oversee(Arc::new(Patience(0)));
            meter::unbroken(|| one.find(&text, 0))
        });
        assert_eq!(unbroken.unwrap(), Err(PCRE2_ERROR_MATCHLIMIT));
    }

    #[test]
    fn a_match_begins_at_no_place_within_a_character() {
        let one = Interruptible::compile("a", "", Effort::of("a", "")).unwrap();
        assert_eq!(one.find("\u{e9}a", 1).unwrap(), Err(PCRE2_ERROR_BADUTFOFFSET));
        assert_eq!(one.find("\u{e9}a", 2).unwrap(), Ok(Some(vec![Some((2, 3))])));
    }

    #[test]
    fn what_is_simple_is_matched_without_interruption() {
        let many = format!("^({})$", (0..900).map(|i| format!("name{i}")).collect::<Vec<_>>().join("|"));
        for (pattern, bytes) in [
            (many.as_str(), 100),
            ("(?P<y>\\d+)-(?<m>\\d+)", 100),
            ("abc", 16 << 20),
            ("^abc.*", 1 << 20),
            ("foo.*bar", 1000),
            ("^(foo|bar|baz)$", 10_000),
        ] {
            assert!(!Effort::of(pattern, "").is_long(bytes), "{pattern}");
        }
    }
}
