runNonMongoProgram("printf", "\\377\\376\\000\\033[31mred <&>\\n");
throw new Error("binary: \u0001 \uffff ]]>");
