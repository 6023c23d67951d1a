// `checkLog`: what a server has logged, by text or by the members of its lines.
//
// A line matches a message id and attributes. An attribute is given as a value, a pattern for its text, or a function that
// judges it; attributes that are not given do not matter.

(function () {
    const TIMEOUT_MS = 5 * 60 * 1000;
    const POLL_MS = 20;

    const adminOf = (conn) => (typeof conn.getSiblingDB === "function" ? conn.getSiblingDB("admin") : conn.getDB("admin"));

    // The lines that the server still keeps, oldest first; null when it cannot be asked.
    function getGlobalLog(conn) {
        let reply;
        try {
            reply = adminOf(conn).runCommand({ getLog: "global" });
        } catch (error) {
            return null;
        }
        return assert.commandWorked(reply).log;
    }

    const parsed = (line) => {
        try {
            return JSON.parse(line);
        } catch (error) {
            return {};
        }
    };
    function fits(found, wanted, relaxed) {
        if (typeof wanted === "function") return Boolean(wanted(found));
        if (wanted instanceof RegExp) return wanted.test(String(found));
        if (found === undefined) return false;
        const compare = relaxed ? bsonUnorderedFieldsCompare : bsonWoCompare;
        return compare({ v: found }, { v: JSON.parse(JSON.stringify(wanted)) }) === 0;
    }
    function matches(line, id, attrs, severity, relaxed) {
        const entry = parsed(line);
        if (entry.id !== Number(id) || (severity && entry.s !== severity)) return false;
        return Object.entries(attrs || {}).every(([name, wanted]) => fits((entry.attr || {})[name], wanted, relaxed));
    }
    const lines = (conn) => getGlobalLog(conn) || [];
    const countText = (conn, text) => lines(conn).filter((line) => (text instanceof RegExp ? text.test(line) : line.includes(text))).length;
    const countJson = (conn, id, attrs, severity, relaxed) => lines(conn).filter((line) => matches(line, id, attrs, severity, relaxed)).length;

    function soon(conn, condition, what, timeout, interval) {
        assert.soon(condition, () => `no line in the log of ${conn.host || conn}: ${what}`, timeout ?? TIMEOUT_MS, interval ?? POLL_MS);
    }
    const same = (found, wanted) => found === wanted;
    const spelled = (id, attrs) => `${id} ${tojsononeline(attrs || {})}`;

    const checkLog = {
        getGlobalLog,
        getLogMessage: (conn, text) => lines(conn).find((line) => line.includes(text)) ?? null,
        getFilteredLogMessages: (conn, id, attrs, severity, relaxed) =>
            lines(conn).filter((line) => matches(line, id, attrs, severity, relaxed)).map(parsed),
        checkContainsOnce: (conn, text) => countText(conn, text) > 0,
        checkContainsOnceJson: (conn, id, attrs, severity, relaxed) => countJson(conn, id, attrs, severity, relaxed) > 0,
        checkContainsOnceJsonStringMatch: (conn, id, attr, text) =>
            checkLog.checkContainsOnceJson(conn, id, { [attr]: (value) => String(value).includes(text) }),
        checkContainsWithCountJson: (conn, id, attrs, count, severity, relaxed, compare = same) =>
            compare(countJson(conn, id, attrs, severity, relaxed), count),
        checkContainsWithAtLeastCountJson: (conn, id, attrs, count, severity, relaxed) =>
            countJson(conn, id, attrs, severity, relaxed) >= count,
        contains: (conn, text, timeout, interval) =>
            soon(conn, () => countText(conn, text) > 0, String(text), timeout, interval),
        containsJson: (conn, id, attrs, timeout) =>
            soon(conn, () => countJson(conn, id, attrs) > 0, spelled(id, attrs), timeout),
        containsRelaxedJson: (conn, id, attrs, timeout) =>
            soon(conn, () => countJson(conn, id, attrs, undefined, true) > 0, spelled(id, attrs), timeout),
        containsLog: (conn, id, attrs, timeout) => checkLog.containsJson(conn, id, attrs, timeout),
        containsWithCount: (conn, text, count, timeout) =>
            soon(conn, () => countText(conn, text) === count, `${text}, ${count} times`, timeout),
        containsWithAtLeastCount: (conn, text, count, timeout) =>
            soon(conn, () => countText(conn, text) >= count, `${text}, at least ${count} times`, timeout),
        // A document as the servers write it into a line, for `contains`.
        formatAsJsonLogLine: (value) => JSON.stringify(value),
        formatAsLogLine: (value) => tojsononeline(value),
    };
    globalThis.checkLog = checkLog;
})();
