// Whether a server has a feature flag and has it on. A flag that the server does not know is off.
export const FeatureFlagUtil = {
    FlagStatus: { kNotFound: "kNotFound", kDisabled: "kDisabled", kEnabled: "kEnabled" },
    getStatus(db, flag) {
        const name = flag.startsWith("featureFlag") ? flag : "featureFlag" + flag;
        const reply = db.getSiblingDB("admin").runCommand({ getParameter: 1, [name]: 1 });
        if (!reply.ok) return FeatureFlagUtil.FlagStatus.kNotFound;
        const value = reply[name];
        const on = typeof value === "object" ? value.value : value;
        return on ? FeatureFlagUtil.FlagStatus.kEnabled : FeatureFlagUtil.FlagStatus.kDisabled;
    },
    isEnabled: (db, flag) => FeatureFlagUtil.getStatus(db, flag) === FeatureFlagUtil.FlagStatus.kEnabled,
    isPresentAndEnabled: (db, flag) => FeatureFlagUtil.isEnabled(db, flag),
    isPresentAndDisabled: (db, flag) => FeatureFlagUtil.getStatus(db, flag) === FeatureFlagUtil.FlagStatus.kDisabled,
};
