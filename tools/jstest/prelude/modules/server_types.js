// What kind of server a database leads to.
import { FixtureHelpers } from "jstests/libs/fixture_helpers.js";

export const isMongos = (db) => FixtureHelpers.isMongos(db);
export const isMongod = (db) => !FixtureHelpers.isMongos(db);
export const isReplSet = (db) => FixtureHelpers.isReplSet(db);
export const isWiredTiger = () => true;
export const isEphemeral = () => false;
export const supportsDocumentLevelConcurrency = () => true;
