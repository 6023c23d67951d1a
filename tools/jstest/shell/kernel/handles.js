// DB, DBCollection and DBQuery: constructors with hooks for unknown properties.
