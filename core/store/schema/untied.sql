-- What a rescued file does not keep: rows whose other half is lost.
DELETE FROM passages WHERE text NOT IN (SELECT hash FROM texts);
INSERT OR IGNORE INTO memories (session, last) SELECT session, max(number) FROM memory GROUP BY session;
DELETE FROM label_questions WHERE label_set NOT IN (SELECT name FROM label_sets);
DELETE FROM label_pool WHERE text NOT IN (SELECT hash FROM texts) OR NOT EXISTS (SELECT 1 FROM label_questions q WHERE q.label_set = label_pool.label_set AND q.id = label_pool.question);
DELETE FROM judgements WHERE NOT EXISTS (SELECT 1 FROM label_pool p WHERE (p.label_set, p.question, p.passage) = (judgements.label_set, judgements.question, judgements.passage));
DELETE FROM results WHERE run NOT IN (SELECT number FROM runs);
DELETE FROM rankings WHERE run NOT IN (SELECT number FROM runs);
