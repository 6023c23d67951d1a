// The servers say that their storage engine is the usual one.
export const storageEngineIsWiredTiger = () => true;
export const storageEngineIsWiredTigerOrInMemory = () => true;
