export const isLinux = () => !_isWindows();
export const isWindows = () => _isWindows();
export const isMacOS = () => false;
