/**
 * Requests that take long end with their time limit.
 */

/**
 * Runs a command with a limit; with `whole` it is to come to its end. It may fail with the limit's code, or one of `codes`.
 */
export function endsInTime(db, command, {whole = false, codes = []} = {}) {
    const begun = Date.now();
    const reply = db.runCommand(Object.assign({}, command, {maxTimeMS: whole ? 60000 : 500}));
    const took = Date.now() - begun;
    const shown = tojsononeline(command).substring(0, 120);
    if (whole || reply.ok) {
        assert.commandWorkedIgnoringWriteErrors(reply, shown);
    } else {
        assert.commandFailedWithCode(reply, [ErrorCodes.MaxTimeMSExpired, ...codes], shown);
    }
    assert.lt(took, whole ? 60000 : 15000, shown);
    return reply;
}
