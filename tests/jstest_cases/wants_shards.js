/**
 * Skipped where there are no shards.
 * @tags: [
 *   requires_sharding,  # for the sake of it, [and] this
 *   slow_by_tag,
 * ]
 */
assert.eq("isdbgrid", db.hello().msg);
