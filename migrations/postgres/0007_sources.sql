-- Where people came from, by day, apart from `counts`: anybody may invent a source, and what is told by
-- day must not have to go through all of them. The empty source stands for none, and for one with an
-- @, which may be an address. People who were imported came from no visit and are left out of both, as
-- they have been since there are counts.
CREATE TABLE sources (
    day       BIGINT  NOT NULL,
    source    TEXT    NOT NULL,
    downloads BIGINT  NOT NULL,
    people    BIGINT  NOT NULL,
    opt_ins   BIGINT  NOT NULL,
    joins     BIGINT  NOT NULL,
    PRIMARY KEY (day, source)
);

INSERT INTO sources (day, source, downloads, people, opt_ins, joins)
SELECT day, source,
    SUM(CASE kind WHEN 'download' THEN times ELSE 0 END),
    SUM(CASE kind WHEN 'person' THEN times ELSE 0 END),
    SUM(CASE kind WHEN 'opt-in' THEN times ELSE 0 END),
    SUM(CASE kind WHEN 'join' THEN times ELSE 0 END)
FROM counts WHERE kind IN ('download', 'person', 'opt-in', 'join') AND via <> 'import' GROUP BY day, source;

-- What is left to tell counts of one day, kind and face apart is the name of a tool or a version.
CREATE TABLE counts_by_name AS
SELECT day, kind, via, CASE WHEN kind IN ('tool', 'image') THEN source ELSE '' END AS name, SUM(times) AS times
FROM counts WHERE via <> 'import' GROUP BY 1, 2, 3, 4;

DELETE FROM counts;
ALTER TABLE counts RENAME COLUMN source TO name;
INSERT INTO counts (day, kind, via, name, times) SELECT day, kind, via, name, times FROM counts_by_name;
DROP TABLE counts_by_name;
