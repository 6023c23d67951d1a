/* @tags: [never_closed */
