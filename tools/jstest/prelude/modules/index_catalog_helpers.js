// The other name of the library that finds indexes.
export * from "jstests/libs/get_index_helpers.js";
