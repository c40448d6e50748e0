-- How often what was read on which day, by reader. There are a few dozen readers, a fixed list in the program;
-- `tools` are calls of MCP tools.
CREATE TABLE reads (
    day       INTEGER NOT NULL,
    reader    TEXT NOT NULL,
    pages     INTEGER NOT NULL,
    markdown  INTEGER NOT NULL,
    briefings INTEGER NOT NULL,
    tools     INTEGER NOT NULL,
    PRIMARY KEY (day, reader)
) WITHOUT ROWID;

INSERT INTO schema_versions (version, oldest_compatible) VALUES (16, 9);
