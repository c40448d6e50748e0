-- Texts are compared and put in order byte by byte. An embedded database always did; its twin learns it
-- here.
SELECT 1;
