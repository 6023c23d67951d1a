// Lines of a server's log, as JSON documents.
function parsed(line) {
    try {
        return JSON.parse(line);
    } catch (error) {
        return {};
    }
}
const matches = (entry, fields) => Object.entries(fields).every(([name, wanted]) => {
    if (wanted instanceof RegExp) return wanted.test(String(entry[name]));
    if (wanted !== null && typeof wanted === "object") return entry[name] !== undefined && matches(entry[name], wanted);
    return entry[name] === wanted;
});
const deep = (entry, fields) => Object.entries(fields).every(([name, wanted]) => matches(entry, { [name]: wanted }) || (entry.attr && matches(entry.attr, { [name]: wanted })));

// The lines whose members, or members of `attr`, are those of `fields`.
export function* iterateMatchingLogLines(lines, fields) {
    for (const line of lines) {
        if (deep(parsed(line), fields)) yield line;
    }
}
export const findMatchingLogLines = iterateMatchingLogLines;
export function findMatchingLogLine(lines, fields) {
    for (const line of iterateMatchingLogLines(lines, fields)) return line;
    return null;
}
