-- How often what was read on which day, by reader. There are a few dozen readers, a fixed list in the program;
-- `tools` are calls of MCP tools.
CREATE TABLE reads (
    day       BIGINT NOT NULL,
    reader    TEXT COLLATE "C" NOT NULL,
    pages     BIGINT NOT NULL,
    markdown  BIGINT NOT NULL,
    briefings BIGINT NOT NULL,
    tools     BIGINT NOT NULL,
    PRIMARY KEY (day, reader)
);

INSERT INTO schema_versions (version, oldest_compatible) VALUES (16, 9);
