// `rs`: what a person or a test says to the replica set that `db` is connected to.

(function () {
    const adminCommand = (command) => db.getSiblingDB("admin").runCommand(command);

    function memberOf(host, arbiterOnly) {
        return typeof host === "object" ? host : { host, ...(arbiterOnly ? { arbiterOnly: true } : {}) };
    }
    function changed(change) {
        const config = rs.conf();
        change(config);
        return rs.reconfig(config);
    }
    const isNewer = (a, b) => (a > b ? 1 : a < b ? -1 : 0);

    const rs = function () {
        return "try rs.help()";
    };
    Object.assign(rs, {
        help() {
            print("rs.initiate([config])  rs.status()  rs.conf()  rs.reconfig(config[, options])  rs.add(host | member)  rs.addArb(host)");
            print("rs.remove(host)  rs.stepDown([secs[, catchUpSecs]])  rs.freeze(secs)  rs.syncFrom(host)  rs.hello()");
            print("rs.printReplicationInfo()  rs.printSecondaryReplicationInfo()");
        },
        status: () => adminCommand({ replSetGetStatus: 1 }),
        hello: () => db.getSiblingDB("admin").runCommand({ hello: 1 }),
        isMaster: () => db.getSiblingDB("admin").runCommand({ isMaster: 1 }),
        initiate: (config) => adminCommand({ replSetInitiate: config }),
        conf() {
            const reply = adminCommand({ replSetGetConfig: 1 });
            if (reply.ok !== 1) throw _getErrorWithCode(reply, "Could not retrieve replica set config: " + tojson(reply));
            return reply.config;
        },
        // The version of the configuration is one more than that of the present one.
        reconfig(config, options = {}) {
            const present = adminCommand({ replSetGetConfig: 1 });
            const version = present.ok ? Number(present.config.version) + 1 : Number(config.version || 1);
            return adminCommand({ replSetReconfig: { ...config, version }, ...options });
        },
        reconfigForPSASet(index, config, options) {
            if (config.members[index] === undefined) throw new Error(`Node at index ${index} does not exist in the new config`);
            return rs.reconfig(config, options);
        },
        add(host, arbiterOnly) {
            return changed((config) => {
                const taken = config.members.map((member) => Number(member._id));
                config.members.push({ _id: Math.max(-1, ...taken) + 1, ...memberOf(host, arbiterOnly) });
            });
        },
        addArb: (host) => rs.add(host, true),
        remove(host) {
            return changed((config) => {
                const kept = config.members.filter((member) => member.host !== host);
                if (kept.length === config.members.length) throw new Error(`couldn't find ${host} in ${tojson(config.members)}`);
                config.members = kept;
            });
        },
        stepDown(seconds, catchUpSeconds) {
            return adminCommand({
                replSetStepDown: seconds === undefined ? 60 : seconds,
                ...(catchUpSeconds === undefined ? {} : { secondaryCatchUpPeriodSecs: catchUpSeconds }),
            });
        },
        freeze: (seconds) => adminCommand({ replSetFreeze: seconds }),
        syncFrom: (host) => adminCommand({ replSetSyncFrom: host }),
        secondaryOk: (value = true) => db.getMongo().setSecondaryOk(value),
        slaveOk: (value = true) => db.getMongo().setSecondaryOk(value),
        printReplicationInfo: () => db.printReplicationInfo(),
        printSecondaryReplicationInfo: () => db.printSecondaryReplicationInfo(),
        printSlaveReplicationInfo: () => db.printSecondaryReplicationInfo(),
        // Whether a member has told a time that an entry can have: before the first one, it is zero in term -1.
        isValidOpTime(optime) {
            const { ts, t } = optime;
            return ts !== undefined && timestampCmp(ts, Timestamp(0, 0)) !== 0 && t !== undefined && Number(t) !== -1;
        },
        // -1, 0 or 1: by term first, where both have one, then by time.
        compareOpTimes(a, b) {
            const parts = (optime) => {
                const ts = optime instanceof Timestamp ? optime : optime.ts;
                if (ts === undefined) throw new Error("no optime: " + tojson(optime));
                return [optime.t === undefined || optime instanceof Timestamp ? -1 : Number(optime.t), Number(ts.t ?? ts.getTime()), Number(ts.i ?? ts.getInc())];
            };
            const [left, right] = [parts(a), parts(b)];
            for (const at of [0, 1, 2]) {
                if (left[at] !== right[at]) return isNewer(left[at], right[at]);
            }
            return 0;
        },
        debug: {},
    });
    rs.config = rs.conf;

    globalThis.rs = rs;
})();
