#!/usr/bin/env node
import { run } from "./program.mjs";

run("mongod");
