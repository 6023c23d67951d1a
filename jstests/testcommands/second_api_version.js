/**
 * Drivers' tests of the stable API use commands of a second version, and commands that are deprecated.
 * Fails when the version is taken unasked, or a command counts as a member or as deprecated of the wrong version.
 *
 * @tags: [requires_own_servers]
 */
const server = MongoRunner.runMongod({setParameter: {acceptApiVersion2: true}});
const db = server.getDB("test");
const run = (name, apiVersion, how) => db.runCommand(Object.assign({[name]: 1, apiVersion}, how));
const commands = {
    testVersion2: {members: ["2"]},
    testVersions1And2: {members: ["1", "2"]},
    testRemoval: {members: ["1"]},
    testDeprecation: {members: ["1"], deprecated: "1"},
    testDeprecationInVersion2: {members: ["1", "2"], deprecated: "2"},
};
const listed = assert.commandWorked(db.runCommand({listCommands: 1})).commands;
for (const [name, {members, deprecated}] of Object.entries(commands)) {
    for (const version of ["1", "2"]) {
        assert.commandWorked(run(name, version));
        const strict = run(name, version, {apiStrict: true});
        const warned = run(name, version, {apiDeprecationErrors: true});
        assert.eq(members.includes(version) ? 1 : 0, strict.ok, `${name} ${version}`);
        assert.eq(version == deprecated ? 0 : 1, warned.ok, `${name} ${version}`);
        assert.contains(strict.code, [undefined, ErrorCodes.APIStrictError]);
        if (!warned.ok) {
            assert.commandFailedWithCode(warned, ErrorCodes.APIDeprecationError);
            assert(warned.errmsg.includes(`the command ${name} is deprecated in API Version ${version}`), warned.errmsg);
        }
    }
    assert.eq(members, listed[name].apiVersions);
    assert.eq(deprecated ? [deprecated] : [], listed[name].deprecatedApiVersions);
}
assert.commandFailedWithCode(run("ping", "3"), ErrorCodes.APIVersionError);
MongoRunner.stopMongod(server);
