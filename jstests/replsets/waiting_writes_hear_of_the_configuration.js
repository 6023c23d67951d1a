/**
 * A write that waits for members is told at once when a new configuration has too few of them, or no more the mode that it names.
 * It fails if such a write waits until its time is over, or without end.
 *
 * @tags: [requires_own_servers]
 */
import {hold, insert, reconfig, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3, {members: {0: {tags: {dc: "east"}, priority: 2}, 1: {tags: {dc: "west"}}}, settings: {getLastErrorModes: {spread: {dc: 2}}}});
const primary = rst.getPrimary();
rst.getSecondaries().forEach(hold);
function waiting(id, w) {
    const write = (host, id, w) => {
        const reply = new Mongo(host).getDB("test").runCommand({insert: "c", documents: [{_id: id}], writeConcern: {w: w}});
        const told = Object.assign({_id: id}, reply.writeConcernError);
        assert.commandWorked(new Mongo(host).getDB("test").told.insert(told, {writeConcern: {w: 1}}));
    };
    return startParallelShell(funWithArgs(write, primary.host, id, w), primary.port, true);
}
const shells = [waiting("by mode", "spread"), waiting("by number", 3)];
assert.soon(() => primary.getDB("test").c.find().itcount() === 2);
const change = (config) => {
    config.settings.getLastErrorModes = {};
    config.members.splice(2, 1);
};

assert.commandWorked(reconfig(rst, change, {force: true}));
shells.forEach((ended) => ended());
const told = (id) => primary.getDB("test").told.findOne({_id: id}).code;
assert.eq(ErrorCodes.UnknownReplWriteConcern, told("by mode"));
assert.eq(ErrorCodes.UnsatisfiableWriteConcern, told("by number"));
rst.stopSet(undefined, false, {skipCheckDBHashes: true});
