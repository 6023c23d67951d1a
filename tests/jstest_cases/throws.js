print("before the exception");
throw new Error("thrown on purpose");
