// The servers have one execution engine, the one that explain calls classic.
export const kSbeDisabled = "sbeDisabled";
export const kSbeRestricted = "sbeRestricted";
export const kSbeFullyEnabled = "sbeFullyEnabled";
export const checkSbeStatus = () => kSbeDisabled;
export const checkSbeCompletelyDisabled = () => true;
export const checkSbeRestricted = () => false;
export const checkSbeRestrictedOrFullyEnabled = () => false;
export const checkSbeFullyEnabled = () => false;
export const checkSbeFullFeatureFlagEnabled = () => false;
