export * from "jstests/libs/check_cluster_helpers.js";
