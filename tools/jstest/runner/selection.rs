//! From what the command line or a suite says to the files it means.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// How deep lists may name lists.
const LISTS_DEEP_MAX: usize = 8;

/// The files that `patterns` mean, absolute, each once, in order. A name that is no file is an error; a glob that
/// matches nothing is not, and is answered in the second part.
pub(super) fn files(patterns: &[String], root: &Path) -> Result<(Vec<PathBuf>, Vec<String>), String> {
    let mut found = Found { root, files: Vec::new(), seen: HashSet::new(), empty: Vec::new() };
    for pattern in patterns {
        found.add(pattern, 0)?;
    }
    Ok((found.files, found.empty))
}

struct Found<'a> {
    root: &'a Path,
    files: Vec<PathBuf>,
    seen: HashSet<PathBuf>,
    empty: Vec<String>,
}

impl Found<'_> {
    fn add(&mut self, pattern: &str, depth: usize) -> Result<(), String> {
        if let Some(list) = pattern.strip_prefix('@') {
            return self.add_list(list, depth);
        }
        let Some(path) = self.existing(pattern) else { return self.add_glob(pattern) };
        match path.is_dir() {
            true => self.add_directory(&path, pattern),
            false => self.push(path),
        }
        Ok(())
    }

    fn add_directory(&mut self, directory: &Path, named: &str) {
        let mut files = Vec::new();
        scripts_below(directory, &mut files);
        if files.is_empty() {
            self.empty.push(named.to_string());
        }
        files.sort();
        files.into_iter().for_each(|path| self.push(path));
    }

    fn add_list(&mut self, list: &str, depth: usize) -> Result<(), String> {
        if depth >= LISTS_DEEP_MAX {
            return Err(format!("@{list}: lists name lists more than {LISTS_DEEP_MAX} deep"));
        }
        let path = self.existing(list).ok_or_else(|| format!("@{list}: there is no such file"))?;
        let bytes = std::fs::read(&path).map_err(|e| format!("@{list}: {e}"))?;
        for line in String::from_utf8_lossy(&bytes).lines() {
            let line = line.split_once('#').map_or(line, |(before, _)| before).trim();
            if !line.is_empty() {
                self.add(line, depth + 1).map_err(|e| format!("@{list}: {e}"))?;
            }
        }
        Ok(())
    }

    fn add_glob(&mut self, pattern: &str) -> Result<(), String> {
        if !pattern.contains(['*', '?', '[']) {
            return Err(format!("{pattern}: there is no such file"));
        }
        let before = self.files.len();
        for base in [PathBuf::from(pattern), self.root.join(pattern)] {
            let paths = glob::glob(&base.to_string_lossy()).map_err(|e| format!("{pattern}: {e}"))?;
            let files = paths.filter_map(Result::ok).filter(|p| p.is_file());
            files.for_each(|p| self.push(p));
            if self.files.len() > before {
                return Ok(());
            }
        }
        self.empty.push(pattern.to_string());
        Ok(())
    }

    /// A name as it is, or else from the root.
    fn existing(&self, name: &str) -> Option<PathBuf> {
        [PathBuf::from(name), self.root.join(name)].into_iter().find(|p| p.exists())
    }

    fn push(&mut self, path: PathBuf) {
        let path = path.canonicalize().unwrap_or(path);
        if self.seen.insert(path.clone()) {
            self.files.push(path);
        }
    }
}

/// All `*.js` files of a directory and those in it. Links to directories are not followed, as they may lead in circles.
fn scripts_below(directory: &Path, files: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    for entry in entries {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => scripts_below(&path, files),
            Ok(_) if path.extension().is_some_and(|e| e == "js") && path.is_file() => files.push(path),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(names: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for name in names {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        dir
    }

    fn names(dir: &tempfile::TempDir, patterns: &[&str]) -> Result<Vec<String>, String> {
        let patterns: Vec<String> = patterns.iter().map(|p| p.to_string()).collect();
        let root = dir.path().canonicalize().unwrap();
        let (files, _) = files(&patterns, &root)?;
        Ok(files.iter().map(|f| f.strip_prefix(&root).unwrap().to_string_lossy().into_owned()).collect())
    }

    #[test]
    fn files_globs_and_directories_each_file_once() {
        let dir = tree(&["picked/b.js", "picked/a.js", "picked/deep/c.js", "picked/readme.md"]);
        assert_eq!(names(&dir, &["picked/b.js", "picked/*.js"]).unwrap(), ["picked/b.js", "picked/a.js"]);
        assert_eq!(names(&dir, &["picked"]).unwrap(), ["picked/a.js", "picked/b.js", "picked/deep/c.js"]);
        assert_eq!(names(&dir, &["**/c.js"]).unwrap(), ["picked/deep/c.js"]);
    }

    #[test]
    fn lists_hold_paths_globs_lists_and_comments() {
        let dir = tree(&["picked/a.js", "picked/b.js", "picked/c.js"]);
        std::fs::write(dir.path().join("one"), "# words\n\npicked/c.js  # why\n@two\n").unwrap();
        std::fs::write(dir.path().join("two"), "picked/[ab].js\r\n").unwrap();
        assert_eq!(names(&dir, &["@one"]).unwrap(), ["picked/c.js", "picked/a.js", "picked/b.js"]);
    }

    #[test]
    fn what_does_not_exist_is_an_error_and_an_empty_glob_is_not() {
        let dir = tree(&["a.js"]);
        assert!(names(&dir, &["nowhere.js"]).unwrap_err().contains("nowhere.js: there is no such file"));
        assert!(names(&dir, &["@nowhere"]).is_err());
        assert_eq!(names(&dir, &["nowhere/*.js"]).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_list_that_names_itself_ends() {
        let dir = tree(&[]);
        std::fs::write(dir.path().join("loop"), "@loop\n").unwrap();
        assert!(names(&dir, &["@loop"]).unwrap_err().contains("deep"));
    }
}
