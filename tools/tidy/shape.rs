//! Every file says at its head what it is for, and no function is longer than a screen or two.

use crate::sources;

const LINES_MAX: usize = 80;

/// The name and the length in lines of every function, from its signature to its closing brace.
fn functions(text: &str) -> Vec<(&str, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut out = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let indent = &line[..line.len() - line.trim_start().len()];
        let own = |line: &&str| line.strip_prefix(indent).is_some_and(|rest| !rest.starts_with(' '));
        // The signature ends with the line that opens the body, or does without one.
        let head = lines[at..].iter().position(|l| own(l) && l.ends_with(['{', ';', '}']));
        let Some(head) = head.map(|n| at + n) else { continue };
        let closes = |line: &&str| line.strip_prefix(indent) == Some("}");
        let end = match lines[head].ends_with('{') {
            true => lines[head..].iter().position(closes).map_or(head, |n| head + n),
            false => head,
        };
        out.push((name, end - at + 1));
    }
    out
}

/// The function that this line begins.
fn function_name(line: &str) -> Option<&str> {
    const BEFORE: [&str; 7] =
        ["pub ", "pub(crate) ", "pub(super) ", "const ", "async ", "unsafe ", "extern \"C\" "];
    let mut rest = line.trim_start();
    while let Some(shorter) = BEFORE.iter().find_map(|word| rest.strip_prefix(word)) {
        rest = shorter;
    }
    // A macro's function has no name yet.
    rest.strip_prefix("fn ").map(crate::word).filter(|name| !name.is_empty())
}

#[test]
fn lengths_are_counted() {
    let text = "impl X {\n    fn one(&self) -> u8 { 1 }\n    pub async fn two(\n        a: u8,\n    ) -> u8 {\n        a\n    }\n    fn no_body();\n}\n";
    assert_eq!(functions(text), [("one", 1), ("two", 5), ("no_body", 1)]);
}

#[test]
fn every_file_has_a_head_comment() {
    let without: Vec<String> = sources()
        .into_iter()
        .filter(|file| !file.text.lines().take(3).any(|line| line.starts_with("//!")))
        .map(|file| file.path)
        .collect();
    assert!(without.is_empty(), "files that do not say what they are for: {without:#?}");
}

#[test]
fn no_function_is_longer_than_80_lines() {
    let files = sources();
    let long: Vec<String> = files
        .iter()
        .flat_map(|file| functions(&file.text).into_iter().map(|(name, lines)| (&file.path, name, lines)))
        .filter(|(_, _, lines)| *lines > LINES_MAX)
        .map(|(path, name, lines)| format!("{path}: {name} has {lines} lines"))
        .collect();
    assert!(long.is_empty(), "divide these, by idea: {long:#?}");
}
