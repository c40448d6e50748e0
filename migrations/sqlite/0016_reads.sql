-- How often what was read on which day, by the reader that a request named. There are a few dozen readers, which the
-- program tells apart; `tools` are results of MCP tools.
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
