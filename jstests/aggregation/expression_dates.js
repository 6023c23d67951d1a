/**
 * Date expressions take dates apart, put them together and step through them, in any time zone.
 * Fails when a part, a zone with its summer time, a month's length or a week's number comes out differently.
 */
function value(expression) {
    return db.aggregate([{$documents: [{d: ISODate("2024-02-29T23:45:06.789Z"), ny: ISODate("2024-03-10T12:00:00Z"), n: null, o: ObjectId("65e0f0000000000000000000"), ts: Timestamp(1709250306, 1)}]}, {$project: {v: expression}}]).toArray()[0].v;
}
assert.eq([2024, 2, 29, 23, 45, 6, 789],
          [value({$year: "$d"}), value({$month: "$d"}), value({$dayOfMonth: "$d"}), value({$hour: "$d"}), value({$minute: "$d"}), value({$second: "$d"}), value({$millisecond: "$d"})]);
assert.eq([60, 5, 4, 8, 9, 2024], [value({$dayOfYear: "$d"}), value({$dayOfWeek: "$d"}), value({$isoDayOfWeek: "$d"}), value({$week: "$d"}), value({$isoWeek: "$d"}), Number(value({$isoWeekYear: "$d"}))]);
assert.eq([1, 0, 15], [value({$dayOfMonth: {date: "$d", timezone: "Europe/Oslo"}}), value({$hour: {date: "$d", timezone: "+00:15"}}), value({$hour: {date: "$d", timezone: "America/Los_Angeles"}})]);
// New York changed to summer time that very morning.
assert.eq(8, value({$hour: {date: "$ny", timezone: "America/New_York"}}));
assert.eq(0, value({$hour: {date: {$dateSubtract: {startDate: "$ny", unit: "hour", amount: 7}}, timezone: "America/New_York"}}));
assert.eq(null, value({$year: "$n"}));
assert.eq([2024, 2024], [value({$year: "$o"}), value({$year: "$ts"})]);

assert.eq("2024-02-29T23:45:06.789Z", value({$dateToString: {date: "$d"}}));
assert.eq("29/02/2024 23h 060 09", value({$dateToString: {date: "$d", format: "%d/%m/%Y %Hh %j %V"}}));
assert.eq("2024-03-01 00:45 +0100 Mar March", value({$dateToString: {date: "$d", format: "%Y-%m-%d %H:%M %z %b %B", timezone: "Europe/Oslo"}}));
assert.eq("none", value({$dateToString: {date: "$n", onNull: "none"}}));
assert.eq(ISODate("2024-02-29T23:45:06.789Z"), value({$dateFromString: {dateString: "2024-02-29T23:45:06.789"}}));
assert.eq(ISODate("2024-02-29T22:00:00Z"), value({$dateFromString: {dateString: "29.02.2024 23:00", format: "%d.%m.%Y %H:%M", timezone: "Europe/Oslo"}}));
// As C prints a date, and JavaScript.
for (const text of ["Wed Jan 31 12:05:28 1996", "WED jan 31 15:35:28 +03:30 1996", "Wed Jan 31 1996 15:35:28 GMT+0330"]) {
    assert.eq(ISODate("1996-01-31T12:05:28Z"), value({$dateFromString: {dateString: text}}), text);
}
assert.eq(["bad", "null"], [value({$dateFromString: {dateString: "nonsense", onError: "bad"}}), value({$dateFromString: {dateString: "$n", onNull: "null"}})]);
assert.eq(ISODate("2024-03-01T00:00:00Z"), value({$dateFromParts: {year: 2024, month: 2, day: 30}}));
assert.eq(ISODate("2023-12-31T00:00:00Z"), value({$dateFromParts: {year: 2024, month: 1, day: 0}}));
assert.eq(ISODate("2024-02-26T00:00:00Z"), value({$dateFromParts: {isoWeekYear: 2024, isoWeek: 9}}));
assert.eq({year: 2024, month: 2, day: 29, hour: 23, minute: 45, second: 6, millisecond: 789}, value({$dateToParts: {date: "$d"}}));

assert.eq(ISODate("2025-02-28T23:45:06.789Z"), value({$dateAdd: {startDate: "$d", unit: "year", amount: 1}}));
assert.eq(ISODate("2024-01-29T23:45:06.789Z"), value({$dateSubtract: {startDate: "$d", unit: "month", amount: 1}}));
assert.eq([1, 29, 12].map(Number), [value({$dateDiff: {startDate: ISODate("2024-01-31"), endDate: "$d", unit: "month"}}), value({$dateDiff: {startDate: ISODate("2024-01-31"), endDate: "$d", unit: "day"}}), value({$dateDiff: {startDate: "$ny", endDate: ISODate("2024-03-11T00:00:00Z"), unit: "hour"}})].map(Number));
assert.eq([ISODate("2024-02-01T00:00:00Z"), ISODate("2024-02-26T00:00:00Z"), ISODate("2024-02-29T23:45:00Z")],
          [value({$dateTrunc: {date: "$d", unit: "month"}}), value({$dateTrunc: {date: "$d", unit: "week", startOfWeek: "monday"}}), value({$dateTrunc: {date: "$d", unit: "minute", binSize: 15}})]);

function refused(codes, expression) {
    assert.commandFailedWithCode(db.runCommand({aggregate: 1, pipeline: [{$documents: [{s: "s", d: new Date()}]}, {$project: {v: expression}}], cursor: {}}),
                                 codes, () => tojson(expression));
}
refused(16006, {$year: "$s"});
refused(40485, {$year: {date: "$d", timezone: "Mars/Olympus"}});
refused(18535, {$dateToString: {date: "$d", format: "%"}});
refused(18536, {$dateToString: {date: "$d", format: "%Q"}});
refused(ErrorCodes.ConversionFailure, {$dateFromString: {dateString: "nonsense"}});
refused(ErrorCodes.DurationOverflow, {$dateFromParts: {year: 2000, millisecond: NumberLong("18014398509481984")}});
refused(40516, {$dateFromParts: {month: 1}});
refused(5166307, {$dateTrunc: {date: "$s", unit: "day"}});
refused(40515, {$dateFromParts: {year: "x"}});
refused([5166403, 5439013], {$dateAdd: {startDate: "$s", unit: "day", amount: 1}});
refused([ErrorCodes.FailedToParse, 5439014], {$dateAdd: {startDate: "$d", unit: "fortnight", amount: 1}});
// An offset in the text goes with the zone that is none.
assert.eq(ISODate("2017-02-08T07:10:40Z"), value({$dateFromString: {dateString: "2017-02-08T12:10:40+05:00", timezone: "UTC"}}));
refused(ErrorCodes.ConversionFailure, {$dateFromString: {dateString: "2017-02-08T12:10:40+05:00", timezone: "Europe/Oslo"}});
refused(40485, {$hour: {date: "$d", timezone: "Z"}});
