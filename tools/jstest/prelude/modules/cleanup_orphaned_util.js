// Orphans of one shard.
export const CleanupOrphanedUtil = {
    // Waits until the shard has deleted every range that it no longer owns.
    cleanupOrphaned(shard, ns) {
        assert.commandWorked(shard.adminCommand({ cleanupOrphaned: ns }));
    },
};
