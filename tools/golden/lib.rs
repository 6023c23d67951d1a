//! Golden scripts: a file shows one behaviour, with a sentence of why, and a test runs it.
//!
//! ```text
//! # Why this is so.
//! something is told
//! something is asked
//! ---
//! the answers, up to the next empty line
//! ```
//! `UPDATE_SCRIPTS=1 cargo test -p CRATE scripts` writes the answers in place; the difference is for a reader to judge.

use std::path::Path;

/// Runs every script of a folder. `world` makes what runs the lines of one script: it is handed the words of each and the
/// answer so far.
///
/// # Panics
/// When an answer is another than written, or there are fewer scripts than there should be.
pub fn check<W>(folder: impl AsRef<Path>, fewest: usize, mut world: impl FnMut() -> W)
where
    W: FnMut(&str, &mut String),
{
    let entries = std::fs::read_dir(&folder).expect("a folder of scripts").flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    assert!(paths.len() >= fewest, "scripts are missing: {} of {fewest}", paths.len());
    let update = std::env::var_os("UPDATE_SCRIPTS").is_some();
    let mut wrong = Vec::new();
    for path in paths {
        let written = std::fs::read_to_string(&path).expect("a script");
        assert!(written.starts_with('#'), "{} does not say why", path.display());
        let answered = answered(&written, world());
        match written == answered {
            true => {}
            false if update => std::fs::write(&path, answered).expect("written"),
            false => wrong.push(format!("{}\n{answered}", path.display())),
        }
    }
    assert!(wrong.is_empty(), "other answers than written:\n{}", wrong.join("\n"));
}

/// The script with the answers that its lines give.
fn answered(script: &str, mut run: impl FnMut(&str, &mut String)) -> String {
    let (mut out, mut answer) = (String::new(), String::new());
    let mut skipping = false;
    for line in script.lines() {
        if line == "---" {
            let said = if answer.is_empty() { "nothing\n" } else { &answer };
            out.push_str("---\n");
            out.push_str(said);
            answer.clear();
            skipping = true;
        } else if line.trim().is_empty() {
            skipping = false;
            out.push('\n');
        } else if !skipping {
            out.push_str(line);
            out.push('\n');
            if !line.starts_with('#') {
                run(line, &mut answer);
            }
        }
    }
    assert!(answer.is_empty(), "a question without ---: {answer}");
    out
}
