export const MongoRunner = globalThis.MongoRunner;
