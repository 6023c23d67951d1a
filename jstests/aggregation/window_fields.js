// $setWindowFields, $fill and $densify over a collection: partitions, frames by position and by value, dates with units,
// and the stages behind them, wherever the documents lie.
(function () {
    "use strict";
    const coll = db.window_fields;
    coll.drop();
    const day = (n) => new Date(Date.UTC(2024, 0, n));
    for (let i = 0; i < 40; i++) {
        coll.insert({_id: i, k: i % 4, day: day(1 + Math.floor(i / 4) * 2), v: i});
    }
    const byDay = (output) => ({$setWindowFields: {partitionBy: "$k", sortBy: {day: 1}, output: output}});

    // A running total is the sum of all documents of the partition up to this one.
    const totals = coll
        .aggregate([
            byDay({total: {$sum: "$v", window: {documents: ["unbounded", "current"]}}}),
            {$sort: {_id: 1}},
        ])
        .toArray();
    assert.eq(40, totals.length);
    totals.forEach(function (d) {
        let sum = 0;
        for (let i = d.k; i <= d._id; i += 4) sum += i;
        assert.eq(sum, d.total, tojson(d));
    });

    // Days are two apart: within three days there are the neighbours on both sides.
    const near = coll
        .aggregate([
            byDay({n: {$count: {}, window: {range: [-3, 3], unit: "day"}}}),
            {$group: {_id: "$n", documents: {$sum: 1}}},
            {$sort: {_id: 1}},
        ])
        .toArray();
    assert.eq([{_id: 2, documents: 8}, {_id: 3, documents: 32}], near);

    // What follows the stage sees its fields.
    assert.eq(
        4,
        coll.aggregate([byDay({r: {$documentNumber: {}}}), {$match: {r: 1}}]).itcount(),
    );

    // Every second day is missing in each partition.
    const dense = coll
        .aggregate([
            {
                $densify: {
                    field: "day",
                    partitionByFields: ["k"],
                    range: {step: 1, unit: "day", bounds: "partition"},
                },
            },
            {$fill: {partitionBy: "$k", sortBy: {day: 1}, output: {v: {method: "linear"}}}},
            {$match: {_id: {$exists: false}}},
            {$group: {_id: "$k", made: {$sum: 1}, sum: {$sum: "$v"}}},
            {$sort: {_id: 1}},
        ])
        .toArray();
    // The made values are the means of neighbours: k+2, k+6, ... k+34.
    assert.eq(
        [0, 1, 2, 3].map((k) => ({_id: k, made: 9, sum: 9 * k + 162})),
        dense,
    );

    // A value that is left alone by those before it deviates from nothing, which is a whole zero where values leave the frame.
    const deviations = (from) => coll.aggregate([
        byDay({d: {$stdDevPop: "$v", window: {documents: [from, "current"]}}}),
        {$match: {_id: {$in: [0, 4]}}},
        {$sort: {_id: 1}},
        {$project: {_id: 0, d: 1, is: {$type: "$d"}}},
    ]).toArray();
    assert.eq([{d: 0, is: "int"}, {d: 2, is: "double"}], deviations(-1));
    assert.eq([{d: 0, is: "double"}, {d: 2, is: "double"}], deviations("unbounded"));
    assert.commandFailedWithCode(
        db.runCommand({
            aggregate: coll.getName(),
            pipeline: [byDay({r: {$rank: {}, window: {documents: [0, 0]}}})],
            cursor: {},
        }),
        5371601,
    );
})();
