//! The tags a test file declares.
//!
//! A header is a comment with a flow list as in YAML, over as many lines as it likes, with comments in it:
//!
//! ```text
//! /**
//!  * What is tested.
//!  * @tags: [
//!  *   requires_sharding,   # a reason
//!  *   uses_transactions,
//!  * ]
//!  */
//! ```
//!
//! Line comments (`// @tags: [a, b]`) do as well. Several lists add up.

/// The tags of a file's text, in order, each once. An error says what is wrong with the header.
pub(super) fn tags(text: &str) -> Result<Vec<String>, String> {
    let mut found: Vec<String> = Vec::new();
    let mut lines = Comments::new(text);
    while let Some(line) = lines.next() {
        let Some(at) = line.find("@tags:") else { continue };
        for tag in list(&line[at + "@tags:".len()..], &mut lines)? {
            if !found.contains(&tag) {
                found.push(tag);
            }
        }
    }
    Ok(found)
}

/// One list, which begins in `first` and may go on over the following comment lines.
fn list<'a>(first: &'a str, lines: &mut impl Iterator<Item = &'a str>) -> Result<Vec<String>, String> {
    let mut text = uncommented(first).trim().to_string();
    while text.is_empty() {
        let line = lines.next().ok_or("@tags: has no list after it")?;
        text = uncommented(line).trim().to_string();
    }
    if !text.starts_with('[') {
        return Err(format!("@tags: wants a list in brackets, found: {text}"));
    }
    while !text.contains(']') {
        let line = lines.next().ok_or("the list after @tags: is not closed")?;
        text.push(' ');
        text.push_str(uncommented(line));
    }
    let inside = &text[1..text.find(']').unwrap_or(text.len())];
    inside.split(',').map(str::trim).filter(|t| !t.is_empty()).map(tag).collect()
}

fn tag(text: &str) -> Result<String, String> {
    let bare = text.trim_matches(|c| c == '"' || c == '\'');
    let fits = |c: char| c.is_alphanumeric() || "_-.:$".contains(c);
    match !bare.is_empty() && bare.chars().all(fits) {
        true => Ok(bare.to_string()),
        false => Err(format!("@tags: has something that is no tag: {text}")),
    }
}

/// A line without its YAML comment, which begins at a `#` that follows a space or nothing.
fn uncommented(line: &str) -> &str {
    let begins = |at: &usize| line[..*at].chars().next_back().is_none_or(char::is_whitespace);
    let comment = line.match_indices('#').map(|(at, _)| at).find(begins);
    &line[..comment.unwrap_or(line.len())]
}

/// The lines of a text that are comments, without their decoration. Only comments that begin a line count, so that a
/// string which looks like a header is not one.
struct Comments<'a> {
    lines: std::str::Lines<'a>,
    in_block: bool,
}

impl<'a> Comments<'a> {
    fn new(text: &'a str) -> Comments<'a> {
        Comments { lines: text.trim_start_matches('\u{feff}').lines(), in_block: false }
    }
}

impl<'a> Iterator for Comments<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        loop {
            let line = self.lines.next()?.trim_start();
            if self.in_block {
                let (inside, closed) = until_close(line);
                self.in_block = !closed;
                let inside = inside.strip_prefix('*').unwrap_or(inside);
                return Some(inside);
            }
            if let Some(rest) = line.strip_prefix("//") {
                return Some(rest);
            }
            if let Some(rest) = line.strip_prefix("/*") {
                let (inside, closed) = until_close(rest);
                self.in_block = !closed;
                return Some(inside.trim_start_matches('*'));
            }
        }
    }
}

fn until_close(line: &str) -> (&str, bool) {
    line.split_once("*/").map_or((line, false), |(inside, _)| (inside, true))
}

#[cfg(test)]
mod tests {
    use super::tags;

    fn ok(text: &str) -> Vec<String> {
        tags(text).unwrap()
    }

    #[test]
    fn one_line_in_a_block() {
        assert_eq!(ok("/* @tags: [a, b_c] */\nx"), ["a", "b_c"]);
        assert_eq!(ok("/**\n * Words.\n * @tags: [requires_fcv_80]\n */"), ["requires_fcv_80"]);
    }

    #[test]
    fn many_lines_with_comments_and_a_trailing_comma() {
        let text = "/**\n * @tags: [\n *   # why, with a ] and, commas\n *   a,  # because\n *   'b',\n *\n *   \"c\",\n * ]\n */\n";
        assert_eq!(ok(text), ["a", "b", "c"]);
    }

    #[test]
    fn a_list_may_begin_on_the_next_line_and_lack_stars() {
        assert_eq!(ok("/*\n@tags:\n  [a,\n  b]\n*/"), ["a", "b"]);
    }

    #[test]
    fn line_comments_and_several_lists_add_up() {
        assert_eq!(ok("// @tags: [a,\n//  b]\n/* @tags: [b, c] */"), ["a", "b", "c"]);
    }

    #[test]
    fn nothing_outside_of_comments_counts() {
        assert_eq!(ok("const s = '@tags: [a]';\nprint('/* @tags: [b] */');"), Vec::<String>::new());
        assert_eq!(ok(""), Vec::<String>::new());
    }

    #[test]
    fn what_is_no_list_is_refused() {
        assert!(tags("// @tags: a, b").unwrap_err().contains("brackets"));
        assert!(tags("/* @tags: [a,\n b").unwrap_err().contains("not closed"));
        assert!(tags("// @tags: [a b]").unwrap_err().contains("no tag"));
        assert!(tags("// @tags:").unwrap_err().contains("no list"));
    }
}
